#include "sim/engine/platform.h"

#include <errno.h>
#include <math.h>

double platform_unlimited(void)
{
    return 1e18;
}

static double limited(double byte_per_s)
{
    return fmin(byte_per_s, platform_unlimited());
}

double platform_wan_rate(const struct layout *layout, const struct ideal *ideal, long link)
{
    const struct wan_link *wan = &layout->scenario->wan[link];
    if (ideal->wan_rate)
        return platform_unlimited();
    return limited(layout->payload_share * (double)wan->waves * wan->wave_bit_per_s / 8 / (double)layout->wan_flows);
}

static double narrowest_wave(const struct layout *layout, size_t from, size_t to)
{
    const struct scenario *scenario = layout->scenario;
    double least = INFINITY;
    while (from != to) {
        long link = layout->routes.next_link[from * scenario->site_count + to];
        least = fmin(least, layout->payload_share * scenario->wan[link].wave_bit_per_s / 8);
        from = route_other_end(scenario, link, from);
    }
    return least;
}

double platform_pair_cap(const struct layout *layout, const struct ideal *ideal, size_t from, size_t to)
{
    const struct transport_settings *transport = &layout->scenario->transport;
    double rtt_s = layout->routes.rtt_s[from * layout->scenario->site_count + to];
    double nic = layout->wan_skips_nic && !ideal->fabric ? layout->nic_byte_per_s : INFINITY;
    double wave = ideal->wan_rate ? nic : narrowest_wave(layout, from, to);
    double window = ideal->window ? INFINITY : transport->window_bytes / (rtt_s + 2 * ideal->extra_wan_delay_s);
    return limited((double)transport->connections * fmin(wave, window));
}

const char *platform_wan_name(const struct scenario *scenario, long link, char *buffer)
{
    const struct wan_link *wan = &scenario->wan[link];
    snprintf(buffer, LAYOUT_HOST_MAX * 2, "wan%ld-%.64s-%.64s", link, scenario->sites[wan->between[0]].name,
             scenario->sites[wan->between[1]].name);
    return buffer;
}

static const char *cap_name(const struct scenario *scenario, size_t from, size_t to, char *buffer)
{
    snprintf(buffer, LAYOUT_HOST_MAX * 2, "cap-%.64s-%.64s", scenario->sites[from].name, scenario->sites[to].name);
    return buffer;
}

static void write_host(const struct layout *layout, double rate, double latency_s, int rank, FILE *out)
{
    char host[LAYOUT_HOST_MAX];
    layout_host(layout, rank, host);
    fprintf(out, "      <host id=\"%s\" speed=\"1Gf\"/>\n", host);
    fprintf(out,
            "      <link id=\"%s-nic\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" sharing_policy=\"SPLITDUPLEX\"/>\n",
            host, rate, latency_s);
    fprintf(out, "      <host_link id=\"%s\" up=\"%s-nic_UP\" down=\"%s-nic_DOWN\"/>\n", host, host, host);
}

/* The core of a site that is oversubscribed is one link that all its traffic between nodes shares. */
static void write_core(const struct layout *layout, const struct ideal *ideal, size_t site, FILE *out)
{
    const struct scenario *scenario = layout->scenario;
    const struct fabric *fabric = &scenario->fabric;
    if (fabric->oversubscription <= 1 || ideal->fabric)
        return;
    double rate = layout->payload_share * (double)scenario->sites[site].nodes * (double)fabric->nics_per_node *
                  fabric->nic_bit_per_s / 8 / fabric->oversubscription / (double)layout->fold;
    fprintf(out, "      <backbone id=\"%.64s-core\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n",
            scenario->sites[site].name, limited(rate));
}

/* Where flows between sites leave the NICs out, they run between these hosts, each the gateway of a zone of its own: a
 * route then is the WAN's links and nothing else. */
static void write_border(const char *site, FILE *out)
{
    fprintf(out,
            "    <zone id=\"%s-edge\" routing=\"Full\">\n      <host id=\"%s-border\" speed=\"1Gf\"/>\n    </zone>\n",
            site, site);
}

static void write_site(const struct layout *layout, const struct ideal *ideal, bool latencies, size_t site, FILE *out)
{
    double rate = ideal->fabric ? platform_unlimited() : limited(layout->nic_byte_per_s);
    const char *name = layout->scenario->sites[site].name;
    fprintf(out, "    <zone id=\"%s\" routing=\"Cluster\">\n", name);
    for (int i = 0; i < layout->count; i++) {
        int rank = layout_rank(layout, i);
        if (placement_site(&layout->placement, rank) == site)
            write_host(layout, rate, latencies ? layout->hop_latency_s / 2 : 0, rank, out);
    }
    write_core(layout, ideal, site, out);
    fprintf(out, "      <router id=\"%s-router\"/>\n    </zone>\n", name);
    if (layout->wan_skips_nic && !latencies)
        write_border(name, out);
}

