/* The end of every test program of this folder. */
#ifndef LONGHAUL_TEST_RUNNER_H
#define LONGHAUL_TEST_RUNNER_H

#include <check.h>

/* Runs the cases as Check's environment asks. Returns the exit code of main. */
int run_cases(const char *name, TCase *cases);

#endif
