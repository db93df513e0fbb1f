/* sim/training/ring.c on the loopback: sums, bytes and messages of every ring. */
#include "sim/training/ring.h"

#include <string.h>

#include "tests/training/sums.h"

enum { RANKS_MAX = 100, SLICES_MAX = 4 };
static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, RANKS_MAX};
enum { SIZES = sizeof sizes / sizeof sizes[0] };
/* Empty segments with 100 ranks, and not a multiple of most. */
static const size_t floats[] = {50, 101};
enum { FLOATS = sizeof floats / sizeof floats[0] };

struct ring {
    int order[RANKS_MAX], position[RANKS_MAX]; /* rank at a position; position of a rank */
    int count, slices;
    enum ring_kind kind;
    struct span span;
    char context[96];
};

static struct group group_of(const struct ring *ring, int rank)
{
    return (struct group){ring->count, ring->order, ring->position[rank]};
}

/* Neighbours in the ring are not neighbours by number: 3 has no factor with most counts; the rest stays in order. */
static struct ring ring_make(int count, int slices, enum ring_kind kind, size_t bytes)
{
    struct ring ring = {.count = count, .slices = slices, .kind = kind, .span = {REGION_GRADIENT, 0, bytes}};
    for (int i = 0; i < count; i++) {
        ring.order[i] = count % 3 ? 3 * i % count : i;
        ring.position[ring.order[i]] = i;
    }
    snprintf(ring.context, sizeof ring.context, "kind %d, %d ranks, %d slices, %zu bytes", kind, count, slices, bytes);
    return ring;
}

static void ring_main(struct stream *stream, void *argument)
{
    const struct ring *ring = argument;
    struct group group = group_of(ring, transport_rank(stream));
    ck_assert_int_eq(ring_run(stream, &group, ring->kind, ring->span, 0, ring->slices), 0);
}

/* A rank sends every segment of a lap but one: in the reduce-scatter the one it ends up owning, in the all-gather the
 * one its successor owns. */
static uint64_t sent_bytes(const struct ring *ring, const struct group *group)
{
    struct group next = *group;
    next.position = (group->position + 1) % group->count;
    uint64_t scatter = ring->span.bytes - ring_owned(group, ring->span).bytes;
    uint64_t gather = ring->span.bytes - ring_owned(&next, ring->span).bytes;
    return (ring->kind != RING_ALL_GATHER ? scatter : 0) + (ring->kind != RING_REDUCE_SCATTER ? gather : 0);
}

static void check_traffic(const struct loopback *loopback, const struct ring *ring)
{
    int messages = ring_steps(ring->kind, ring->count) * ring->slices;
    for (int from = 0; from < ring->count; from++) {
        struct group group = group_of(ring, from);
        int next = ring->order[(group.position + 1) % ring->count];
        for (int to = 0; to < ring->count; to++) {
            bool hop = to == next && ring->count > 1;
            ck_assert_uint_eq(loopback_bytes(loopback, from, to), hop ? sent_bytes(ring, &group) : 0);
            ck_assert_int_eq((int)loopback_messages(loopback, from, to), hop ? messages : 0);
        }
        double formula = ring_bytes_per_hop(ring->kind, ring->count, (double)ring->span.bytes);
        double sent = (double)loopback_bytes(loopback, from, next);
        ck_assert_msg(sent <= formula + 16 && sent >= formula - 16, "%s: %g bytes, formula %g", ring->context, sent,
                      formula);
    }
}

/* A rank's contribution to an all-gather: only the segment it owns. */
static void keep_owned(const struct loopback *loopback, const struct ring *ring, int rank)
{
    struct group group = group_of(ring, rank);
    struct span owned = ring_owned(&group, ring->span);
    unsigned char *bytes = (unsigned char *)loopback_region(loopback, rank, REGION_GRADIENT);
    for (uint64_t i = 0; bytes && i < ring->span.bytes; i++)
        bytes[i] = i >= owned.offset && i < owned.offset + owned.bytes ? (unsigned char)(i % 251 + 1) : 0;
}

