#include "tests/configs/sample.h"

#include <stdio.h>
#include <stdlib.h>

const char *const sample_lines[SAMPLE_LINES] = {
    "name: sample",
    "datacenters:",
    "  - {name: a, nodes: 2, gpus_per_node: 8, gpu: h100-sxm}",
    "  - {name: b, nodes: 2, gpus_per_node: 8, gpu: h100-sxm}",
    "wan: [{between: [a, b], wave_rate: 100 Gb/s, rtt: 21.3 ms}]",
    "model: 1b",
    "training: {tensor: 8, pipeline: 2, global_batch: 8}",
    "strategies: [{name: flat, allreduce: ring}]",
};

char *sample_with(int number, const char *replacement)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int i = 0; i < SAMPLE_LINES; i++)
        fprintf(out, "%s\n", i + 1 == number ? replacement : sample_lines[i]);
    fclose(out);
    return text;
}

int sample_run(const char *name, TCase *cases)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
