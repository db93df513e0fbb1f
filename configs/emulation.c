/* The sections that only an emulation needs: emu (addresses of a real cluster) and lab (scale of the virtual one). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "configs/keys.h"
#include "configs/prefix.h"
#include "configs/read.h"

enum { LAB_HOSTS_USUAL = 4, IPV6_LENGTHS = 129 };
#define LAB_RATE_USUAL 1e9 /* bit/s */

static int read_prefix(const struct node *node, struct prefix *prefix, struct err *err)
{
    struct err why = {""};
    if (node->kind != NODE_SCALAR)
        return node_fail(
            node, err, "a prefix is one value, like 10.1.0.0/16; quote an IPv6 address that ends in ':' (\"fd00::\")");
    return prefix_parse(node->text, prefix, &why) ? node_fail(node, err, "prefixes: %s", why.text) : 0;
}

static int read_prefixes(const struct node *place, const struct node *list, struct emu_site *site, struct err *err)
{
    if (!list || list->kind != NODE_LIST)
        return node_fail(list ? list : place, err,
                         "the addresses of a site are a list; write 'prefixes: [10.1.0.0/16, fd00:1::/32]'");
    if (!list->count || list->count > EMU_PREFIXES_MAX)
        return node_fail(list, err, "prefixes has %zu elements; 1 to %d are possible", list->count, EMU_PREFIXES_MAX);
    site->prefixes = calloc(list->count, sizeof *site->prefixes);
    if (!site->prefixes)
        return err_set(err, ENOMEM, "out of memory");
    int rc = 0;
    for (const struct node *node = list->first; !rc && node; node = node->next)
        rc = read_prefix(node, &site->prefixes[site->prefix_count++], err);
    return rc;
}

static int read_emu_site(const struct node *node, const struct scenario *scenario, struct emu_site *site,
                         struct err *err)
{
    int rc = table_check_keys(&table_emu_site, node, err);
    if (rc)
        return rc;
    const struct node *name = node_get(node, "site");
    rc = name ? read_site_name(scenario, name, &site->site, err)
              : node_fail(node, err, "a site's addresses need 'site': the name of a data centre");
    for (const struct emu_site *earlier = scenario->emu_sites; !rc && earlier < site; earlier++)
        if (earlier->site == site->site)
            rc = node_fail(name, err, "'%s' is given twice; put all its addresses into one list",
                           scenario->sites[site->site].name);
    return rc ? rc : read_prefixes(node, node_get(node, "prefixes"), site, err);
}

static int refuse_missing_site(const struct node *list, const struct scenario *scenario, struct err *err)
{
    bool given[SITES_MAX] = {false};
    for (size_t i = 0; i < scenario->emu_site_count; i++)
        given[scenario->emu_sites[i].site] = true;
    for (size_t i = 0; i < scenario->site_count; i++)
        if (!given[i])
            return node_fail(list, err, "no addresses for '%s'; add '- {site: %s, prefixes: [...]}'",
                             scenario->sites[i].name, scenario->sites[i].name);
    return 0;
}

static int read_emu(const struct node *root, struct scenario *scenario, struct err *err)
{
    const struct node *node = node_get(root, "emu");
    if (!node || node_is_empty(node))
        return 0;
    int rc = table_check_keys(&table_emu, node, err);
    if (rc)
        return rc;
    const struct node *list = node_get(node, "sites");
    if (!list || list->kind != NODE_LIST)
        return node_fail(list ? list : node, err,
                         "emu needs 'sites', a list; write '- {site: NAME, prefixes: [10.1.0.0/16]}' for each site");
    if (list->count > SITES_MAX)
        return node_fail(list, err, "sites has %zu elements; at most %d are possible", list->count, SITES_MAX);
    scenario->emu_sites = calloc(list->count ? list->count : 1, sizeof *scenario->emu_sites);
    if (!scenario->emu_sites)
        return err_set(err, ENOMEM, "out of memory");
    for (const struct node *element = list->first; !rc && element; element = element->next)
        rc = read_emu_site(element, scenario, &scenario->emu_sites[scenario->emu_site_count++], err);
    return rc ? rc : refuse_missing_site(list, scenario, err);
}

/* The site with the fewest nodes. */
static const struct site *smallest_site(const struct scenario *scenario)
{
    const struct site *smallest = &scenario->sites[0];
    for (size_t i = 1; i < scenario->site_count; i++)
        if (scenario->sites[i].nodes < smallest->nodes)
            smallest = &scenario->sites[i];
    return smallest;
}

/* The smallest power of 10 that brings every link to 1 Gb/s or less; a link without limit stays without one. */
static long usual_divide(const struct scenario *scenario)
{
    double fastest = 0;
    long divide = 1;
    for (size_t i = 0; i < scenario->wan_count; i++) {
        double rate = (double)scenario->wan[i].waves * scenario->wan[i].wave_bit_per_s;
        if (isfinite(rate) && rate > fastest)
            fastest = rate;
    }
    while (fastest > LAB_RATE_USUAL * (double)divide)
        divide *= 10;
    return divide;
}

