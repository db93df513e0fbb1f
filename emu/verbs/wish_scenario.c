/* A scenario to wishes: a path for each other site (or for one link), what was derived as notes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configs/suggest.h"
#include "configs/units.h"
#include "emu/verbs/wish_work.h"

static uint64_t seed_of(const struct wish_work *work, size_t remote)
{
    uint64_t seed = wish_mix(work->scenario.seed, work->ingress ? remote : work->own);
    seed = wish_mix(seed, work->ingress ? work->own : remote);
    for (size_t i = 0; !work->arguments->texts[WISH_VIA] && i < sizeof work->node.address; i++)
        seed = wish_mix(seed, work->node.address[i]);
    return seed;
}

static int note_times(const struct wish_work *work, const struct wish_route *route, const struct path *path,
                      struct wishes *wishes, struct err *err)
{
    double rtt_s = 0, jitter_s = 0;
    for (size_t i = 0; i < route->count; i++) {
        rtt_s += work->scenario.wan[route->links[i]].rtt_s;
        jitter_s = hypot(jitter_s, work->scenario.wan[route->links[i]].jitter_s);
    }
    char rtt[32], one_way[32], jitter[32], jitter_one_way[32];
    units_format(rtt_s, DIM_TIME, 6, rtt, sizeof rtt);
    units_format(rtt_s / 2, DIM_TIME, 6, one_way, sizeof one_way);
    units_format(jitter_s, DIM_TIME, 4, jitter, sizeof jitter);
    units_format(jitter_s / M_SQRT2, DIM_TIME, 4, jitter_one_way, sizeof jitter_one_way);
    if (jitter_s > 0)
        return wishes_note(wishes, err, "%s: RTT %s = 2 x %s one way; jitter %s sd RTT = %s sd one way", path->name,
                           rtt, one_way, jitter, jitter_one_way);
    return wishes_note(wishes, err, "%s: RTT %s = 2 x %s one way", path->name, rtt, one_way);
}

static int note_rate(const struct wish_work *work, const struct wish_route *route, const struct path *path,
                     struct wishes *wishes, struct err *err)
{
    double whole = INFINITY;
    char link[32], own[32];
    for (size_t i = 0; i < route->count; i++) {
        const struct wan_link *wan = &work->scenario.wan[route->links[i]];
        whole = fmin(whole, (double)wan->waves * wan->wave_bit_per_s);
    }
    if (isinf(whole))
        return 0;
    units_format(whole, DIM_RATE, 4, link, sizeof link);
    units_format(whole * work->share, DIM_RATE, 4, own, sizeof own);
    if (work->share < 1)
        return wishes_note(wishes, err, "%s: %s one way: this %s's %s of %s; --share changes it", path->name, own,
                           work->arguments->texts[WISH_VIA] ? "router" : "node", work->share_text, link);
    return wishes_note(wishes, err, "%s: %s one way: the whole link; --share changes it", path->name, link);
}

static int note_links(const struct wish_work *work, const struct wish_route *route, const struct path *path,
                      const char *approximation, struct wishes *wishes, struct err *err)
{
    char list[512] = "";
    size_t used = 0, site = work->own;
    if (route->count < 2)
        return 0;
    for (size_t i = 0; i + 1 < route->count && used < sizeof list; i++) {
        site = wish_peer(&work->scenario.wan[route->links[i]], site);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", wish_site_name(work, site));
    }
    return wishes_note(wishes, err, "%s: over %s, %zu links as one%s%s", path->name, list, route->count,
                       approximation ? "; " : "", approximation ? approximation : "");
}

/* Links in a row as one impairment, this node's share of each. */
static int combine(const struct wish_work *work, const struct wish_route *route, uint64_t seed,
                   struct impairment *impairment, const char **approximation, struct err *err)
{
    const struct wan_link *wan = work->scenario.wan;
    int rc = impairment_of_link(&wan[route->links[0]], seed, work->share, impairment, err);
    for (size_t i = 1; !rc && i < route->count; i++) {
        struct impairment next;
        const char *note = NULL;
        rc = impairment_of_link(&wan[route->links[i]], seed, work->share, &next, err);
        rc = rc ? rc : impairment_append(impairment, &next, &note, err);
        *approximation = note ? note : *approximation;
        impairment_free(&next);
    }
    return rc ? rc : wish_options_limit(work->arguments, impairment, err);
}

