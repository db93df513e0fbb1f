#include "sim/report/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/units.h"
#include "sim/report/reference.h"
#include "sim/report/text.h"

enum { TEXT_MAX = 32, INDENT = 2 };

/* A paragraph under construction; text is complete after paragraph_print. */
struct paragraph {
    char *text;
    size_t size;
    FILE *stream; /* NULL when out of memory */
};

/* The stream keeps the addresses of text and size: a paragraph must not be copied. */
static void paragraph_open(struct paragraph *paragraph)
{
    *paragraph = (struct paragraph){0};
    paragraph->stream = open_memstream(&paragraph->text, &paragraph->size);
}

static void __attribute__((format(printf, 2, 3))) say(struct paragraph *paragraph, const char *format, ...)
{
    if (paragraph->stream == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(paragraph->stream, format, arguments);
    va_end(arguments);
}

static void paragraph_print(struct paragraph *paragraph, FILE *out, int width)
{
    bool failed = paragraph->stream == NULL || fclose(paragraph->stream) != 0;
    if (failed)
        fputs("(out of memory: a paragraph is missing here)\n", out);
    else
        text_wrap(out, paragraph->text, width, INDENT);
    free(paragraph->text);
}

static bool sites_alike(const struct scenario *scenario)
{
    const struct site *first = &scenario->sites[0];
    for (size_t i = 1; i < scenario->site_count; i++) {
        const struct site *site = &scenario->sites[i];
        if (site->nodes != first->nodes || site->gpus_per_node != first->gpus_per_node ||
            strcmp(site->gpu.name, first->gpu.name) != 0)
            return false;
    }
    return true;
}

static void say_sites(struct paragraph *paragraph, const struct scenario *scenario)
{
    bool alike = sites_alike(scenario);
    if (alike) {
        const struct site *first = &scenario->sites[0];
        say(paragraph, "%zu x %ld nodes x %ld %s (", scenario->site_count, first->nodes, first->gpus_per_node,
            first->gpu.name);
    }
    for (size_t i = 0; i < scenario->site_count; i++) {
        const struct site *site = &scenario->sites[i];
        say(paragraph, "%s%s", i > 0 ? ", " : "", site->name);
        if (!alike)
            say(paragraph, " %ld nodes x %ld %s", site->nodes, site->gpus_per_node, site->gpu.name);
    }
    char rate[TEXT_MAX];
    double node_bit_per_s = (double)scenario->fabric.nics_per_node * scenario->fabric.nic_bit_per_s;
    say(paragraph, "%s, %s per node", alike ? ")" : "", units_format(node_bit_per_s, DIM_RATE, 3, rate, sizeof rate));
}

static void say_links(struct paragraph *paragraph, const struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->wan_count; i++) {
        const struct wan_link *link = &scenario->wan[i];
        char rate[TEXT_MAX];
        char rtt[TEXT_MAX];
        say(paragraph, "%s%s-%s %ld x %s, RTT %s", i > 0 ? ", " : "; WAN ", scenario->sites[link->between[0]].name,
            scenario->sites[link->between[1]].name, link->waves,
            units_format(link->wave_bit_per_s, DIM_RATE, 3, rate, sizeof rate),
            units_format(link->rtt_s, DIM_TIME, 3, rtt, sizeof rtt));
    }
    if (scenario->wan_count == 0)
        say(paragraph, "; no WAN");
}

static void say_parallelism(struct paragraph *paragraph, const struct scenario *scenario)
{
    const struct training *training = &scenario->training;
    say(paragraph, "; %s, TP %ld x PP %ld", scenario->model.name, training->tensor, training->pipeline);
    if (training->interleave > 1)
        say(paragraph, " (interleave %ld)", training->interleave);
    long micro_batches = training->global_batch / (training->data * training->micro_batch);
    say(paragraph, " x DP %ld; sequence %ld, global batch %ld (%ld micro-batch%s of %ld per replica), %s gradients.",
        training->data, training->sequence, training->global_batch, micro_batches, micro_batches == 1 ? "" : "es",
        training->micro_batch, dtype_name(training->gradient));
}

void explain_question(const struct result *result, FILE *out, int width)
{
    struct paragraph paragraph;
    paragraph_open(&paragraph);
    say(&paragraph, "%s: ", result->scenario->name);
    say_sites(&paragraph, result->scenario);
    say_links(&paragraph, result->scenario);
    say_parallelism(&paragraph, result->scenario);
    if (result->scenario->scale > 1)
        say(&paragraph, " Bytes and rates are divided by %ld.", result->scenario->scale);
    paragraph_print(&paragraph, out, width);
}

