#include "tests/training/sums.h"

#include <stdlib.h>

struct loopback *sums_loopback(int ranks, size_t bytes)
{
    const size_t regions[LOOPBACK_REGIONS] = {[REGION_GRADIENT] = bytes};
    struct loopback *loopback = loopback_new(ranks, regions);
    ck_assert_ptr_nonnull(loopback);
    return loopback;
}

float sums_value(int rank, size_t place)
{
    return (float)((size_t)(rank + 1) * (place % 7 + 1) + place % 11);
}

float sums_expected(const struct group *group, size_t place)
{
    float sum = 0;
    for (int i = 0; i < group->count; i++)
        sum += sums_value(group->ranks[i], place);
    return sum;
}

void sums_fill(const struct loopback *loopback, int ranks, size_t bytes)
{
    for (int rank = 0; rank < ranks; rank++)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            loopback_region(loopback, rank, REGION_GRADIENT)[i] = sums_value(rank, i);
}

void sums_check(const struct loopback *loopback, int rank, const struct group *group, struct span span,
                const char *context)
{
    const float *floats = loopback_region(loopback, rank, REGION_GRADIENT);
    size_t end = (span.offset + span.bytes) / sizeof(float);
    for (size_t i = span.offset / sizeof(float); i < end; i++) {
        float expected = sums_expected(group, i);
        ck_assert_msg(floats[i] == expected, "%s: rank %d float %zu is %g, expected %g", context, rank, i,
                      (double)floats[i], (double)expected);
    }
}

void sums_run(struct loopback *loopback, stream_function *main, void *argument, const char *context)
{
    struct err err = {""};
    int rc = loopback_run(loopback, main, argument, &err);
    ck_assert_msg(rc == 0, "%s: %s", context, err.text);
}

int sums_suite(const char *name, TCase *cases)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
