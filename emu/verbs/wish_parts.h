/* Between wish.c, wish_options.c and wish_scenario.c only. */
#ifndef LONGHAUL_WISH_PARTS_H
#define LONGHAUL_WISH_PARTS_H

#include "configs/units.h"
#include "emu/verbs/wish.h"

/* "--delay" */
extern const char *const wish_flag_names[WISH_FLAG_COUNT];

/* "--delay: " and what is wrong; -EINVAL. */
int wish_flag_fail(enum wish_flag flag, struct err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Reads values of flags; those not given leave *value as it is. */
int wish_take_quantity(const struct wish_arguments *arguments, enum wish_flag flag, enum dimension dimension,
                       double *value, struct err *err);
int wish_take_count(const struct wish_arguments *arguments, enum wish_flag flag, uint64_t least, uint64_t most,
                    uint64_t *value, struct err *err);
/* One of names (ended by NULL). */
int wish_take_choice(const struct wish_arguments *arguments, enum wish_flag flag, const char *const *names, int *value,
                     struct err *err);

/* All flags of impairments, checked, rules between them included. On failure nothing is left to free. */
int wish_options_impairment(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err);
/* --limit alone. */
int wish_options_limit(const struct wish_arguments *arguments, struct impairment *impairment, struct err *err);

int wishes_of_flags(const struct wish_arguments *arguments, const struct wish_lookups *lookups, struct wishes *wishes,
                    struct err *err);
int wishes_of_scenario(const struct wish_arguments *arguments, const struct wish_lookups *lookups,
                       struct wishes *wishes, struct err *err);

#define WISH_NOTE_GSO                                                                                                  \
    "loss hits segments of up to 64 kB as one packet where the device offloads segmentation; --gso-off makes them "    \
    "single packets"

#define WISH_NOTE_CORRELATION                                                                                          \
    "netem keeps the correlation but draws from the lowest bits of a correlated number: delays come out uncorrelated " \
    "(measured on Linux 6.12: 90 %% asked, -2 %% there)"

/* Adds a note. 0 or -ENOMEM. */
int wishes_note(struct wishes *wishes, struct err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Adds the path, copied, to the wishes of the devices that its prefixes leave by. divide: several devices share its
 * rate; else each has all of it. */
int wishes_add_path(const struct wish_arguments *arguments, const struct wish_lookups *lookups, const struct path *path,
                    bool divide, struct wishes *wishes, struct err *err);
void wish_path_free(struct path *path);

/* One step of the seed's mix: splitmix64's finalizer over seed + (value + 1) x golden gamma. */
uint64_t wish_mix(uint64_t seed, uint64_t value);

#endif
