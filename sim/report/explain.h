/* The sentences around the table. Each function prints whole lines wrapped to `width` columns. */
#ifndef LONGHAUL_EXPLAIN_H
#define LONGHAUL_EXPLAIN_H

#include "sim/report/result.h"

/* What was asked: sites, links, model, parallelism, batch. */
void explain_question(const struct result *result, FILE *out, int width);
/* Where the references come from. */
void explain_sources(const struct result *result, FILE *out, int width);
/* What the columns mean. */
void explain_words(const struct result *result, FILE *out, int width);
/* How the compute time was found. */
void explain_calibration(const struct result *result, FILE *out, int width);
/* How each step that was measured was; nothing where all are simulated. */
void explain_measurements(const struct result *result, FILE *out, int width);
/* Strategies that do not fit in memory, and what takes it. */
void explain_memory(const struct result *result, FILE *out, int width);
/* The other reading of an MFU whose convention its source does not state, if there is one. */
void explain_other_reading(const struct result *result, FILE *out, int width);
/* What the backend simplified. */
void explain_notes(const struct result *result, FILE *out, int width);
/* The best strategy, and what would improve it most. */
void explain_best(const struct result *result, FILE *out, int width);

#endif
