/* IP prefixes as people write them: "10.1.0.0/16", "10.1.2.3" (/32), "fd00:1::/32". */
#ifndef LONGHAUL_PREFIX_H
#define LONGHAUL_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "configs/err.h"

struct prefix {
    int family;          /* AF_INET or AF_INET6 */
    uint8_t address[16]; /* network order; AF_INET uses the first 4 bytes. Bits beyond length are 0. */
    unsigned length;     /* 0 to 32, 0 to 128 */
};

enum { PREFIX_TEXT_MAX = 64 };

/* Refuses host bits beyond the length ("10.1.2.3/16": the message shows 10.1.0.0/16), names, zones, ports, and IPv4 in
 * IPv6 notation. On failure *prefix stays as it was. Returns 0 or -EINVAL with a message without file:line:column. */
int prefix_parse(const char *text, struct prefix *prefix, struct err *err);
/* "10.1.0.0/16"; "10.1.2.3" where the length is full. Returns buffer. */
char *prefix_format(const struct prefix *prefix, char *buffer, size_t size);
/* Does outer hold all of inner? False for different families. */
bool prefix_contains(const struct prefix *outer, const struct prefix *inner);

#endif
