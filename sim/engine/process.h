/* What runs inside the process of a job. Internal to sim/engine. */
#ifndef LONGHAUL_PROCESS_H
#define LONGHAUL_PROCESS_H

#include "sim/engine/engine.h"

/* Simulates the job and writes its results into shared memory. Call in a process of its own; it may not return. */
void process_run(struct engine_job *job);

#endif
