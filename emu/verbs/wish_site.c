/* Where this machine is in a scenario, and what part of a link is its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "configs/suggest.h"
#include "emu/verbs/wish_work.h"

const char *wish_site_name(const struct wish_work *work, size_t site)
{
    return work->scenario.sites[site].name;
}

const struct emu_site *wish_emu_site(const struct wish_work *work, size_t site)
{
    const struct emu_site *found = work->scenario.emu_sites;
    while (found->site != site)
        found++; /* every site has one */
    return found;
}

int wish_find_site(const struct wish_work *work, enum wish_flag flag, size_t *site, struct err *err)
{
    const struct scenario *scenario = &work->scenario;
    const char *name = work->arguments->texts[flag];
    char phrase[128], list[256];
    for (*site = 0; *site < scenario->site_count; ++*site)
        if (!strcmp(scenario->sites[*site].name, name))
            return 0;
    suggest_phrase(name, scenario->sites, scenario->site_count, sizeof *scenario->sites, phrase, sizeof phrase);
    suggest_list(scenario->sites, scenario->site_count, sizeof *scenario->sites, list, sizeof list);
    return wish_flag_fail(flag, err, "no site '%.64s'%s; the scenario has %s", name, phrase, list);
}

static int compare_addresses(const void *left, const void *right)
{
    const struct prefix *a = left, *b = right;
    if (a->family != b->family)
        return a->family == AF_INET ? -1 : 1;
    return memcmp(a->address, b->address, sizeof a->address);
}

/* The first (lowest) of this machine's addresses that the site holds; NULL: none. */
static const struct prefix *address_in(const struct wish_work *work, size_t site)
{
    const struct emu_site *emu = wish_emu_site(work, site);
    for (size_t i = 0; i < work->address_count; i++)
        for (size_t k = 0; k < emu->prefix_count; k++)
            if (prefix_contains(&emu->prefixes[k], &work->addresses[i]))
                return &work->addresses[i];
    return NULL;
}

static int refuse_homeless(const struct wish_work *work, struct err *err)
{
    enum { SHOWN = 4 };
    char sites[256], list[SHOWN * (PREFIX_TEXT_MAX + 2) + 8] = "", text[PREFIX_TEXT_MAX];
    const struct scenario *scenario = &work->scenario;
    size_t used = 0;
    for (size_t i = 0; i < work->address_count && i < SHOWN; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 prefix_format(&work->addresses[i], text, sizeof text));
    suggest_list(scenario->sites, scenario->site_count, sizeof *scenario->sites, sites, sizeof sites);
    return err_set(err, EINVAL,
                   "no address of this machine (%s%s) is in the emu: prefixes of a site of the scenario; name its site "
                   "with --site (%s)",
                   work->address_count ? list : "it has none", work->address_count > SHOWN ? ", ..." : "", sites);
}

static int find_own_site(struct wish_work *work, struct err *err)
{
    char one[PREFIX_TEXT_MAX], other[PREFIX_TEXT_MAX];
    const struct prefix *found = NULL;
    if (work->arguments->texts[WISH_SITE])
        return wish_find_site(work, WISH_SITE, &work->own, err);
    for (size_t site = 0; site < work->scenario.site_count; site++) {
        const struct prefix *address = address_in(work, site);
        if (address && found)
            return err_set(err, EINVAL, "this machine is in two sites: %s in '%s', %s in '%s'; say which with --site",
                           prefix_format(found, one, sizeof one), wish_site_name(work, work->own),
                           prefix_format(address, other, sizeof other), wish_site_name(work, site));
        if (address) {
            found = address;
            work->own = site;
        }
    }
    return found ? 0 : refuse_homeless(work, err);
}

int wish_find_self(struct wish_work *work, struct err *err)
{
    int rc = work->lookups->addresses(work->lookups->context, &work->addresses, &work->address_count, err);
    if (rc)
        return rc;
    if (work->address_count)
        qsort(work->addresses, work->address_count, sizeof *work->addresses, compare_addresses);
    rc = find_own_site(work, err);
    const struct prefix *node = rc ? NULL : address_in(work, work->own);
    if (!rc && !node && work->address_count)
        node = &work->addresses[0];
    if (node)
        work->node = *node;
    return rc;
}

int wish_read_share(struct wish_work *work, struct err *err)
{
    const char *text = work->arguments->texts[WISH_SHARE];
    long nodes = work->arguments->texts[WISH_VIA] ? 1 : work->scenario.sites[work->own].nodes;
    if (!text) {
        work->share = 1 / (double)nodes;
        snprintf(work->share_text, sizeof work->share_text, "1/%ld", nodes);
        return 0;
    }
    bool part = !strncmp(text, "1/", 2) && text[2] >= '1' && text[2] <= '9' &&
                !text[2 + strspn(text + 2, "0123456789")] && strlen(text) < 18;
    if (strchr(text, '/') && !part)
        return wish_flag_fail(WISH_SHARE, err, "'%.40s' is no share; write it like 1/8 or 12.5 %%", text);
    int rc = 0;
    if (part)
        work->share = 1 / strtod(text + 2, NULL);
    else
        rc = wish_take_quantity(work->arguments, WISH_SHARE, DIM_RATIO, &work->share, err);
    if (rc)
        return rc;
    if (!(work->share > 0 && work->share <= 1))
        return wish_flag_fail(WISH_SHARE, err, "'%.40s' is out of range; it can be above 0 %% to 100 %%, like 1/8",
                              text);
    snprintf(work->share_text, sizeof work->share_text, "%.40s", text);
    return 0;
}

/* In one line, because that is how messages are; it is good YAML as it stands. */
int wish_check_addresses(const struct wish_work *work, struct err *err)
{
    const struct scenario *scenario = &work->scenario;
    char list[512] = "";
    size_t used = 0;
    if (scenario->site_count < 2)
        return err_set(err, EINVAL, "%s has one data centre and so no link; at least two are needed",
                       work->arguments->scenario);
    if (scenario->emu_site_count)
        return 0;
    for (size_t i = 0; i < scenario->site_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s{site: %s, prefixes: [10.%zu.0.0/16]}",
                                 i ? ", " : "", wish_site_name(work, i), i + 1);
    return err_set(err, EINVAL, "%s says no addresses of its sites; add (with yours) emu: {sites: [%s]}",
                   work->arguments->scenario, list);
}
