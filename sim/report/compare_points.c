/* From --vary to scenarios. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare.h"

enum { POINTS_MAX = 1000, SETS_MAX = 128 };

/* Where a value ends: at the next comma that is in no brackets and no quotes, or at the end. */
static size_t value_length(const char *text)
{
    int depth = 0;
    char quote = '\0';
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char c = text[length];
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (strchr("[{", c) != NULL)
            depth++;
        else if (strchr("]}", c) != NULL)
            depth--;
        else if (c == ',' && depth <= 0)
            break;
    }
    return length;
}

static int add_value(struct vary *vary, const char *text, size_t length, struct err *err)
{
    char **values = reallocarray(vary->values, vary->count + 1, sizeof *values);
    char *value = strndup(text, length);
    vary->values = values != NULL ? values : vary->values;
    if (values == NULL || value == NULL) {
        free(value);
        return err_set(err, ENOMEM, "out of memory for the values of %s", vary->key);
    }
    vary->values[vary->count++] = value;
    return 0;
}

/* The key is kept in front of the values, as a string of its own. */
int vary_parse(const char *text, struct vary *vary, struct err *err)
{
    *vary = (struct vary){0};
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return err_set(err, EINVAL, "'%s': it is KEY=VALUE,VALUE,..., such as wan.rtt=1ms,5ms", text);
    char *key = strndup(text, (size_t)(equals - text));
    vary->key = key;
    int rc = key != NULL ? 0 : err_set(err, ENOMEM, "out of memory for %s", text);
    for (const char *value = equals; rc == 0 && *value != '\0';) {
        size_t length = value_length(++value);
        rc = length > 0 ? add_value(vary, value, length, err) : err_set(err, EINVAL, "'%s': a value is empty", text);
        value += length;
    }
    if (rc < 0)
        vary_free(vary);
    return rc;
}

void vary_free(struct vary *vary)
{
    for (size_t i = 0; i < vary->count; i++)
        free(vary->values[i]);
    free(vary->values);
    free((char *)vary->key);
    *vary = (struct vary){0};
}

static int count_points(struct compare *compare, struct err *err)
{
    size_t count = 1;
    for (size_t i = 0; i < compare->vary_count; i++) {
        const struct vary *vary = &compare->varies[i];
        for (size_t j = 0; j < i; j++)
            if (strcmp(compare->varies[j].key, vary->key) == 0)
                return err_set(err, EINVAL, "%s is varied twice; give all of its values in one list", vary->key);
        if (vary->count > POINTS_MAX / count)
            return err_set(err, EINVAL, "more than %d points; each runs two backends", POINTS_MAX);
        count *= vary->count;
    }
    compare->points = calloc(count, sizeof *compare->points);
    if (compare->points == NULL)
        return err_set(err, ENOMEM, "out of memory for %zu points", count);
    compare->point_count = count;
    return 0;
}

/* Number `index` of the cross product, the last key fastest. */
static int make_sets(const struct compare *compare, size_t index, struct compare_point *point, struct err *err)
{
    point->sets = calloc(compare->vary_count + 1, sizeof *point->sets);
    if (point->sets == NULL)
        return err_set(err, ENOMEM, "out of memory for a point");
    point->set_count = compare->vary_count;
    for (size_t i = compare->vary_count; i-- > 0;) {
        const struct vary *vary = &compare->varies[i];
        if (asprintf(&point->sets[i], "%s=%s", vary->key, vary->values[index % vary->count]) < 0) {
            point->sets[i] = NULL;
            return err_set(err, ENOMEM, "out of memory for a point");
        }
        index /= vary->count;
    }
    return 0;
}

static int load(struct compare_point *point, const char *scenario, const char *const *sets, size_t set_count,
                struct err *err)
{
    const char *all[SETS_MAX];
    if (set_count + point->set_count > SETS_MAX)
        return err_set(err, EINVAL, "more than %d keys are changed", SETS_MAX);
    for (size_t i = 0; i < set_count; i++)
        all[i] = sets[i];
    for (size_t i = 0; i < point->set_count; i++)
        all[set_count + i] = point->sets[i];
    return scenario_load(scenario, all, set_count + point->set_count, &point->full, err);
}

int compare_points(struct compare *compare, const char *scenario, const char *const *sets, size_t set_count,
                   struct err *err)
{
    int rc = count_points(compare, err);
    for (size_t i = 0; rc == 0 && i < compare->point_count; i++) {
        rc = make_sets(compare, i, &compare->points[i], err);
        rc = rc ? rc : load(&compare->points[i], scenario, sets, set_count, err);
    }
    return rc;
}

void compare_free(struct compare *compare)
{
    for (size_t i = 0; i < compare->point_count; i++) {
        struct compare_point *point = &compare->points[i];
        for (size_t j = 0; j < point->set_count; j++)
            free(point->sets[j]);
        free(point->sets);
        free(point->rows);
        result_free(&point->predicted);
        result_free(&point->measured);
        result_free(&point->full_predicted);
        scenario_free(&point->full);
        scenario_free(&point->lab);
    }
    free(compare->points);
    *compare = (struct compare){0};
}
