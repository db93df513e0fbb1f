#include "tests/emu/host/wishes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct prefix prefix(const char *text)
{
    struct prefix result;
    if (prefix_parse(text, &result, NULL))
        abort();
    return result;
}

static struct path path(const char *name, const char *const *prefixes, size_t count)
{
    struct path result = {
        .name = strdup(name), .prefix_count = count, .prefixes = calloc(count, sizeof(struct prefix))};
    for (size_t i = 0; i < count; i++)
        result.prefixes[i] = prefix(prefixes[i]);
    impairment_init(&result.impairment);
    return result;
}

static struct wish wish(size_t paths)
{
    return (struct wish){.device = "e0", .path_count = paths, .paths = calloc(paths, sizeof(struct path))};
}

struct wish wishes_two(void)
{
    struct wish result = wish(2);
    result.paths[0] = path("west -> east", (const char *const[]){"10.2.0.0/16", "fd00:2::/32"}, 2);
    result.paths[1] = path("west -> north", (const char *const[]){"10.3.0.0/16"}, 1);
    struct impairment *east = &result.paths[0].impairment, *north = &result.paths[1].impairment;
    east->delay_ns = 10650000;
    east->jitter_ns = 494975;
    east->loss = (struct loss){.kind = LOSS_INDEPENDENT, .ratio = 0.0005};
    east->rate_byte_per_s = UINT64_C(100000000000);
    north->delay_ns = 35000000;
    impairment_limit(east);
    impairment_limit(north);
    return result;
}

struct wish wishes_many(size_t count)
{
    struct wish result = wish(1);
    result.paths[0] = path("west -> east", NULL, 0);
    result.paths[0].prefixes = realloc(result.paths[0].prefixes, count * sizeof(struct prefix));
    result.paths[0].prefix_count = count;
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.%zu.%zu.0/24", 2 + i / 256, i % 256);
        result.paths[0].prefixes[i] = prefix(text);
    }
    result.paths[0].impairment.delay_ns = 10000000;
    impairment_limit(&result.paths[0].impairment);
    return result;
}

struct wish wishes_plain(uint64_t delay_ns)
{
    struct wish result = wish(1);
    result.paths[0] = path("west -> east", (const char *const[]){"10.2.0.0/16", "fd00:2::/32"}, 2);
    result.paths[0].impairment.delay_ns = delay_ns;
    impairment_limit(&result.paths[0].impairment);
    return result;
}
