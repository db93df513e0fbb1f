/* The launcher's side of a running machine: its streams, its verdict, signals and the deadline. */
#ifndef LONGHAUL_LAB_PUMP_H
#define LONGHAUL_LAB_PUMP_H

#include "emu/lab/machine.h"

struct pump_options {
    int input;                   /* of the user; -1: none */
    int output[2];               /* where the command's standard output and error go */
    double deadline_s;           /* of wall time; 0: none */
    void (*tick)(void *context); /* at least once a second; NULL: none */
    void *context;
};

/* Passes everything on until the machine is gone. *code: the command's own exit code. -EINTR, without a word: a signal
 * ended the wait, *code is 128 + signal; -ETIME: the deadline passed; others: what went wrong inside. The machine is
 * stopped in every case. */
int pump_run(struct machine *machine, const struct pump_options *options, int *code, struct err *err);

/* Signals that end a machine, blocked; a file to read them from. Before machine_start. */
int pump_signals(struct err *err);

#endif
