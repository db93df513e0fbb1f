#include "sim/report/unmodelled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "configs/units.h"

enum { LINKS_SHOWN = 6 };

/* TCP's losses are simulated. */
static bool lossy(const struct scenario *scenario, const struct wan_link *link)
{
    return link->loss_ratio > 0 && scenario->transport.protocol != PROTOCOL_TCP;
}

static bool has_any(const struct scenario *scenario, const struct wan_link *link)
{
    return link->jitter_s > 0 || lossy(scenario, link);
}

bool unmodelled_any(const struct scenario *scenario)
{
    bool any = false;
    for (size_t i = 0; i < scenario->wan_count; i++)
        any |= has_any(scenario, &scenario->wan[i]);
    return any;
}

static void write_link(const struct scenario *scenario, const struct wan_link *link, FILE *out)
{
    char figure[32];
    fprintf(out, "%s-%s", scenario->sites[link->between[0]].name, scenario->sites[link->between[1]].name);
    if (link->jitter_s > 0)
        fprintf(out, " jitter %s (sd of the RTT)", units_format(link->jitter_s, DIM_TIME, 4, figure, sizeof figure));
    if (!lossy(scenario, link))
        return;
    fprintf(out, "%s loss %s (one way%s", link->jitter_s > 0 ? "," : "",
            units_format(link->loss_ratio, DIM_RATIO, 4, figure, sizeof figure), link->loss_burst > 1 ? "" : ")");
    if (link->loss_burst > 1)
        fprintf(out, ", bursts of %g)", link->loss_burst);
}

int unmodelled_text(const struct scenario *scenario, char **text, struct err *err)
{
    size_t length, count = 0;
    *text = NULL;
    if (!unmodelled_any(scenario))
        return 0;
    FILE *out = open_memstream(text, &length);
    if (!out)
        return err_set(err, ENOMEM, "out of memory for a note");
    fputs("Not simulated, as if it were zero: ", out);
    for (size_t i = 0; i < scenario->wan_count; i++) {
        if (!has_any(scenario, &scenario->wan[i]))
            continue;
        if (count < LINKS_SHOWN) {
            fputs(count ? "; " : "", out);
            write_link(scenario, &scenario->wan[i], out);
        }
        count++;
    }
    if (count > LINKS_SHOWN)
        fprintf(out, "; %zu more links", count - LINKS_SHOWN);
    fputs(".", out);
    if (fclose(out) == 0)
        return 0;
    free(*text);
    *text = NULL;
    return err_set(err, ENOMEM, "out of memory for a note");
}
