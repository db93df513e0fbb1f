/* libFuzzer's entry point; fuzz_replay.c calls it where libFuzzer is not. */
#ifndef LONGHAUL_TEST_FUZZ_H
#define LONGHAUL_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Aborts when a property is broken. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
