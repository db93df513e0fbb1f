#include "sim/report/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *part_name(enum part_of_step part)
{
    static const char *const names[] = {
        [PART_COMPUTE] = "compute",
        [PART_SLOW_START] = "slow start",
        [PART_BANDWIDTH] = "bandwidth",
        [PART_WAIT] = "wait",
    };
    return names[part];
}

void compare_split(const struct strategy_result *strategy, double part_s[PART_COUNT])
{
    part_s[PART_COMPUTE] = strategy != NULL ? strategy->compute_s : NAN;
    part_s[PART_SLOW_START] = strategy != NULL ? strategy->slow_start_s : NAN;
    part_s[PART_BANDWIDTH] = strategy != NULL ? strategy->wan_busy_s : NAN;
    double others = part_s[PART_COMPUTE] + part_s[PART_SLOW_START] + part_s[PART_BANDWIDTH];
    part_s[PART_WAIT] = strategy != NULL ? strategy->step.step_s - others : NAN;
}

static const struct strategy_result *find(const struct result *result, size_t strategy)
{
    for (size_t i = 0; i < result->strategy_count; i++)
        if (result->strategies[i].strategy == strategy)
            return &result->strategies[i];
    return NULL;
}

/* The part whose difference is the largest, where that is 0.1 % of the step or more. */
static enum part_of_step arises(const struct compare_row *row)
{
    enum part_of_step largest = PART_COUNT;
    double difference_s = row->measured != NULL ? 1e-3 * row->measured->step.step_s : INFINITY;
    for (int part = 0; part < PART_COUNT; part++) {
        double own_s = fabs(row->predicted_part_s[part] - row->measured_part_s[part]);
        if (own_s >= difference_s) {
            largest = (enum part_of_step)part;
            difference_s = own_s;
        }
    }
    return largest;
}

static void fill_row(const struct compare_point *point, size_t strategy, struct compare_row *row)
{
    row->predicted = find(&point->predicted, strategy);
    row->measured = find(&point->measured, strategy);
    row->full = find(point->scaled ? &point->full_predicted : &point->predicted, strategy);
    row->error = NAN;
    if (row->predicted != NULL && row->measured != NULL && row->measured->step.step_s > 0)
        row->error = row->predicted->step.step_s / row->measured->step.step_s - 1;
    compare_split(row->predicted, row->predicted_part_s);
    compare_split(row->measured, row->measured_part_s);
    row->arises = arises(row);
}

static bool wanted(const char *name, const char *const *names, size_t name_count)
{
    for (size_t i = 0; i < name_count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return name_count == 0;
}

int compare_rows(struct compare_point *point, const char *const *names, size_t name_count, struct err *err)
{
    const struct scenario *scenario = &point->lab;
    point->rows = calloc(scenario->strategy_count + 1, sizeof *point->rows);
    if (point->rows == NULL)
        return err_set(err, ENOMEM, "out of memory for %zu strategies", scenario->strategy_count);
    for (size_t i = 0; i < scenario->strategy_count; i++)
        if (wanted(scenario->strategies[i].name, names, name_count))
            fill_row(point, i, &point->rows[point->row_count++]);
    return 0;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count == 0 ? NAN : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void take_row(struct compare_summary *summary, size_t point, const struct compare_row *row, double *errors)
{
    if (!isfinite(row->error))
        return;
    errors[summary->count++] = fabs(row->error);
    if (summary->worst_row != NULL && fabs(row->error) <= fabs(summary->worst_error))
        return;
    summary->worst_error = row->error;
    summary->worst_point = point;
    summary->worst_row = row;
}

int compare_summarise(const struct compare *compare, struct compare_summary *summary, struct err *err)
{
    size_t rows = 0;
    *summary = (struct compare_summary){.worst_error = NAN};
    for (size_t i = 0; i < compare->point_count; i++)
        rows += compare->points[i].row_count;
    double *errors = calloc(rows + 1, sizeof *errors);
    if (errors == NULL)
        return err_set(err, ENOMEM, "out of memory for %zu errors", rows);
    for (size_t i = 0; i < compare->point_count; i++)
        for (size_t j = 0; j < compare->points[i].row_count; j++)
            take_row(summary, i, &compare->points[i].rows[j], errors);
    summary->median_error = median(errors, summary->count);
    free(errors);
    return 0;
}
