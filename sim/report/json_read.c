/* The inverse of json.c. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/part.h"
#include "sim/report/reference.h"
#include "sim/report/result.h"
#include "sim/report/text.h"

#define SCHEMA "longhaul.result/"
#define SCHEMA_VERSION "1"

/* A figure and where it belongs in the struct it is read into. */
struct figure {
    const char *key;
    size_t offset;
};

#define FIGURES(table) table, sizeof(table) / sizeof *(table)

static void read_figures(const struct part *part, const struct figure *figures, size_t count, void *into)
{
    for (size_t i = 0; i < count; i++)
        *(double *)((char *)into + figures[i].offset) = part_number(part, figures[i].key);
}

static const struct figure strategy_figures[] = {
    {"step_s", offsetof(struct strategy_result, step.step_s)},
    {"tokens_per_s", offsetof(struct strategy_result, step.tokens_per_s)},
    {"efficiency", offsetof(struct strategy_result, efficiency)},
    {"exposed_comm_s", offsetof(struct strategy_result, exposed_comm_s)},
    {"slack_s", offsetof(struct strategy_result, slack_s)},
    {"floor_s", offsetof(struct strategy_result, floor_s)},
    {"free_step_s", offsetof(struct strategy_result, free_step_s)},
    {"bubble_s", offsetof(struct strategy_result, bubble_s)},
    {"compute_s", offsetof(struct strategy_result, compute_s)},
    {"slow_start_s", offsetof(struct strategy_result, slow_start_s)},
    {"wan_busy_s", offsetof(struct strategy_result, wan_busy_s)},
};

static const struct figure step_figures[] = {
    {"step_s", offsetof(struct step_result, step_s)},
    {"tokens_per_s", offsetof(struct step_result, tokens_per_s)},
};

static const struct figure measured_figures[] = {
    {"least_s", offsetof(struct measured, least_s)},
    {"most_s", offsetof(struct measured, most_s)},
    {"retransmits", offsetof(struct measured, retransmits)},
    {"wan_wire_bytes", offsetof(struct measured, wan_wire_bytes)},
    {"checked_bytes", offsetof(struct measured, checked_bytes)},
};

static const struct figure wan_figures[] = {
    {"bytes", offsetof(struct wan_result, bytes)},
    {"utilisation", offsetof(struct wan_result, utilisation)},
    {"peak_utilisation", offsetof(struct wan_result, peak_utilisation)},
    {"rate_per_gpu_bit_per_s", offsetof(struct wan_result, rate_per_gpu_bit_per_s)},
};

static const struct figure memory_figures[] = {
    {"parameters_bytes", offsetof(struct memory, parameters)},
    {"gradients_bytes", offsetof(struct memory, gradients)},
    {"optimizer_bytes", offsetof(struct memory, optimizer)},
    {"activations_bytes", offsetof(struct memory, activations)},
    {"total_bytes", offsetof(struct memory, total)},
    {"available_bytes", offsetof(struct memory, available)},
};

static const struct figure calibration_figures[] = {
    {"measured_step_s", offsetof(struct calibration_result, measured_step_s)},
    {"forward_s", offsetof(struct calibration_result, forward_s)},
    {"kernel_efficiency", offsetof(struct calibration_result, kernel_efficiency)},
};

static void out_of_memory(const struct part *part)
{
    if (*part->rc == 0)
        *part->rc = err_set(part->err, ENOMEM, "out of memory while reading a result");
}

static void read_mfu(const struct part *part, double mfu[2])
{
    struct part object = part_object(part, "mfu");
    for (int c = FLOPS_GQA; c <= FLOPS_MHA; c++)
        mfu[c] = part_number(&object, convention_name((enum flops_convention)c));
}

static enum fidelity read_fidelity(const struct part *part)
{
    const char *names[FIDELITY_MEASURED + 1];
    for (int i = 0; i <= FIDELITY_MEASURED; i++)
        names[i] = fidelity_name((enum fidelity)i);
    return (enum fidelity)part_choice(part, "fidelity", names, FIDELITY_MEASURED + 1);
}

