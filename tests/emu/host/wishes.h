/* Wishes for the tests of apply. */
#ifndef LONGHAUL_TEST_WISHES_H
#define LONGHAUL_TEST_WISHES_H

#include "emu/shape/plan.h"

/* Two paths of device e0, IPv4 and IPv6: 10.65 ms with jitter, loss and rate to the east, 35 ms to the north. */
struct wish wishes_two(void);
/* One path to count networks 10.x.y.0/24 and 10 ms. */
struct wish wishes_many(size_t count);
/* Plain delay to the east, all else left out. */
struct wish wishes_plain(uint64_t delay_ns);

#endif