void explain_sources(const struct result *result, FILE *out, int width)
{
    const struct scenario *scenario = result->scenario;
    struct paragraph paragraph;
    paragraph_open(&paragraph);
    say(&paragraph, "Sources:");
    for (size_t i = 0; i < scenario->reference_count; i++) {
        const struct reference *reference = &scenario->references[i];
        say(&paragraph, "%s %s %s: %s", i > 0 ? ";" : "", scenario->strategies[reference->strategy].name,
            reference->metric, reference->source);
    }
    say(&paragraph, ".");
    paragraph_print(&paragraph, out, width);
}

void explain_words(const struct result *result, FILE *out, int width)
{
    const char *simulated =
        "Words: floor = what no schedule of the strategy can beat; efficiency = against the same strategy in one "
        "site; exposed = step minus the step with free communication; slack = extra one-way WAN delay that costs "
        "nothing; WAN bytes, mean/peak load = of the busiest direction; messages = fidelity and how many were "
        "simulated.";
    const char *measured =
        "Words: step = the median of those measured on real ranks; messages = how many steps were; WAN bytes, "
        "mean/peak load = of the busiest direction; GPU memory = what the model would take there; - = a measurement "
        "does not tell.";
    text_wrap(out, result_measured(result) ? measured : simulated, width, INDENT);
}

static void say_calibration(struct paragraph *paragraph, const struct result *result)
{
    const struct scenario *scenario = result->scenario;
    const struct calibrate *asked = &scenario->calibrate;
    char step[TEXT_MAX];
    say(paragraph, "calibrated on one measured single-site run (%s, DP %ld, global batch %ld): ",
        scenario->strategies[asked->strategy].name, asked->data, asked->global_batch);
    if (asked->mfu > 0)
        say(paragraph, "%.1f %% MFU read as %s%s, ", 100 * asked->mfu, convention_name(result->calibration.convention),
            asked->convention == FLOPS_UNSTATED ? " (not stated by its source)" : "");
    say(paragraph, "step %s", text_time(result->calibration.measured_step_s, 4, step, sizeof step));
    if (asked->source != NULL)
        say(paragraph, " (%s)", asked->source);
}

static void say_compute(struct paragraph *paragraph, const struct result *result)
{
    if (result_measured(result))
        say(paragraph, "waited for, not computed");
    else if (result->calibration.calibrated)
        say_calibration(paragraph, result);
    else
        say(paragraph, "%s, not measured",
            result->scenario->training.kernel_efficiency_given ? "as the scenario says" : "assumed");
}

void explain_calibration(const struct result *result, FILE *out, int width)
{
    const struct calibration_result *calibration = &result->calibration;
    struct paragraph paragraph;
    paragraph_open(&paragraph);
    char forward[TEXT_MAX];
    say(&paragraph, "Compute time: ");
    say_compute(&paragraph, result);
    if (isfinite(calibration->kernel_efficiency))
        say(&paragraph, "; kernels %s %.1f %% of peak", result_measured(result) ? "are taken to reach" : "reach",
            100 * calibration->kernel_efficiency);
    if (isfinite(calibration->forward_s))
        say(&paragraph, ", one layer's forward pass of a micro-batch takes %s",
            text_time(calibration->forward_s, 3, forward, sizeof forward));
    say(&paragraph, ".");
    paragraph_print(&paragraph, out, width);
}

static const char *strategy_name(const struct result *result, const struct strategy_result *strategy)
{
    return result->scenario->strategies[strategy->strategy].name;
}

static void say_measured(struct paragraph *paragraph, const struct strategy_result *strategy)
{
    const struct measured *measured = &strategy->measured;
    char least[TEXT_MAX], most[TEXT_MAX];
    say(paragraph, "measured on real ranks, median of %d step%s, from %s to %s", measured->steps,
        measured->steps == 1 ? "" : "s", text_time(measured->least_s, 4, least, sizeof least),
        text_time(measured->most_s, 4, most, sizeof most));
}