static enum bound read_bound(const struct part *part, const char *key)
{
    const char *names[BOUND_COUNT];
    for (int i = 0; i < BOUND_COUNT; i++)
        names[i] = bound_name((enum bound)i);
    return part_text_or_null(part, key) ? (enum bound)part_choice(part, key, names, BOUND_COUNT) : BOUND_COUNT;
}

/* A one-site run, or null where none is known; a measured strategy's is then one too. */
static void read_baseline(const struct part *part, enum fidelity fidelity, struct step_result *baseline)
{
    *baseline = (struct step_result){.step_s = NAN, .tokens_per_s = NAN, .mfu = {NAN, NAN}, .fidelity = fidelity};
    if (part->json != NULL && json_is_null(json_object_get(part->json, "baseline")))
        return;
    struct part object = part_object(part, "baseline");
    read_figures(&object, FIGURES(step_figures), baseline);
    read_mfu(&object, baseline->mfu);
    baseline->fidelity = read_fidelity(&object);
    baseline->messages = part_unsigned(&object, "messages");
}

/* json.c writes names as valid UTF-8, whatever they were. */
static bool same_name(const char *name, const char *text)
{
    char *clean = text_clean(name);
    bool same = clean != NULL && strcmp(clean, text) == 0;
    free(clean);
    return same;
}

static size_t read_site(const struct part *part, const char *key, const struct scenario *scenario)
{
    const char *name = part_text(part, key);
    for (size_t i = 0; i < scenario->site_count; i++)
        if (same_name(scenario->sites[i].name, name))
            return i;
    part_fail(part, key, "the scenario has no site '%s'", name);
    return 0;
}

static size_t read_strategy_name(const struct part *part, const struct scenario *scenario)
{
    const char *name = part_text(part, "name");
    for (size_t i = 0; i < scenario->strategy_count; i++)
        if (same_name(scenario->strategies[i].name, name))
            return i;
    part_fail(part, "name", "the scenario has no strategy '%s'", name);
    return 0;
}

static void read_wan(const struct part *part, const struct scenario *scenario, struct strategy_result *strategy)
{
    struct part links = part_array(part, "wan");
    size_t count = part_count(&links);
    strategy->wan = calloc(count + 1, sizeof *strategy->wan);
    if (strategy->wan == NULL) {
        out_of_memory(part);
        return;
    }
    strategy->wan_count = count;
    for (size_t i = 0; i < count; i++) {
        struct part link = part_item(&links, i);
        strategy->wan[i].from = read_site(&link, "from", scenario);
        strategy->wan[i].to = read_site(&link, "to", scenario);
        read_figures(&link, FIGURES(wan_figures), &strategy->wan[i]);
    }
}

static void read_gains(const struct part *part, double gain_s[BOUND_COUNT])
{
    struct part gains = part_object(part, "gain_s");
    for (int i = 0; i < BOUND_COUNT; i++)
        gain_s[i] = part_number(&gains, bound_name((enum bound)i));
}

static void read_measured(const struct part *part, struct measured *measured)
{
    struct part object = part_object(part, "measured");
    measured->steps = (int)part_integer(&object, "steps", 1, INT_MAX);
    read_figures(&object, FIGURES(measured_figures), measured);
}

static void read_strategy(const struct part *part, const struct scenario *scenario, struct strategy_result *strategy)
{
    strategy->strategy = read_strategy_name(part, scenario);
    read_figures(part, FIGURES(strategy_figures), strategy);
    read_mfu(part, strategy->step.mfu);
    strategy->step.fidelity = read_fidelity(part);
    strategy->step.messages = part_unsigned(part, "messages");
    bool measured = strategy->step.fidelity == FIDELITY_MEASURED;
    if (isnan(strategy->slack_s) && !measured)
        strategy->slack_s = INFINITY;
    strategy->floor_bound = read_bound(part, "floor_by");
    strategy->bound_by = read_bound(part, "bound_by");
    read_gains(part, strategy->gain_s);
    read_wan(part, scenario, strategy);
    read_baseline(part, strategy->step.fidelity, &strategy->baseline);
    struct part memory = part_object(part, "memory");
    read_figures(&memory, FIGURES(memory_figures), &strategy->memory);
    strategy->memory.out_of_memory = part_truth(&memory, "out_of_memory");
    if (measured)
        read_measured(part, &strategy->measured);
}

