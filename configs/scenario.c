#include "configs/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "configs/keys.h"
#include "configs/override.h"
#include "configs/preset.h"
#include "configs/read.h"
#include "configs/show.h"
#include "configs/yaml.h"

const char *dtype_name(enum dtype dtype)
{
    return dtype_names[dtype];
}

double dtype_bytes(enum dtype dtype)
{
    static const double bytes[DTYPE_COUNT] = {
        [DTYPE_FP32] = 4, [DTYPE_TF32] = 4, [DTYPE_BF16] = 2,   [DTYPE_FP16] = 2,
        [DTYPE_FP8] = 1,  [DTYPE_INT8] = 1, [DTYPE_INT4] = 0.5,
    };
    return bytes[dtype];
}

long site_gpus(const struct site *site)
{
    return site->nodes * site->gpus_per_node;
}

long scenario_gpus(const struct scenario *scenario)
{
    long gpus = 0;
    for (size_t i = 0; i < scenario->site_count; i++)
        gpus += site_gpus(&scenario->sites[i]);
    return gpus;
}

long scenario_micro_batches(const struct scenario *scenario)
{
    const struct training *training = &scenario->training;
    return training->global_batch / (training->data * training->micro_batch);
}

long site_replicas(const struct scenario *scenario, size_t site)
{
    return site_gpus(&scenario->sites[site]) / (scenario->training.tensor * scenario->training.pipeline);
}

void scenario_free(struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->reference_count; i++) {
        free(scenario->references[i].metric);
        table_free_texts(&table_reference, &scenario->references[i]);
    }
    for (size_t i = 0; i < scenario->strategy_count; i++)
        table_free_texts(&table_strategy, &scenario->strategies[i]);
    for (size_t i = 0; i < scenario->site_count; i++) {
        free(scenario->sites[i].gpu.name);
        table_free_texts(&table_gpu, &scenario->sites[i].gpu);
        table_free_texts(&table_site, &scenario->sites[i]);
    }
    for (size_t i = 0; i < scenario->emu_site_count; i++)
        free(scenario->emu_sites[i].prefixes);
    free(scenario->emu_sites);
    free(scenario->references);
    free(scenario->strategies);
    free(scenario->wan);
    free(scenario->sites);
    free(scenario->model.name);
    table_free_texts(&table_model, &scenario->model);
    table_free_texts(&table_calibrate, &scenario->calibrate);
    table_free_texts(&table_scenario, scenario);
    memset(scenario, 0, sizeof *scenario);
}

static int read_tree(struct node *root, const char *const *sets, size_t set_count, struct scenario *scenario,
                     struct err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < set_count; i++)
        rc = override_apply(root, sets[i], err);
    rc = rc ? rc : scenario_read(root, scenario, err);
    rc = rc ? rc : scenario_check(root, scenario, err);
    rc = rc ? rc : scenario_hash(scenario);
    return rc == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : rc;
}

int scenario_parse(const char *file, const char *text, size_t length, const char *const *sets, size_t set_count,
                   struct scenario *scenario, struct err *err)
{
    struct origin origin = {file, false};
    struct mark start = {origin, 1, 1};
    struct node *root = NULL;
    memset(scenario, 0, sizeof *scenario);
    int rc = yaml_parse(origin, 0, text, length, &root, err);
    if (rc)
        return rc;
    if (!root || node_is_empty(root))
        rc = mark_fail(&start, err, "the file is empty; start from a preset: longhaul config show twin-1536");
    else if (root->kind != NODE_MAP)
        rc = node_fail(root, err, "not a scenario; it is a mapping of keys like 'name: my-job', 'datacenters: ...'");
    else
        rc = read_tree(root, sets, set_count, scenario, err);
    node_free(root);
    if (rc)
        scenario_free(scenario);
    return rc;
}

static int unreadable(const char *path, int error, struct err *err)
{
    return err_set(err, error == ENOENT || error == ENOMEM ? error : EINVAL,
                   "%.400s:1:1: cannot be read: %s; give a YAML file or a preset's name", path, strerror(error));
}

/* Reads up to one byte more than yaml_parse() accepts, so that it says what is too large; works on pipes. */
static int read_file(const char *path, char **text, size_t *length, struct err *err)
{
    errno = 0;
    FILE *file = fopen(path, "rb");
    *text = file ? malloc(YAML_BYTES_MAX + 1) : NULL;
    if (*text)
        *length = fread(*text, 1, YAML_BYTES_MAX + 1, file);
    int rc = !*text || ferror(file) ? unreadable(path, errno, err) : 0;
    if (file)
        fclose(file);
    return rc;
}

static int load_preset(const char *name, const char *const *sets, size_t set_count, struct scenario *scenario,
                       struct err *err)
{
    char unknown[512];
    const struct preset *preset = preset_find(PRESET_SCENARIO, name);
    if (!preset)
        return err_set(err, ENOENT, "%.200s:1:1: no such file, and %s", name,
                       preset_unknown(PRESET_SCENARIO, name, unknown, sizeof unknown));
    return scenario_parse(preset->path, preset->text, preset->length, sets, set_count, scenario, err);
}

int scenario_load(const char *path_or_preset, const char *const *sets, size_t set_count, struct scenario *scenario,
                  struct err *err)
{
    struct stat status;
    char *text;
    size_t length = 0;
    memset(scenario, 0, sizeof *scenario);
    if (!strchr(path_or_preset, '/') && stat(path_or_preset, &status))
        return load_preset(path_or_preset, sets, set_count, scenario, err);
    int rc = read_file(path_or_preset, &text, &length, err);
    if (!rc)
        rc = scenario_parse(path_or_preset, text, length, sets, set_count, scenario, err);
    free(text);
    return rc;
}
