/* Between wish_scenario.c, wish_site.c and wish_route.c only. */
#ifndef LONGHAUL_WISH_WORK_H
#define LONGHAUL_WISH_WORK_H

#include "configs/keys.h"
#include "emu/verbs/wish_parts.h"

/* One resolution on its way. */
struct wish_work {
    const struct wish_arguments *arguments;
    const struct wish_lookups *lookups;
    struct scenario scenario; /* owned */
    size_t address_count;
    struct prefix *addresses; /* owned: this machine's */
    size_t own;               /* site */
    struct prefix node;       /* address that stands for this node; family 0: none */
    double share;             /* of a link's rate */
    char share_text[48];      /* "1/192", "25 %" */
    bool ingress;
};

const char *wish_site_name(const struct wish_work *work, size_t site);
const struct emu_site *wish_emu_site(const struct wish_work *work, size_t site);
/* The site that --site or --via names. */
int wish_find_site(const struct wish_work *work, enum wish_flag flag, size_t *site, struct err *err);
/* Are there at least two sites, with addresses? Says in one line what to add. */
int wish_check_addresses(const struct wish_work *work, struct err *err);
/* Fills addresses, own and node. */
int wish_find_self(struct wish_work *work, struct err *err);
/* Fills share and share_text; own is known. */
int wish_read_share(struct wish_work *work, struct err *err);

struct wish_route {
    size_t count;
    size_t links[SITES_MAX]; /* indices into wan, from the own site on */
};

/* The smallest sum of RTT; ties: fewest links, then at each site the lowest next site and link. */
void wish_find_route(const struct scenario *scenario, size_t from, size_t to, struct wish_route *route);
/* The site at the other end of a link of this site. */
size_t wish_peer(const struct wan_link *link, size_t site);

#endif
