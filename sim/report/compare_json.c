/* The comparison as JSON; every key is described in README.md beside this file. */
#include <math.h>

#include "sim/report/compare.h"
#include "sim/report/text.h"

#include <stdlib.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value)
{
    char *clean = text_clean(value);
    json_t *json = clean != NULL ? json_string(clean) : NULL;
    free(clean);
    return json;
}

static json_t *append(json_t *array, json_t *item)
{
    if (json_array_append_new(array, item) == 0)
        return array;
    json_decref(array);
    return NULL;
}

/* The strategy's entry of longhaul.result/1, or null. */
static json_t *entry(const struct result *result, const struct strategy_result *strategy)
{
    return strategy != NULL ? result_strategy_to_json(result, strategy) : json_null();
}

static json_t *split_to_json(const struct compare_row *row)
{
    json_t *split = json_object();
    for (int part = 0; split != NULL && part < PART_COUNT; part++) {
        double predicted_s = row->predicted_part_s[part], measured_s = row->measured_part_s[part];
        json_t *figures = json_pack("{s:o, s:o, s:o}", "predicted_s", number(predicted_s), "measured_s",
                                    number(measured_s), "difference_s", number(predicted_s - measured_s));
        if (json_object_set_new(split, part_name((enum part_of_step)part), figures) != 0) {
            json_decref(split);
            return NULL;
        }
    }
    return split;
}

static json_t *row_to_json(const struct compare_point *point, size_t index)
{
    const struct compare_row *row = &point->rows[index];
    const struct strategy_result *some = row->predicted != NULL ? row->predicted : row->measured;
    const struct result *full = point->scaled ? &point->full_predicted : &point->predicted;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     some != NULL ? text(point->lab.strategies[some->strategy].name) : json_null(), "error",
                     number(row->error), "arises_in",
                     row->arises < PART_COUNT ? json_string(part_name(row->arises)) : json_null(), "split",
                     split_to_json(row), "predicted", entry(&point->predicted, row->predicted), "measured",
                     entry(&point->measured, row->measured), "full_scale", entry(full, row->full));
}

static json_t *rows_to_json(const struct compare_point *point)
{
    json_t *rows = json_array();
    for (size_t i = 0; rows != NULL && i < point->row_count; i++)
        rows = append(rows, row_to_json(point, i));
    return rows;
}

static json_t *notes_to_json(const struct result *result)
{
    json_t *notes = json_array();
    for (size_t i = 0; notes != NULL && i < result->note_count; i++)
        notes = append(notes, text(result->notes[i]));
    return notes;
}

static json_t *sets_to_json(const struct compare_point *point)
{
    json_t *sets = json_array();
    for (size_t i = 0; sets != NULL && i < point->set_count; i++)
        sets = append(sets, text(point->sets[i]));
    return sets;
}

static json_t *point_to_json(const struct compare_point *point)
{
    return json_pack("{s:o, s:s, s:{s:s, s:I, s:I}, s:o, s:{s:o, s:o}}", "sets", sets_to_json(point), "scenario_hash",
                     point->full.hash, "lab", "hash", point->lab.hash, "hosts_per_site",
                     (json_int_t)point->lab.sites[0].nodes, "divided_by",
                     (json_int_t)(point->lab.scale / point->full.scale), "strategies", rows_to_json(point), "notes",
                     "predicted", notes_to_json(&point->predicted), "measured", notes_to_json(&point->measured));
}

json_t *compare_to_json(const struct compare *compare, const struct compare_summary *summary)
{
    json_t *points = json_array();
    for (size_t i = 0; points != NULL && i < compare->point_count; i++)
        points = append(points, point_to_json(&compare->points[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:{s:o, s:o}}", "schema", "longhaul.compare/1", "version", LONGHAUL_VERSION,
                     "scenario", text(compare->points[0].full.name), "points", points, "summary", "median_error",
                     number(summary->median_error), "worst_error", number(summary->worst_error));
}
