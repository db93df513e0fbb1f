/* A small good scenario, one section a line, so that a test can replace a line and know the position. */
#ifndef LONGHAUL_TEST_SAMPLE_H
#define LONGHAUL_TEST_SAMPLE_H

#include <check.h>

enum { SAMPLE_LINES = 8 };
extern const char *const sample_lines[SAMPLE_LINES];

/* The sample with line `number` (from 1) replaced; 0 replaces none. Caller frees. */
char *sample_with(int number, const char *replacement);

/* Runs the cases as Check's environment asks. Returns the exit code of main. */
int sample_run(const char *name, TCase *cases);

#endif
