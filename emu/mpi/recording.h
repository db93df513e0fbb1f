/* What one process did in a step, for the timeline. Internal to emu/mpi. */
#ifndef LONGHAUL_MPI_RECORDING_H
#define LONGHAUL_MPI_RECORDING_H

#include <stdio.h>

#include "emu/mpi/process.h"

/* From now until recording_write everything of this process is kept, if it is one of those that a timeline shows. */
void recording_begin(struct process *process);
void recording_message(struct process *process, int track, bool sent, int peer, double start_s, double bytes);
void recording_compute(struct process *process, int track, double start_s);
/* The track of a new stream, and its end: streams of one name that follow one another share a track. */
int recording_track(struct process *process, const char *name);
void recording_leave(struct process *process, int track);
/* Rank 0 writes what all recorded (times from the beginning of the step); collective. */
int recording_write(struct process *process, FILE *out, struct err *err);
void recording_free(struct process *process);

#endif