static int read_lab(const struct node *root, struct scenario *scenario, struct err *err)
{
    const struct node *node = node_get(root, "lab");
    long nodes = smallest_site(scenario)->nodes;
    scenario->lab.hosts = nodes < LAB_HOSTS_USUAL ? nodes : LAB_HOSTS_USUAL;
    scenario->lab.divide = usual_divide(scenario);
    return table_read(&table_lab, node && node_is_empty(node) ? NULL : node, root, &scenario->lab, err);
}

int emulation_read(const struct node *root, struct scenario *scenario, struct err *err)
{
    int rc = read_emu(root, scenario, err);
    return rc ? rc : read_lab(root, scenario, err);
}

static int check_lab(const struct node *root, const struct scenario *scenario, struct err *err)
{
    const struct site *smallest = smallest_site(scenario);
    if (scenario->lab.hosts <= smallest->nodes)
        return 0;
    return node_fail(node_nearest(root, "lab.hosts"), err, "%ld hosts a site, but '%s' has %ld node%s; %ld would fit",
                     scenario->lab.hosts, smallest->name, smallest->nodes, smallest->nodes == 1 ? "" : "s",
                     smallest->nodes);
}

/* A prefix and where it is in the file. */
struct place {
    const struct prefix *prefix;
    size_t site, index; /* of emu_sites and of its prefixes */
};

/* By address, a prefix before those inside it; equal ones as in the file. */
static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->prefix->family != b->prefix->family)
        return a->prefix->family < b->prefix->family ? -1 : 1;
    int order = memcmp(a->prefix->address, b->prefix->address, sizeof a->prefix->address);
    if (order)
        return order;
    if (a->prefix->length != b->prefix->length)
        return a->prefix->length < b->prefix->length ? -1 : 1;
    if (a->site != b->site)
        return a->site < b->site ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Points at the one that comes later in the file. */
static int refuse_overlap(const struct node *root, const struct scenario *scenario, const struct place *a,
                          const struct place *b, struct err *err)
{
    bool swapped = b->site < a->site || (b->site == a->site && b->index < a->index);
    const struct place *earlier = swapped ? b : a, *later = swapped ? a : b;
    const struct node *sites = node_get(node_get(root, "emu"), "sites");
    const struct node *node = node_at(node_get(node_at(sites, later->site), "prefixes"), later->index);
    const char *earlier_site = scenario->sites[scenario->emu_sites[earlier->site].site].name;
    const char *later_site = scenario->sites[scenario->emu_sites[later->site].site].name;
    char text[PREFIX_TEXT_MAX], other[PREFIX_TEXT_MAX];
    prefix_format(later->prefix, text, sizeof text);
    prefix_format(earlier->prefix, other, sizeof other);
    if (earlier->site == later->site)
        return node_fail(node, err, "%s is given twice for '%s'; remove one", text, later_site);
    return node_fail(node, err, "%s of '%s' and %s of '%s' overlap; an address belongs to one site", text, later_site,
                     other, earlier_site);
}

/* In sorted order a prefix stands behind all that contain it, and those are open when it comes: a stack, of which only
 * the top needs a look as all of it belongs to one site. */
static int check_sorted(const struct node *root, const struct scenario *scenario, const struct place *places,
                        size_t count, struct err *err)
{
    const struct place *open[IPV6_LENGTHS];
    size_t depth = 0;
    for (size_t i = 0; i < count; i++) {
        while (depth && !prefix_contains(open[depth - 1]->prefix, places[i].prefix))
            depth--;
        const struct place *outer = depth ? open[depth - 1] : NULL;
        if (outer && (outer->site != places[i].site || outer->prefix->length == places[i].prefix->length))
            return refuse_overlap(root, scenario, outer, &places[i], err);
        open[depth++] = &places[i];
    }
    return 0;
}

static int check_prefixes(const struct node *root, const struct scenario *scenario, struct err *err)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < scenario->emu_site_count; i++)
        count += scenario->emu_sites[i].prefix_count;
    if (!count)
        return 0;
    struct place *places = calloc(count, sizeof *places);
    if (!places)
        return err_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < scenario->emu_site_count; i++)
        for (size_t k = 0; k < scenario->emu_sites[i].prefix_count; k++)
            places[used++] = (struct place){&scenario->emu_sites[i].prefixes[k], i, k};
    qsort(places, count, sizeof *places, compare_places);
    int rc = check_sorted(root, scenario, places, count, err);
    free(places);
    return rc;
}

int emulation_check(const struct node *root, const struct scenario *scenario, struct err *err)
{
    int rc = check_prefixes(root, scenario, err);
    return rc ? rc : check_lab(root, scenario, err);
}
