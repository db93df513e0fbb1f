/* Acts and looks that the tests of apply and of clear share, on device e0 of a network of their own. */
#ifndef LONGHAUL_TEST_ACTS_H
#define LONGHAUL_TEST_ACTS_H

#include "emu/host/apply.h"
#include "tests/emu/host/rig.h"
#include "tests/emu/host/wishes.h"

extern struct netlink *netlink; /* of the test that runs; each runs in a process of its own */
extern const struct apply_options plain, taking_over;

void start(void);
enum apply_outcome apply(const struct wish *wish, const struct apply_options *options);
/* Applies what must be refused. */
int fails(const struct wish *wish, const struct apply_options *options, struct err *err);
enum clear_outcome clear(void);
bool is_recorded(void);
struct record recorded(void);
/* Takes over the dump it compares with. */
void stands_again(char *before);
void has(const char *what, bool wanted); /* in what tc shows of e0's qdiscs */

#endif