static int name_path(const struct wish_work *work, size_t remote, struct path *path, struct err *err)
{
    size_t from = work->ingress ? remote : work->own, to = work->ingress ? work->own : remote;
    if (asprintf(&path->name, "%s -> %s", wish_site_name(work, from), wish_site_name(work, to)) >= 0)
        return 0;
    path->name = NULL;
    return err_set(err, ENOMEM, "out of memory");
}

static int add_prefixes(const struct wish_work *work, size_t site, struct path *path, struct err *err)
{
    const struct emu_site *emu = wish_emu_site(work, site);
    struct prefix *grown = realloc(path->prefixes, (path->prefix_count + emu->prefix_count) * sizeof *grown);
    if (!grown)
        return err_set(err, ENOMEM, "out of memory");
    path->prefixes = grown;
    memcpy(grown + path->prefix_count, emu->prefixes, emu->prefix_count * sizeof *grown);
    path->prefix_count += emu->prefix_count;
    return 0;
}

/* What a path needs beside its prefixes, and its notes; then to the devices. */
static int finish_path(const struct wish_work *work, const struct wish_route *route, size_t remote, struct path *path,
                       struct wishes *wishes, struct err *err)
{
    const char *approximation = NULL;
    int rc = name_path(work, remote, path, err);
    if (rc)
        return rc;
    rc = combine(work, route, seed_of(work, remote), &path->impairment, &approximation, err);
    if (rc) {
        err_prefix(err, "%s", path->name);
        return rc;
    }
    rc = note_links(work, route, path, approximation, wishes, err);
    rc = rc ? rc : note_times(work, route, path, wishes, err);
    rc = rc ? rc : note_rate(work, route, path, wishes, err);
    return rc ? rc : wishes_add_path(work->arguments, work->lookups, path, true, wishes, err);
}

static int add_site(const struct wish_work *work, size_t remote, struct wishes *wishes, struct err *err)
{
    struct path path = {0};
    struct wish_route route;
    wish_find_route(&work->scenario, work->own, remote, &route);
    int rc = add_prefixes(work, remote, &path, err);
    rc = rc ? rc : finish_path(work, &route, remote, &path, wishes, err);
    wish_path_free(&path);
    return rc;
}

/* The direct link with the smallest RTT; the lowest index among equals. */
static int find_via_link(const struct wish_work *work, size_t via, size_t *link, struct err *err)
{
    const struct scenario *scenario = &work->scenario;
    const char *peers[SITES_MAX];
    size_t count = 0;
    bool found = false;
    for (size_t i = 0; i < scenario->wan_count; i++) {
        const struct wan_link *wan = &scenario->wan[i];
        if (wan->between[0] != work->own && wan->between[1] != work->own)
            continue;
        size_t peer = wish_peer(wan, work->own);
        if (peer == via && (!found || wan->rtt_s < scenario->wan[*link].rtt_s)) {
            *link = i;
            found = true;
        }
        if (count < SITES_MAX)
            peers[count++] = wish_site_name(work, peer);
    }
    if (found)
        return 0;
    char list[256];
    suggest_list(peers, count, sizeof *peers, list, sizeof list);
    return wish_flag_fail(WISH_VIA, err, "no link from '%s' to '%s'; its links lead to %s",
                          wish_site_name(work, work->own), wish_site_name(work, via), list);
}

/* One link as such, for all that is reached over it. Its own far end always is one of those: where the scenario has a
 * shorter way there, nothing of this traffic comes by. */
static int add_via(const struct wish_work *work, struct wishes *wishes, struct err *err)
{
    struct path path = {0};
    struct wish_route route = {.count = 1};
    size_t via = 0;
    if (!work->arguments->texts[WISH_DEV])
        return wish_flag_fail(WISH_VIA, err, "needs --dev: the router's device at this end of the link");
    int rc = wish_find_site(work, WISH_VIA, &via, err);
    if (!rc && via == work->own)
        rc = wish_flag_fail(WISH_VIA, err, "'%s' is this machine's own site; name the one at the other end",
                            wish_site_name(work, via));
    rc = rc ? rc : find_via_link(work, via, &route.links[0], err);
    for (size_t site = 0; !rc && site < work->scenario.site_count; site++) {
        struct wish_route way = {0};
        if (site != work->own)
            wish_find_route(&work->scenario, work->own, site, &way);
        if (site == via || (way.count && way.links[0] == route.links[0]))
            rc = add_prefixes(work, site, &path, err);
    }
    rc = rc ? rc : finish_path(work, &route, via, &path, wishes, err);
    wish_path_free(&path);
    return rc;
}

