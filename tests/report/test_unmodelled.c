/* What no simulation models is said with its figures. */
#include "sim/report/unmodelled.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/report/runner.h"

static char names[2][2] = {"a", "b"};
static struct site sites[2] = {{.name = names[0]}, {.name = names[1]}};

static char *said(struct wan_link *links, size_t count)
{
    struct scenario scenario = {.site_count = 2, .sites = sites, .wan_count = count, .wan = links};
    struct err err = {""};
    char *text;
    for (size_t i = 0; i < count; i++)
        links[i].between[1] = 1;
    ck_assert_int_eq(unmodelled_text(&scenario, &text, &err), 0);
    ck_assert(unmodelled_any(&scenario) == (text != NULL));
    return text;
}

START_TEST(silent_where_all_is_simulated)
{
    struct wan_link links[2] = {{.rtt_s = 1, .loss_burst = 1}, {.rtt_s = 1, .loss_burst = 1}};
    ck_assert_ptr_null(said(links, 2));
    ck_assert_ptr_null(said(links, 0));
}
END_TEST

#define HEAD "Not simulated, as if it were zero: "

static struct {
    struct wan_link link;
    const char *text;
} one_link[] = {
    {{.jitter_s = 0.7e-3, .loss_burst = 1}, HEAD "a-b jitter 700 us (sd of the RTT)."},
    {{.loss_ratio = 1e-3, .loss_burst = 1}, HEAD "a-b loss 0.1 % (one way)."},
    {{.jitter_s = 1e-3, .loss_ratio = 0.5, .loss_burst = 2.5},
     HEAD "a-b jitter 1 ms (sd of the RTT), loss 50 % (one way, bursts of 2.5)."},
};

START_TEST(names_the_figures)
{
    char *text = said(&one_link[_i].link, 1);
    ck_assert_str_eq(text, one_link[_i].text);
    free(text);
}
END_TEST

START_TEST(counts_links_beyond_a_few)
{
    struct wan_link links[20] = {{.rtt_s = 1}};
    for (size_t i = 1; i < 20; i++)
        links[i].jitter_s = 1e-3;
    char *text = said(links, 20), *end = strstr(text, "; 13 more links.");
    ck_assert_ptr_nonnull(end);
    ck_assert_uint_lt(strlen(text), 300);
    free(text);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("unmodelled");
    tcase_add_test(cases, silent_where_all_is_simulated);
    tcase_add_loop_test(cases, names_the_figures, 0, sizeof one_link / sizeof one_link[0]);
    tcase_add_test(cases, counts_links_beyond_a_few);
    return run_cases("report/unmodelled", cases);
}
