/* A timeline of one step in the Chrome trace-event format that Perfetto opens: one track per stream of chosen ranks,
 * and WAN link load. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
 * Format) */
#ifndef LONGHAUL_TIMELINE_H
#define LONGHAUL_TIMELINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "configs/err.h"

struct timeline; /* one recording; grows as it is written to */

struct timeline *timeline_new(void);
void timeline_free(struct timeline *timeline);

/* Processes are ranks (or links), threads their streams. Names are copied. Call once per pair, before its spans. */
void timeline_name(struct timeline *timeline, int process, const char *process_name, int thread,
                   const char *thread_name);
/* A span of work on (process, thread). category: "compute", "send", "receive", "wait". name is copied. bytes 0: not
 * shown. */
void timeline_span(struct timeline *timeline, int process, int thread, const char *category, const char *name,
                   double start_s, double end_s, double bytes);
/* A point of a counter track (WAN link load in bit/s): holds until the next point. */
void timeline_counter(struct timeline *timeline, int process, const char *name, double time_s, double value);

/* Writes {"traceEvents": [...], ...} with times in us. Returns 0 or a negative errno with a message. */
int timeline_write(const struct timeline *timeline, FILE *out, struct err *err);

#endif