static int refuse_single_flags(const struct wish_arguments *arguments, struct err *err)
{
    static const struct {
        enum wish_flag flag;
        const char *instead; /* NULL: a scenario has no such figure */
    } flags[] = {
        {WISH_DELAY, "--set wan.rtt=20ms (both ways)"},
        {WISH_JITTER, "--set wan.jitter=1ms (of the RTT)"},
        {WISH_JITTER_SHAPE, "--set wan.jitter_shape=pareto"},
        {WISH_JITTER_TABLE, NULL},
        {WISH_CORRELATION, NULL},
        {WISH_LOSS, "--set wan.loss=0.1%"},
        {WISH_LOSS_BURST, "--set wan.loss_burst=10"},
        {WISH_LOSS_IN_BURST, NULL},
        {WISH_REORDER, NULL},
        {WISH_DUPLICATE, NULL},
        {WISH_CORRUPT, NULL},
        {WISH_RATE, "--set wan.wave_rate=100Gb/s, or --share"},
        {WISH_SEED, "--set seed=7"},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!arguments->texts[flags[i].flag])
            continue;
        if (flags[i].instead)
            return wish_flag_fail(flags[i].flag, err, "not together with a SCENARIO, which has the figure; write %s",
                                  flags[i].instead);
        return wish_flag_fail(flags[i].flag, err,
                              "not together with a SCENARIO, which has no such figure; use flags alone");
    }
    if (arguments->to_count)
        return err_set(err, EINVAL,
                       "--to: not together with a SCENARIO, whose emu: lists the addresses; leave one of them out");
    return 0;
}

static int note_way_back(const struct wish_work *work, struct wishes *wishes, struct err *err)
{
    if (work->arguments->texts[WISH_VIA])
        return wishes_note(wishes, err,
                           "this is one way; the same at the router of '%s' gives the way back, and so the RTT",
                           work->arguments->texts[WISH_VIA]);
    return wishes_note(wishes, err,
                       "this is one way; the same command on the nodes of the other site%s gives the way back, and so "
                       "the RTT",
                       work->scenario.site_count > 2 ? "s" : "");
}

static int note_loss(const struct wish_work *work, struct wishes *wishes, struct err *err)
{
    bool losing = false;
    for (size_t i = 0; i < wishes->count; i++)
        for (size_t k = 0; k < wishes->wishes[i].path_count; k++)
            losing |= wishes->wishes[i].paths[k].impairment.loss.kind != LOSS_NONE;
    if (!losing || work->ingress || work->arguments->texts[WISH_GSO_OFF])
        return 0;
    return wishes_note(wishes, err, "%s", WISH_NOTE_GSO);
}

static int resolve(struct wish_work *work, struct wishes *wishes, struct err *err)
{
    int rc = wish_check_addresses(work, err);
    rc = rc ? rc : wish_find_self(work, err);
    rc = rc ? rc : wish_read_share(work, err);
    if (!rc && work->arguments->texts[WISH_VIA])
        rc = add_via(work, wishes, err);
    else
        for (size_t site = 0; !rc && site < work->scenario.site_count; site++)
            rc = site == work->own ? 0 : add_site(work, site, wishes, err);
    rc = rc ? rc : note_loss(work, wishes, err);
    return rc ? rc : note_way_back(work, wishes, err);
}

int wishes_of_scenario(const struct wish_arguments *arguments, const struct wish_lookups *lookups,
                       struct wishes *wishes, struct err *err)
{
    const char *at = arguments->texts[WISH_AT];
    struct wish_work work = {.arguments = arguments, .lookups = lookups, .ingress = at && !strcmp(at, "ingress")};
    int rc = refuse_single_flags(arguments, err);
    if (!rc)
        rc = scenario_load(arguments->scenario, arguments->sets.texts, arguments->sets.count, &work.scenario, err);
    rc = rc ? rc : resolve(&work, wishes, err);
    free(work.addresses);
    scenario_free(&work.scenario);
    return rc;
}
