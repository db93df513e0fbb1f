/* The way from site to site over the WAN: the path of least RTT. */
#ifndef LONGHAUL_ROUTE_H
#define LONGHAUL_ROUTE_H

#include "configs/scenario.h"

struct routes {
    size_t sites;
    long *next_link; /* [from * sites + to]: index into wan of the first link of the way, -1 on the diagonal; owned */
    double *rtt_s;   /* [from * sites + to]; owned */
};

/* Returns 0 or -ENOMEM. */
int routes_init(struct routes *routes, const struct scenario *scenario, struct err *err);
void routes_free(struct routes *routes);

/* The site that a WAN link leads to from a site, which must be one of its ends. */
size_t route_other_end(const struct scenario *scenario, long link, size_t from);

/* Bytes that a link carries in a direction (way 0: from between[0]) where bytes[from * sites + to] go from site to
 * site. */
double routes_link_bytes(const struct routes *routes, const struct scenario *scenario, const double *bytes, long link,
                         size_t way);

#endif
