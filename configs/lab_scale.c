/* A scenario at the scale of the lab. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/scenario.h"
#include "configs/yaml.h"

#define LAB_MTU 1500 /* byte; of the lab's devices */

/* Stages of a replica in the lab: the longest pipeline that divides the scenario's own and the hosts of a site, and
 * leaves as many replicas there as `replicas`. */
static long pipeline_of(long pipeline, long hosts, long replicas)
{
    long longest = 1;
    for (long p = 2; p <= pipeline && p * replicas <= hosts; p++)
        if (pipeline % p == 0 && hosts % p == 0)
            longest = p;
    return longest;
}

/* A stage holds pipeline / lab pipeline times the layers: it computes as long with as many times fewer micro-batches.
 */
static long micro_batches_of(const struct scenario *scenario, long pipeline, long interleave)
{
    double share = (double)pipeline / (double)scenario->training.pipeline;
    long count = lround(fmax(1, (double)scenario_micro_batches(scenario) * share));
    return interleave > 1 ? (count + pipeline - 1) / pipeline * pipeline : count;
}

static void scale_training(struct scenario *scaled, const struct scenario *scenario)
{
    struct training *training = &scaled->training;
    long hosts = scenario->lab.hosts, replicas = site_replicas(scenario, 0) > 1 ? 2 : 1;
    training->pipeline = pipeline_of(training->pipeline, hosts, replicas);
    training->interleave = training->pipeline > 1 ? training->interleave : 1;
    training->data = hosts * (long)scenario->site_count / training->pipeline;
    training->global_batch =
        training->data * training->micro_batch * micro_batches_of(scenario, training->pipeline, training->interleave);
}

/* A node is one rank: its NICs are the rank's share of them. */
static double rank_nic(const struct scenario *scenario)
{
    double least = INFINITY;
    for (size_t i = 0; i < scenario->site_count; i++)
        least = fmin(least, (double)scenario->fabric.nics_per_node * scenario->fabric.nic_bit_per_s *
                                (double)scenario->training.tensor / (double)scenario->sites[i].gpus_per_node);
    return least;
}

static void scale_network(struct scenario *scaled, const struct scenario *scenario)
{
    double divide = (double)scenario->lab.divide;
    for (size_t i = 0; i < scenario->site_count; i++) {
        scaled->sites[i].nodes = scenario->lab.hosts;
        scaled->sites[i].gpus_per_node = scenario->training.tensor;
    }
    for (size_t i = 0; i < scenario->wan_count; i++) {
        scaled->wan[i].wave_bit_per_s *= (double)scenario->wan[i].waves / divide;
        scaled->wan[i].waves = 1;
    }
    scaled->fabric.nics_per_node = 1;
    scaled->fabric.nic_bit_per_s = rank_nic(scenario) / divide;
    scaled->fabric.oversubscription = 1;
    scaled->transport.eager_bytes /= divide;
    scaled->transport.window_bytes /= divide;
    scaled->transport.protocol = PROTOCOL_TCP;
    scaled->transport.mtu_bytes = LAB_MTU;
    scaled->scale *= scenario->lab.divide;
    scaled->lab.divide = 1;
}

static bool at_lab_scale(const struct scenario *scenario)
{
    const struct transport_settings *transport = &scenario->transport;
    bool same = transport->protocol == PROTOCOL_TCP && transport->mtu_bytes == LAB_MTU && scenario->lab.divide == 1 &&
                scenario->fabric.nics_per_node == 1 && !scenario->calibrate.present &&
                scenario->fabric.oversubscription <= 1;
    for (size_t i = 0; i < scenario->site_count; i++)
        same = same && scenario->sites[i].nodes == scenario->lab.hosts &&
               scenario->sites[i].gpus_per_node == scenario->training.tensor;
    for (size_t i = 0; i < scenario->wan_count; i++)
        same = same && scenario->wan[i].waves == 1;
    return same;
}

/* Through the text and back: all that a user's scenario is checked for holds for this one too. */
static int check_again(const struct scenario *made, struct scenario *scaled, struct err *err)
{
    struct err why = {""};
    char *text = NULL;
    json_t *json = scenario_to_json(made);
    int rc = json ? yaml_emit(json, &text, err) : err_set(err, ENOMEM, "out of memory");
    json_decref(json);
    if (!rc && (rc = scenario_parse("lab scale", text, strlen(text), NULL, 0, scaled, &why)))
        err_set(err, -rc, "%s at the scale of the lab: %s", made->name, why.text);
    free(text);
    return rc;
}

int scenario_lab_scale(const struct scenario *scenario, double kernel_efficiency, struct scenario *scaled,
                       struct err *err)
{
    struct scenario made = *scenario; /* borrows all but what is replaced here */
    if (at_lab_scale(scenario))
        return check_again(scenario, scaled, err);
    made.sites = calloc(scenario->site_count, sizeof *made.sites);
    made.wan = calloc(scenario->wan_count + 1, sizeof *made.wan);
    int rc = made.sites && made.wan ? 0 : err_set(err, ENOMEM, "out of memory");
    if (!rc) {
        memcpy(made.sites, scenario->sites, scenario->site_count * sizeof *made.sites);
        if (scenario->wan_count > 0) /* else there is no list */
            memcpy(made.wan, scenario->wan, scenario->wan_count * sizeof *made.wan);
        scale_training(&made, scenario);
        scale_network(&made, scenario);
        made.calibrate.present = false;
        made.reference_count = 0;
        made.emu_site_count = 0;
        if (kernel_efficiency > 0)
            made.training.kernel_efficiency = kernel_efficiency;
        rc = check_again(&made, scaled, err);
    }
    free(made.sites);
    free(made.wan);
    return rc;
}
