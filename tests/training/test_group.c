/* sim/training/group.c: who is in which ring, for equal and unequal sites, with and without rails. */
#include "sim/training/group.h"

#include "tests/training/sites.h"
#include "tests/training/sums.h"

static const struct layout_case {
    struct sites sites;
    long rails;
} layouts[] = {
    {{1, {1}, {1}, 1, 1}, 1},
    {{1, {4}, {2}, 1, 1}, 2},
    {{2, {4, 4}, {1, 1}, 1, 1}, 1},
    {{2, {4, 4}, {1, 1}, 1, 2}, 1},
    {{2, {4, 4}, {8, 8}, 8, 2}, 1}, /* a rank fills a node */
    {{2, {3, 3}, {4, 4}, 1, 1}, 4},
    {{2, {3, 3}, {4, 4}, 2, 1}, 2},
    {{2, {3, 3}, {4, 4}, 2, 3}, 2}, /* two replicas a site and stage, one node */
    {{2, {3, 3}, {4, 4}, 1, 6}, 1}, /* two replicas where four would fill a node */
    {{2, {2, 3}, {4, 4}, 1, 1}, 4}, /* unequal sites */
    {{2, {2, 2}, {2, 4}, 1, 1}, 1}, /* nodes of different sizes */
    {{3, {2, 2, 2}, {2, 2, 2}, 1, 1}, 2},
    {{3, {5, 1, 3}, {1, 1, 1}, 1, 1}, 1},
    {{4, {3, 3, 3, 3}, {8, 8, 8, 8}, 4, 3}, 2},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static long site_size(const struct placement *placement, size_t site)
{
    return placement->site_first[site + 1] - placement->site_first[site];
}

static bool equal_sites(const struct placement *placement)
{
    for (size_t s = 1; s < placement->sites; s++)
        if (site_size(placement, s) != site_size(placement, 0))
            return false;
    return true;
}

/* Every member is of the rank's stage and rail, nobody stands there twice, and the rank finds itself. */
static void check_members(const struct placement *placement, const struct group *group, int rank)
{
    bool seen[256] = {false};
    ck_assert_int_eq(group->ranks[group->position], rank);
    for (int i = 0; i < group->count; i++) {
        int other = group->ranks[i];
        ck_assert(other >= 0 && other < 256 && !seen[other]);
        seen[other] = true;
        ck_assert_int_eq(placement_stage(placement, other), placement_stage(placement, rank));
    }
}

static long rail_of(const struct placement *placement, int rank)
{
    return placement_replica(placement, rank) % placement->rails;
}

static void check_rails(const struct placement *placement, const struct group *group, int rank)
{
    for (int i = 0; i < group->count; i++)
        ck_assert_int_eq(rail_of(placement, group->ranks[i]), rail_of(placement, rank));
}

static void check_cross(const struct placement *placement, const struct group *cross, int rank)
{
    size_t own = placement_site(placement, rank);
    if (!equal_sites(placement)) {
        ck_assert_int_eq(cross->count, 0);
        return;
    }
    check_members(placement, cross, rank);
    check_rails(placement, cross, rank);
    ck_assert_int_eq(cross->count, (int)placement->sites);
    for (int i = 0; i < cross->count; i++) {
        size_t site = placement_site(placement, cross->ranks[i]);
        ck_assert_uint_eq(site, (size_t)i);
        ck_assert_int_eq(placement_replica(placement, cross->ranks[i]) - placement->site_first[site],
                         placement_replica(placement, rank) - placement->site_first[own]);
    }
}

static int hops_between_sites(const struct placement *placement, const struct group *group)
{
    int hops = 0;
    for (int i = 0; i < group->count; i++)
        hops += placement_site(placement, group->ranks[i]) !=
                placement_site(placement, group->ranks[(i + 1) % group->count]);
    return hops;
}

static void check_rank(const struct placement *placement, int rank, enum ring_order order)
{
    struct groups groups;
    ck_assert_int_eq(groups_init(&groups, placement, rank, order, NULL), 0);
    check_members(placement, &groups.all, rank);
    check_members(placement, &groups.site, rank);
    check_rails(placement, &groups.all, rank);
    check_rails(placement, &groups.site, rank);
    check_cross(placement, &groups.cross, rank);
    ck_assert_int_eq(groups.all.count, (int)(placement->replicas / placement->rails));
    size_t own = placement_site(placement, rank);
    ck_assert_int_eq(groups.site.count, (int)(site_size(placement, own) / placement->rails));
    for (int i = 0; i < groups.site.count; i++)
        ck_assert_uint_eq(placement_site(placement, groups.site.ranks[i]), own);
    int several = placement->sites > 1;
    if (order == ORDER_CONTIGUOUS)
        ck_assert_int_eq(hops_between_sites(placement, &groups.all), several ? (int)placement->sites : 0);
    else if (equal_sites(placement))
        ck_assert_int_eq(hops_between_sites(placement, &groups.all), several ? groups.all.count : 0);
    groups_free(&groups);
}

START_TEST(every_rank)
{
    const struct layout_case *layout = &layouts[_i];
    struct site storage[SITES_MAX];
    struct scenario scenario = sites_scenario(&layout->sites, storage);
    struct placement placement;
    char name[128];
    ck_assert_int_eq(placement_init(&placement, &scenario, NULL), 0);
    ck_assert_msg(placement.rails == layout->rails, "%s: %ld rails", sites_name(&layout->sites, name, sizeof name),
                  placement.rails);
    for (long stage = 0; stage < placement.stages; stage++)
        for (long replica = 0; replica < placement.replicas; replica++) {
            int rank = placement_rank(&placement, stage, replica);
            ck_assert_int_eq(placement_stage(&placement, rank), stage);
            ck_assert_int_eq(placement_replica(&placement, rank), replica);
            check_rank(&placement, rank, ORDER_CONTIGUOUS);
            check_rank(&placement, rank, ORDER_INTERLEAVED);
        }
    placement_free(&placement);
}
END_TEST

/* The ring is the same seen from each of its ranks. */
START_TEST(rings_agree)
{
    const struct layout_case *layout = &layouts[_i];
    struct site storage[SITES_MAX];
    struct scenario scenario = sites_scenario(&layout->sites, storage);
    struct placement placement;
    struct groups mine, theirs;
    ck_assert_int_eq(placement_init(&placement, &scenario, NULL), 0);
    for (int rank = 0; rank < placement.stages * placement.replicas; rank++) {
        ck_assert_int_eq(groups_init(&mine, &placement, rank, ORDER_INTERLEAVED, NULL), 0);
        ck_assert_int_eq(groups_init(&theirs, &placement, mine.all.ranks[0], ORDER_INTERLEAVED, NULL), 0);
        ck_assert_mem_eq(mine.all.ranks, theirs.all.ranks, (size_t)mine.all.count * sizeof(int));
        groups_free(&mine);
        groups_free(&theirs);
    }
    placement_free(&placement);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("group");
    tcase_add_loop_test(cases, every_rank, 0, LAYOUTS);
    tcase_add_loop_test(cases, rings_agree, 0, LAYOUTS);
    return sums_suite("group", cases);
}