static void write_route(const struct layout *layout, bool latencies, size_t from, size_t to, FILE *out)
{
    const struct scenario *scenario = layout->scenario;
    char name[LAYOUT_HOST_MAX * 2];
    const char *a = scenario->sites[from].name, *b = scenario->sites[to].name;
    bool edges = layout->wan_skips_nic && !latencies;
    const char *zone = edges ? "-edge" : "", *gateway = edges ? "border" : "router";
    fprintf(out, "    <zoneRoute src=\"%s%s\" dst=\"%s%s\" gw_src=\"%s-%s\" gw_dst=\"%s-%s\" symmetrical=\"NO\">\n", a,
            zone, b, zone, a, gateway, b, gateway);
    if (latencies)
        fprintf(out, "      <link_ctn id=\"%s\"/>\n", cap_name(scenario, from, to, name));
    for (size_t at = from; at != to;) {
        long link = layout->routes.next_link[at * scenario->site_count + to];
        fprintf(out, "      <link_ctn id=\"%s\" direction=\"%s\"/>\n", platform_wan_name(scenario, link, name),
                scenario->wan[link].between[0] == at ? "UP" : "DOWN");
        at = route_other_end(scenario, link, at);
    }
    fprintf(out, "    </zoneRoute>\n");
}

static void write_wan(const struct layout *layout, const struct ideal *ideal, bool latencies, FILE *out)
{
    const struct scenario *scenario = layout->scenario;
    size_t sites = scenario->site_count;
    char name[LAYOUT_HOST_MAX * 2];
    for (size_t l = 0; l < scenario->wan_count; l++)
        fprintf(out, "    <link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" sharing_policy=\"SPLITDUPLEX\"/>\n",
                platform_wan_name(scenario, (long)l, name), platform_wan_rate(layout, ideal, (long)l),
                latencies ? scenario->wan[l].rtt_s / 2 : 0);
    for (size_t pair = 0; pair < sites * sites; pair++)
        if (latencies && pair / sites != pair % sites)
            fprintf(out, "    <link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n",
                    cap_name(scenario, pair / sites, pair % sites, name),
                    platform_pair_cap(layout, ideal, pair / sites, pair % sites));
    for (size_t pair = 0; pair < sites * sites; pair++)
        if (pair / sites != pair % sites)
            write_route(layout, latencies, pair / sites, pair % sites, out);
}

static bool wanders(const struct scenario *scenario)
{
    bool any = false;
    for (size_t l = 0; l < scenario->wan_count; l++)
        any |= scenario->wan[l].jitter_s > 0 || scenario->wan[l].loss_ratio > 0;
    return any;
}

int platform_write(const struct layout *layout, const struct ideal *ideal, bool latencies, FILE *out, struct err *err)
{
    const struct scenario *scenario = layout->scenario;
    fprintf(
        out,
        "<?xml version=\"1.0\"?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- One host is one tensor-parallel group. With SimGrid's defaults latencies count 13 times and a flow gets\n"
        "     at most 4 MiB per round trip. As in longhaul (each after two dashes and cfg=): network/model:CM02\n"
        "     network/TCP-gamma:0 network/crosstraffic:no, and for smpirun also smpi/bw-factor:1 smpi/lat-factor:1.\n"
        "     What then still differs: flows that share a link share it by round trip time. -->\n");
    if (layout->payload_share < 1)
        fprintf(out, "<!-- Rates are of payload: %.2f %% of the wire's, the rest is headers. -->\n",
                100 * layout->payload_share);
    if (wanders(scenario))
        fprintf(out, "<!-- The scenario's jitter and loss are left out: a SimGrid link has none. -->\n");
    fprintf(out, "<platform version=\"4.1\">\n  <zone id=\"longhaul\" routing=\"Full\">\n");
    for (size_t s = 0; s < scenario->site_count; s++)
        write_site(layout, ideal, latencies, s, out);
    write_wan(layout, ideal, latencies, out);
    fprintf(out, "  </zone>\n</platform>\n");
    if (fflush(out) || ferror(out))
        return err_set(err, EIO, "cannot write the platform");
    return 0;
}
