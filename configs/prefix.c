#include "configs/prefix.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40, IPV4_BITS = 32, IPV6_BITS = 128 };
#define EXAMPLE "write it like 10.1.0.0/16 or fd00:1::/32"

static unsigned full_length(int family)
{
    return family == AF_INET ? IPV4_BITS : IPV6_BITS;
}

/* Clears the bits beyond length. */
static void clear_host_bits(struct prefix *prefix)
{
    unsigned bytes = full_length(prefix->family) / 8;
    for (unsigned i = 0; i < bytes; i++) {
        unsigned kept = prefix->length > 8 * i ? prefix->length - 8 * i : 0;
        if (kept < 8)
            prefix->address[i] &= (uint8_t)(0xff00u >> kept);
    }
}

/* What people write that is close to an address, and why it is none. */
static int no_address(const char *text, const char *address, struct err *err)
{
    size_t digits_and_dots = strspn(address, "0123456789.");
    const char *colon = strchr(address, ':');
    if (!*text)
        return err_set(err, EINVAL, "an empty prefix; " EXAMPLE);
    if (strpbrk(text, " \t\r\n"))
        return err_set(err, EINVAL, "'%.*s' has a space in it; " EXAMPLE, SHOWN, text);
    if (strchr(address, '%'))
        return err_set(err, EINVAL, "'%.*s' has a zone; a prefix is routed and has none; " EXAMPLE, SHOWN, text);
    if (address[0] == '[' || (colon && !strchr(colon + 1, ':')))
        return err_set(err, EINVAL, "'%.*s' has a port or brackets; all ports are meant, " EXAMPLE, SHOWN, text);
    if (*address && !address[digits_and_dots])
        return err_set(err, EINVAL,
                       "'%.*s' is no IPv4 prefix; it has four numbers of 0 to 255 without leading zeros, like "
                       "10.1.0.0/16",
                       SHOWN, text);
    if (colon)
        return err_set(err, EINVAL, "'%.*s' is no IPv6 prefix; write it like fd00:1::/32", SHOWN, text);
    return err_set(err, EINVAL, "'%.*s' is no IP prefix, and names are not looked up; " EXAMPLE, SHOWN, text);
}

/* digits: what follows '/'. */
static int read_length(const char *text, const char *digits, struct prefix *prefix, struct err *err)
{
    unsigned most = full_length(prefix->family);
    size_t count = strspn(digits, "0123456789");
    bool plain = count && count <= 3 && !digits[count] && (digits[0] != '0' || count == 1);
    unsigned long length = plain ? strtoul(digits, NULL, 10) : 0;
    if (!plain || length > most)
        return err_set(err, EINVAL, "'%.*s': the length after '/' is a whole number from 0 to %u for %s, like %s",
                       SHOWN, text, most, prefix->family == AF_INET ? "IPv4" : "IPv6",
                       prefix->family == AF_INET ? "10.1.0.0/16" : "fd00:1::/32");
    prefix->length = (unsigned)length;
    return 0;
}

static int refuse_host_bits(const char *text, struct prefix *prefix, struct err *err)
{
    char meant[PREFIX_TEXT_MAX], host[PREFIX_TEXT_MAX];
    struct prefix whole = *prefix;
    whole.length = full_length(prefix->family);
    clear_host_bits(prefix);
    if (!memcmp(whole.address, prefix->address, sizeof whole.address))
        return 0;
    return err_set(err, EINVAL, "'%.*s' has address bits beyond /%u; write %s for the network or %s for one host",
                   SHOWN, text, prefix->length, prefix_format(prefix, meant, sizeof meant),
                   prefix_format(&whole, host, sizeof host));
}

/* ::ffff:10.1.2.3 is how programs name an IPv4 peer; on the wire there is only IPv4, so it would match nothing. */
static int refuse_mapped(const char *text, const struct prefix *prefix, struct err *err)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    enum { MAPPED_BITS = 96 };
    if (prefix->family != AF_INET6 || prefix->length < MAPPED_BITS || memcmp(prefix->address, mapped, sizeof mapped))
        return 0;
    struct prefix plain = {.family = AF_INET, .length = prefix->length - MAPPED_BITS};
    char meant[PREFIX_TEXT_MAX];
    memcpy(plain.address, prefix->address + sizeof mapped, 4);
    return err_set(err, EINVAL, "'%.*s' is IPv4 in IPv6 notation; write %s", SHOWN, text,
                   prefix_format(&plain, meant, sizeof meant));
}

int prefix_parse(const char *text, struct prefix *prefix, struct err *err)
{
    char address[INET6_ADDRSTRLEN + 1];
    struct prefix read = {.family = AF_INET};
    size_t length = strcspn(text, "/");
    snprintf(address, sizeof address, "%.*s", (int)(length < sizeof address ? length : sizeof address), text);
    if (strchr(address, ':') && !strchr(address, '%'))
        read.family = AF_INET6;
    if (length >= sizeof address || inet_pton(read.family, address, read.address) != 1)
        return no_address(text, address, err);
    read.length = full_length(read.family);
    int rc = text[length] ? read_length(text, text + length + 1, &read, err) : 0;
    rc = rc ? rc : refuse_host_bits(text, &read, err);
    rc = rc ? rc : refuse_mapped(text, &read, err);
    if (!rc)
        *prefix = read;
    return rc;
}

char *prefix_format(const struct prefix *prefix, char *buffer, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";
    inet_ntop(prefix->family, prefix->address, address, sizeof address);
    if (prefix->length == full_length(prefix->family))
        snprintf(buffer, size, "%s", address);
    else
        snprintf(buffer, size, "%s/%u", address, prefix->length);
    return buffer;
}

bool prefix_contains(const struct prefix *outer, const struct prefix *inner)
{
    if (outer->family != inner->family || outer->length > inner->length)
        return false;
    struct prefix widened = *inner;
    widened.length = outer->length;
    clear_host_bits(&widened);
    return !memcmp(widened.address, outer->address, full_length(outer->family) / 8);
}
