/* The process between the launcher and the machine; see machine.h. */
#ifndef LONGHAUL_LAB_GUARDIAN_H
#define LONGHAUL_LAB_GUARDIAN_H

#include "emu/lab/machine.h"

struct guardian_ends {
    int life;       /* end of file: the launcher is gone */
    int input;      /* read by the machine */
    int streams[2]; /* written by it: output, error */
    int control;
};

/* Starts the machine, waits for its end or the launcher's, leaves nothing. Never returns. */
_Noreturn void guardian_run(const struct machine_options *options, const struct guardian_ends *ends);

#endif