static void say_evidence(struct paragraph *paragraph, const struct measured *measured)
{
    char wire[TEXT_MAX], checked[TEXT_MAX];
    if (isfinite(measured->wan_wire_bytes))
        say(paragraph, "; TCP sent %s across the WAN a step",
            units_format(measured->wan_wire_bytes, DIM_BYTES, 3, wire, sizeof wire));
    if (isfinite(measured->retransmits))
        say(paragraph, "; %.3g segments a step were sent again", measured->retransmits);
    if (measured->checked_bytes > 0)
        say(paragraph, "; the values of %s were checked",
            units_format(measured->checked_bytes, DIM_BYTES, 3, checked, sizeof checked));
}

void explain_measurements(const struct result *result, FILE *out, int width)
{
    for (size_t i = 0; i < result->strategy_count; i++) {
        const struct strategy_result *strategy = &result->strategies[i];
        struct paragraph paragraph;
        if (strategy->step.fidelity != FIDELITY_MEASURED)
            continue;
        paragraph_open(&paragraph);
        say(&paragraph, "%s: ", strategy_name(result, strategy));
        say_measured(&paragraph, strategy);
        say_evidence(&paragraph, &strategy->measured);
        say(&paragraph, ".");
        paragraph_print(&paragraph, out, width);
    }
}

void explain_memory(const struct result *result, FILE *out, int width)
{
    for (size_t i = 0; i < result->strategy_count; i++) {
        const struct memory *memory = &result->strategies[i].memory;
        if (!memory->out_of_memory)
            continue;
        char total[TEXT_MAX], available[TEXT_MAX], parts[4][TEXT_MAX];
        const double bytes[4] = {memory->parameters, memory->gradients, memory->optimizer, memory->activations};
        for (size_t part = 0; part < 4; part++)
            units_format(bytes[part], DIM_BYTES, 3, parts[part], TEXT_MAX);
        struct paragraph paragraph;
        paragraph_open(&paragraph);
        say(&paragraph,
            "! %s is out of memory: it needs %s per GPU of %s (parameters %s, gradients %s, optimizer %s, "
            "activations %s). Its times are what the run would take if it fitted.",
            strategy_name(result, &result->strategies[i]),
            units_format(memory->total, DIM_BYTES, 3, total, sizeof total),
            units_format(memory->available, DIM_BYTES, 3, available, sizeof available), parts[0], parts[1], parts[2],
            parts[3]);
        paragraph_print(&paragraph, out, width);
    }
}

void explain_other_reading(const struct result *result, FILE *out, int width)
{
    const struct result *other = result->other_reading;
    if (other == NULL)
        return;
    struct paragraph paragraph;
    paragraph_open(&paragraph);
    say(&paragraph, "The calibration's source does not state its flops convention. Read as %s instead:",
        convention_name(other->calibration.convention));
    for (size_t i = 0; i < other->strategy_count; i++) {
        const struct strategy_result *strategy = &other->strategies[i];
        char step[TEXT_MAX];
        say(&paragraph, "%s %s %s at %.1f %%", i > 0 ? ";" : "", strategy_name(other, strategy),
            text_time(strategy->step.step_s, 4, step, sizeof step), 100 * strategy->efficiency);
    }
    say(&paragraph, ".");
    paragraph_print(&paragraph, out, width);
}

void explain_notes(const struct result *result, FILE *out, int width)
{
    for (size_t i = 0; i < result->note_count; i++) {
        struct paragraph paragraph;
        paragraph_open(&paragraph);
        say(&paragraph, "- %s", result->notes[i]);
        paragraph_print(&paragraph, out, width);
    }
}

static const struct {
    const char *remedy;
    bool network;
} remedies[BOUND_COUNT] = {
    [BOUND_COMPUTE] = {.remedy = "faster GPUs or kernels"},
    [BOUND_BUBBLE] = {.remedy = "a smaller pipeline bubble (more micro-batches or interleaving)"},
    [BOUND_WAN_RATE] = {.remedy = "more WAN rate (or fewer bytes across)", .network = true},
    [BOUND_WAN_LATENCY] = {.remedy = "a shorter WAN round trip (or fewer of them)", .network = true},
    [BOUND_WINDOW] = {.remedy = "a larger window or more connections", .network = true},
    [BOUND_FABRIC] = {.remedy = "a faster fabric inside the sites", .network = true},
};