static void read_strategies(const struct part *document, struct result *result)
{
    struct part strategies = part_array(document, "strategies");
    size_t count = part_count(&strategies);
    result->strategies = calloc(count + 1, sizeof *result->strategies);
    if (result->strategies == NULL)
        out_of_memory(document);
    for (size_t i = 0; i < count && *document->rc == 0; i++) {
        struct part strategy = part_item(&strategies, i);
        read_strategy(&strategy, result->scenario, &result->strategies[result->strategy_count++]);
    }
}

static void read_calibration(const struct part *document, struct calibration_result *calibration)
{
    const char *names[FLOPS_UNSTATED + 1];
    for (int i = 0; i <= FLOPS_UNSTATED; i++)
        names[i] = convention_name((enum flops_convention)i);
    struct part part = part_object(document, "calibration");
    calibration->calibrated = part_truth(&part, "calibrated");
    calibration->convention = (enum flops_convention)part_choice(&part, "convention", names, FLOPS_UNSTATED + 1);
    calibration->runs = (int)part_integer(&part, "runs", 0, INT_MAX);
    read_figures(&part, FIGURES(calibration_figures), calibration);
}

static void read_notes(const struct part *document, struct result *result)
{
    struct part notes = part_array(document, "notes");
    size_t count = part_count(&notes);
    result->notes = calloc(count + 1, sizeof *result->notes);
    if (result->notes == NULL)
        out_of_memory(document);
    for (size_t i = 0; i < count && *document->rc == 0; i++) {
        result->notes[i] = strdup(part_item_text(&notes, i));
        if (result->notes[i] == NULL)
            out_of_memory(document);
        else
            result->note_count++;
    }
}

/* Another schema, another version, another scenario: each is said as what it is. */
static void check_origin(const struct part *document, const struct scenario *scenario)
{
    const char *schema = part_text(document, "schema");
    if (strncmp(schema, SCHEMA, strlen(SCHEMA)) != 0)
        part_fail(document, "schema", "'%s' is not " SCHEMA SCHEMA_VERSION, schema);
    else if (strcmp(schema + strlen(SCHEMA), SCHEMA_VERSION) != 0)
        part_fail(document, "schema", "'%s' is another version than " SCHEMA SCHEMA_VERSION, schema);
    const char *version = part_text(document, "version");
    if (strcmp(version, LONGHAUL_VERSION) != 0)
        part_fail(document, "version", "written by longhaul %s, this is longhaul " LONGHAUL_VERSION, version);
    struct part origin = part_object(document, "scenario");
    const char *hash = part_text(&origin, "hash");
    if (strcmp(hash, scenario->hash) != 0)
        part_fail(&origin, "hash", "%s is a result of another scenario than %s, which has %s", hash, scenario->name,
                  scenario->hash);
}

static void read_other(const struct part *document, struct result *result);

static void read_result(const struct part *document, struct result *result, bool nested)
{
    static const char *const backends[] = {"sim", "emu"};
    check_origin(document, result->scenario);
    if (part_unsigned(document, "seed") != result->scenario->seed)
        part_fail(document, "seed", "the scenario has another");
    result->backend = backends[part_choice(document, "backend", backends, 2)];
    read_calibration(document, &result->calibration);
    read_strategies(document, result);
    read_notes(document, result);
    if (nested && part_has(document, "other_reading"))
        part_fail(document, "other_reading", "there is one already");
    else if (part_has(document, "other_reading"))
        read_other(document, result);
}

static void read_other(const struct part *document, struct result *result)
{
    struct part other = part_object(document, "other_reading");
    result->other_reading = calloc(1, sizeof *result->other_reading);
    if (result->other_reading == NULL) {
        out_of_memory(document);
        return;
    }
    result->other_reading->scenario = result->scenario;
    read_result(&other, result->other_reading, true);
}

int result_from_json(const json_t *json, const struct scenario *scenario, struct result *result, struct err *err)
{
    int rc = 0;
    *result = (struct result){.scenario = scenario, .backend = "sim"};
    struct part document = part_document(json, &rc, err);
    read_result(&document, result, false);
    if (rc < 0) {
        result_free(result);
        *result = (struct result){.scenario = scenario};
    }
    return rc;
}
