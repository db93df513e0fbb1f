/* A scenario file; lines after a form feed are --set texts. What is refused says so in one line with a position; what
 * is accepted can be shown and loaded again as the same scenario. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "configs/scenario.h"
#include "configs/yaml.h"
#include "tests/configs/fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_accepted(const struct scenario *scenario)
{
    struct scenario again;
    struct err err = {""};
    char *yaml = NULL;
    json_t *json = scenario_to_json(scenario);
    require(json && !yaml_emit(json, &yaml, &err));
    require(!scenario_parse("dump", yaml, strlen(yaml), NULL, 0, &again, &err));
    require(!strcmp(scenario->hash, again.hash));
    json_t *json_again = scenario_to_json(&again);
    require(json_equal(json, json_again)); /* the hash leaves some of it out */
    json_decref(json_again);
    free(yaml);
    json_decref(json);
    scenario_free(&again);
}

enum { SETS_MAX = 4 };

/* Cuts the lines of text apart. */
static size_t split_sets(char *text, const char **sets)
{
    size_t count = 0;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line && count < SETS_MAX; line = strtok_r(NULL, "\n", &rest))
        sets[count++] = line;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *sets[SETS_MAX];
    const uint8_t *feed = memchr(data, '\f', size);
    size_t length = feed ? (size_t)(feed - data) : size;
    char *tail = feed ? strndup((const char *)feed + 1, size - length - 1) : NULL;
    char *text = malloc(length + 1);
    memcpy(text, data, length);
    struct scenario scenario;
    struct err err = {""};
    int rc = scenario_parse("f", text, length, sets, tail ? split_sets(tail, sets) : 0, &scenario, &err);
    if (rc)
        require(rc == -EINVAL && strchr(err.text, ':') && !strchr(err.text, '\n') && !scenario.sites);
    else
        check_accepted(&scenario);
    scenario_free(&scenario);
    free(text);
    free(tail);
    return 0;
}