static enum bound largest_gain(const struct strategy_result *strategy, bool network_only)
{
    enum bound best = network_only ? BOUND_WAN_RATE : strategy->bound_by;
    for (int bound = 0; bound < BOUND_COUNT; bound++) {
        if ((remedies[bound].network || !network_only) && strategy->gain_s[bound] > strategy->gain_s[best])
            best = (enum bound)bound;
    }
    return best;
}

static void say_gain(struct paragraph *paragraph, const struct strategy_result *strategy, enum bound bound)
{
    char gain[TEXT_MAX];
    say(paragraph, "%s, at most %s a step (%.1f %%)", remedies[bound].remedy,
        text_time(strategy->gain_s[bound], 3, gain, sizeof gain),
        100 * strategy->gain_s[bound] / strategy->step.step_s);
}

static void say_improvement(struct paragraph *paragraph, const struct strategy_result *strategy)
{
    const double worth_saying = 1e-3; /* of a step */
    enum bound first = largest_gain(strategy, false);
    enum bound network = largest_gain(strategy, true);
    if (!(strategy->gain_s[first] > worth_saying * strategy->step.step_s)) {
        say(paragraph, " Nothing modelled here would improve it by more than 0.1 %%.");
        return;
    }
    say(paragraph, " Most would be gained by ");
    say_gain(paragraph, strategy, first);
    if (first != network && strategy->gain_s[network] > worth_saying * strategy->step.step_s) {
        say(paragraph, "; on the network side by ");
        say_gain(paragraph, strategy, network);
    } else if (first != network) {
        say(paragraph, "; nothing on the network side is worth more than 0.1 %%");
    }
    say(paragraph, ".");
}

/* Another strategy may keep more of its own one-site speed and still be slower: the efficiencies have different
 * baselines. */
static const struct strategy_result *most_efficient(const struct result *result)
{
    const struct strategy_result *best = result_best(result);
    for (size_t i = 0; i < result->strategy_count; i++) {
        const struct strategy_result *strategy = &result->strategies[i];
        if (!strategy->memory.out_of_memory && strategy->efficiency > best->efficiency + 1e-3)
            best = strategy;
    }
    return best;
}

static void say_no_fit(struct paragraph *paragraph, const struct result *result)
{
    const struct strategy_result *smallest = &result->strategies[0];
    for (size_t i = 1; i < result->strategy_count; i++) {
        if (result->strategies[i].memory.total < smallest->memory.total)
            smallest = &result->strategies[i];
    }
    char total[TEXT_MAX];
    char available[TEXT_MAX];
    say(paragraph, "No strategy fits in memory; %s comes closest, with %s per GPU of %s.",
        strategy_name(result, smallest), units_format(smallest->memory.total, DIM_BYTES, 3, total, sizeof total),
        units_format(smallest->memory.available, DIM_BYTES, 3, available, sizeof available));
}

/* A measurement knows what the step took, and not what would have changed it. */
static void say_best(struct paragraph *paragraph, const struct result *result, const struct strategy_result *best)
{
    char step[TEXT_MAX], tokens[TEXT_MAX];
    say(paragraph, "Best: %s, %s a step (%s tokens/s)", strategy_name(result, best),
        text_time(best->step.step_s, 4, step, sizeof step), text_count(best->step.tokens_per_s, tokens, sizeof tokens));
    if (isfinite(best->efficiency))
        say(paragraph, ", %.1f %% of its speed in one site", 100 * best->efficiency);
    if (best->bound_by < BOUND_COUNT)
        say(paragraph, ", bound by %s", bound_name(best->bound_by));
    if (best->step.fidelity == FIDELITY_MEASURED) {
        say(paragraph, ", ");
        say_measured(paragraph, best);
    }
    say(paragraph, ".");
    if (best->bound_by < BOUND_COUNT)
        say_improvement(paragraph, best);
    const struct strategy_result *efficient = most_efficient(result);
    if (efficient != best)
        say(paragraph, " %s keeps more of its own one-site speed (%.1f %%) but is slower.",
            strategy_name(result, efficient), 100 * efficient->efficiency);
}

void explain_best(const struct result *result, FILE *out, int width)
{
    if (result->strategy_count == 0)
        return;
    const struct strategy_result *best = result_best(result);
    struct paragraph paragraph;
    paragraph_open(&paragraph);
    if (best != NULL)
        say_best(&paragraph, result, best);
    else
        say_no_fit(&paragraph, result);
    paragraph_print(&paragraph, out, width);
}
