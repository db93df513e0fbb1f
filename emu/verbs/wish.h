/* What plan, apply and verify are asked for: flags or a scenario, turned into one wish for each device.
 *
 * With a scenario the machine finds its own site from its addresses, so that the same command line runs on every node
 * under pdsh or srun. Each path is from this machine's site to one other, over the route with the smallest sum of RTT
 * (ties: fewest links, then the lowest index), which is also the simulator's and the lab's. */
#ifndef LONGHAUL_WISH_H
#define LONGHAUL_WISH_H

#include <argp.h>

#include "configs/keys.h"
#include "configs/options.h"
#include "configs/prefix.h"
#include "emu/host/netlink.h"
#include "emu/shape/plan.h"

enum { WISH_TO_MAX = EMU_PREFIXES_MAX };

/* Flags with one value. */
enum wish_flag {
    WISH_DEV,
    WISH_DELAY,
    WISH_JITTER,
    WISH_JITTER_SHAPE,
    WISH_JITTER_TABLE,
    WISH_CORRELATION,
    WISH_LOSS,
    WISH_LOSS_BURST,
    WISH_LOSS_IN_BURST,
    WISH_REORDER,
    WISH_DUPLICATE,
    WISH_CORRUPT,
    WISH_RATE,
    WISH_LIMIT,
    WISH_SEED,
    WISH_AT,
    WISH_GSO_OFF, /* any text: given */
    WISH_SITE,
    WISH_VIA,
    WISH_SHARE,
    WISH_FLAG_COUNT
};

/* The command line as typed; nothing is judged before wishes_resolve. Zeroed is empty. Borrowed from argv. */
struct wish_arguments {
    const char *scenario;               /* the positional argument; NULL: by flags alone */
    const char *texts[WISH_FLAG_COUNT]; /* NULL: not given */
    size_t to_count;                    /* how often --to was given; the first WISH_TO_MAX are kept */
    const char *to[WISH_TO_MAX];
    const char *excess;      /* a second SCENARIO; NULL: none */
    const char *given_twice; /* name of a flag with two values; NULL: none */
    struct options_sets sets;
};

/* A child parser for a verb: `.children = (struct argp_child[]){{&wish_argp, 0, NULL, 0}, {0}}`, and in the parent's
 * ARGP_KEY_INIT state->child_inputs[0] = a struct wish_arguments. Takes the positional SCENARIO unless the parent does
 * (which then sets it itself), --set, and "-d" for --dev; its other keys are 0x400 to 0x4ff. */
extern const struct argp wish_argp;

struct wishes {
    size_t count;
    struct wish *wishes; /* one per device, in the order of first use; owned */
    size_t note_count;
    char **notes; /* one line each for the user: how figures were derived, what else must be done; owned */
};

/* What is asked of the machine. */
struct wish_lookups {
    void *context;
    /* This machine's own addresses, full length; the callee allocates, the caller frees. */
    int (*addresses)(void *context, struct prefix **addresses, size_t *count, struct err *err);
    /* Name of the device by which the kernel sends to this prefix. -ENOENT: no route. */
    int (*towards)(void *context, const struct prefix *prefix, char device[16], struct err *err);
};

/* Without --dev, each prefix is shaped on the device that the kernel would send by; where a path leaves by several
 * devices (rails), each gets its part of this node's rate. With --at ingress the impairment is that of the way here:
 * prefixes are sources, paths are named "east -> west".
 *
 * With --via SITE the path is the one link to SITE, at its full rate (--share), for all prefixes reached over it.
 *
 * Seeds: with the same seed everywhere, both directions and all nodes would draw the same numbers. A path's seed is
 * therefore the scenario's, into which splitmix64 (Steele, Lea, Flood 2014) mixes one after the other: the index of the
 * site that sends, of the site that receives, and the 16 address bytes of this node (its lowest address in its site;
 * left out with --via). A path's second device and on (also with --seed) mixes its number in as well. Repeatable from
 * one run to the next.
 *
 * 0, -EINVAL or -ENOENT with one line that names the flag or the place in the scenario, or what a lookup gave. On
 * failure *wishes is zeroed. */
int wishes_resolve_with(const struct wish_arguments *arguments, const struct wish_lookups *lookups,
                        struct wishes *wishes, struct err *err);
/* The same on this machine (device_addresses, device_towards). */
int wishes_resolve(const struct wish_arguments *arguments, struct netlink *netlink, struct wishes *wishes,
                   struct err *err);
void wishes_free(struct wishes *wishes); /* zeroes it; a zeroed one is fine */

#endif