static void check_gathered(const struct loopback *loopback, const struct ring *ring, int rank)
{
    const unsigned char *bytes = (const unsigned char *)loopback_region(loopback, rank, REGION_GRADIENT);
    for (uint64_t i = 0; bytes && i < ring->span.bytes; i++)
        ck_assert_msg(bytes[i] == i % 251 + 1, "%s: rank %d lacks byte %llu", ring->context, rank,
                      (unsigned long long)i);
}

static void check_result(const struct loopback *loopback, const struct ring *ring, int rank)
{
    struct group group = group_of(ring, rank);
    if (ring->kind == RING_ALL_GATHER)
        check_gathered(loopback, ring, rank);
    else
        sums_check(loopback, rank, &group, ring->kind == RING_ALL_REDUCE ? ring->span : ring_owned(&group, ring->span),
                   ring->context);
}

static void run_ring(int count, int slices, enum ring_kind kind, size_t bytes)
{
    struct ring ring = ring_make(count, slices, kind, bytes);
    struct loopback *loopback = sums_loopback(count, bytes);
    sums_fill(loopback, count, bytes);
    for (int rank = 0; rank < count && kind == RING_ALL_GATHER; rank++)
        keep_owned(loopback, &ring, rank);
    sums_run(loopback, ring_main, &ring, ring.context);
    for (int rank = 0; rank < count; rank++)
        check_result(loopback, &ring, rank);
    check_traffic(loopback, &ring);
    loopback_free(loopback);
}

static void run_kind(enum ring_kind kind, size_t odd)
{
    for (size_t n = 0; n < SIZES; n++)
        for (int slices = 1; slices <= SLICES_MAX; slices++)
            for (size_t f = 0; f < FLOATS; f++)
                run_ring(sizes[n], slices, kind, floats[f] * sizeof(float) + odd);
}

START_TEST(all_reduce)
{
    run_kind(RING_ALL_REDUCE, 0);
}
END_TEST

START_TEST(reduce_scatter)
{
    run_kind(RING_REDUCE_SCATTER, 0);
}
END_TEST

START_TEST(all_gather)
{
    run_kind(RING_ALL_GATHER, 0);
}
END_TEST

/* Nothing is added up, so the bytes need not be whole elements. */
START_TEST(all_gather_odd_bytes)
{
    run_kind(RING_ALL_GATHER, 3);
}
END_TEST

/* Segments of a span cover it without gap or overlap, differ by at most an element, and segments of segments do too. */
START_TEST(segments)
{
    for (int n = 1; n <= 20; n++)
        for (uint64_t bytes = 0; bytes < 200; bytes += 1 + bytes % 3) {
            struct span span = {REGION_PARAMETER, 12, bytes};
            uint64_t at = span.offset;
            for (int i = 0; i < n; i++) {
                struct span part = ring_segment(span, n, i);
                ck_assert_int_eq(part.region, REGION_PARAMETER);
                ck_assert_uint_eq(part.offset, at);
                ck_assert_uint_le(part.bytes, bytes / (uint64_t)n + 8);
                at += part.bytes;
            }
            ck_assert_uint_eq(at, span.offset + bytes);
        }
}
END_TEST

/* Sizes of the simulator: nothing overflows, and 2^60 bytes are cut like 2^10. */
START_TEST(huge_segments)
{
    struct span span = {REGION_GRADIENT, 0, UINT64_C(1) << 60};
    ck_assert_uint_eq(ring_segment(span, 1024, 1023).offset, (UINT64_C(1) << 60) - (UINT64_C(1) << 50));
    ck_assert_uint_eq(ring_segment(span, 1024, 1023).bytes, UINT64_C(1) << 50);
    ck_assert_double_eq_tol(ring_bytes_per_hop(RING_ALL_REDUCE, 4, 100), 150, 1e-12);
    ck_assert_double_eq_tol(ring_bytes_per_hop(RING_ALL_GATHER, 4, 100), 75, 1e-12);
    ck_assert_double_eq(ring_bytes_per_hop(RING_ALL_REDUCE, 1, 100), 0);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("ring");
    tcase_add_test(cases, all_reduce);
    tcase_add_test(cases, reduce_scatter);
    tcase_add_test(cases, all_gather);
    tcase_add_test(cases, all_gather_odd_bytes);
    tcase_add_test(cases, segments);
    tcase_add_test(cases, huge_segments);
    return sums_suite("ring", cases);
}
