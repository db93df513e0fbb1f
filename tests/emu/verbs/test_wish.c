/* Wishes by flags alone: every flag, every refusal, units as strict as in a scenario. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configs/units.h"
#include "tests/emu/verbs/command.h"
#include "tests/report/runner.h"

#define BASE "--dev eth0 --to 10.2.0.0/16 "

static const struct impairment *only(const struct wishes *wishes)
{
    ck_assert_uint_eq(wishes->count, 1);
    ck_assert_uint_eq(wishes->wishes[0].path_count, 1);
    return &wishes->wishes[0].paths[0].impairment;
}

/* The command of the documentation, every figure of it. */
START_TEST(takes_the_usual)
{
    struct wishes wishes =
        command_wishes(BASE "--delay 50ms --jitter 10ms --correlation 25% --loss 0.1% --rate 10Gb/s", NULL);
    const struct impairment *it = only(&wishes);
    const struct wish *wish = &wishes.wishes[0];
    ck_assert_str_eq(wish->device, "eth0");
    ck_assert_int_eq(wish->at, PLAN_EGRESS);
    ck_assert(!wish->gso_off);
    ck_assert_str_eq(wish->paths[0].name, "10.2.0.0/16");
    ck_assert_str_eq(command_prefixes(&wish->paths[0]), "10.2.0.0/16");
    ck_assert_uint_eq(it->delay_ns, 50000000);
    ck_assert_uint_eq(it->jitter_ns, 10000000);
    ck_assert_int_eq(it->jitter_shape, JITTER_NORMAL);
    ck_assert_double_eq(it->correlation, 0.25);
    ck_assert_int_eq(it->loss.kind, LOSS_INDEPENDENT);
    ck_assert_double_eq(it->loss.ratio, 0.001);
    ck_assert_uint_eq(it->rate_byte_per_s, 1250000000);
    ck_assert(!it->seed_given && !it->limit_given);
    ck_assert(command_noted(&wishes, "the RTT is longer by 100 ms, its jitter 14.14 ms sd"));
    ck_assert(command_noted(&wishes, "--gso-off"));
    ck_assert(command_noted(&wishes, "uncorrelated"));
    /* twice the bandwidth-delay product, at the very least */
    ck_assert_double_gt(it->limit_packets, 2 * 0.05 * 1.25e9 / 1514);
    wishes_free(&wishes);
}
END_TEST

START_TEST(takes_the_rest)
{
    struct wishes wishes = command_wishes("-d eth0 --to 10.2.0.0/16 --to fd00:2::/32 --to 10.3.0.7 --delay 10.65~ms "
                                          "--jitter 495us --jitter-shape paretonormal --reorder 1% --duplicate 0.02 "
                                          "--corrupt 1e-6 --limit 1234 --seed 18446744073709551615 --rate 800~Gb/s",
                                          NULL);
    const struct impairment *it = only(&wishes);
    ck_assert_str_eq(wishes.wishes[0].paths[0].name, "10.2.0.0/16 and 2 more");
    ck_assert_str_eq(command_prefixes(&wishes.wishes[0].paths[0]), "10.2.0.0/16 fd00:2::/32 10.3.0.7");
    ck_assert_uint_eq(it->delay_ns, 10650000);
    ck_assert_uint_eq(it->jitter_ns, 495000);
    ck_assert_int_eq(it->jitter_shape, JITTER_PARETONORMAL);
    ck_assert_double_eq(it->reorder, 0.01);
    ck_assert_double_eq(it->duplicate, 0.02);
    ck_assert_double_eq(it->corrupt, 1e-6);
    ck_assert(it->limit_given);
    ck_assert_uint_eq(it->limit_packets, 1234);
    ck_assert(it->seed_given);
    ck_assert_uint_eq(it->seed, UINT64_MAX);
    ck_assert_uint_eq(it->rate_byte_per_s, UINT64_C(100000000000));
    wishes_free(&wishes);
}
END_TEST

START_TEST(takes_each_alone)
{
    static const char *const flags[] = {
        "--delay 1ns",      "--loss 100%",      "--loss 0.00000003%",
        "--duplicate 100%", "--corrupt 0.001",  "--rate 8~Tb/s",
        "--rate 8~b/s",     "--delay 1000000s", "--delay 2147483647ns --jitter 2147483647ns"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char line[128];
        snprintf(line, sizeof line, BASE "%s", flags[i]);
        struct wishes wishes = command_wishes(line, NULL);
        (void)only(&wishes);
        wishes_free(&wishes);
    }
}
END_TEST

START_TEST(takes_shapes)
{
    static const char *const names[] = {"normal", "pareto", "paretonormal", "uniform"};
    for (int i = 0; i < 4; i++) {
        char line[128];
        snprintf(line, sizeof line, BASE "--delay 9ms --jitter 1ms --jitter-shape %s", names[i]);
        struct wishes wishes = command_wishes(line, NULL);
        ck_assert_int_eq((int)only(&wishes)->jitter_shape, i);
        wishes_free(&wishes);
    }
}
END_TEST

/* Ingress is the same, but for the place; what loss does to segments is then the sender's. */
START_TEST(takes_places)
{
    struct wishes wishes = command_wishes(BASE "--at ingress --loss 1%", NULL);
    ck_assert_int_eq(wishes.wishes[0].at, PLAN_INGRESS);
    ck_assert(!command_noted(&wishes, "--gso-off"));
    wishes_free(&wishes);
    wishes = command_wishes(BASE "--at egress --gso-off --loss 1%", NULL);
    ck_assert_int_eq(wishes.wishes[0].at, PLAN_EGRESS);
    ck_assert(wishes.wishes[0].gso_off);
    ck_assert(!command_noted(&wishes, "--gso-off"));
    ck_assert(command_noted(&wishes, "one way only"));
    wishes_free(&wishes);
}
END_TEST

/* The chain's stationary loss and burst are those asked for: share of bad x lost in bad, 1 / r. */
START_TEST(loses_in_bursts)
{
    static const struct {
        const char *flags;
        double loss, burst, inside;
    } rows[] = {{"--loss 1% --loss-burst 10", 0.01, 10, 1},
                {"--loss 0.1% --loss-burst 2.5 --loss-in-burst 50%", 0.001, 2.5, 0.5},
                {"--loss 50% --loss-burst 1.5", 0.5, 1.5, 1},
                {"--loss 1% --loss-burst 1 --loss-in-burst 20%", 0.01, 1, 0.2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[128];
        snprintf(line, sizeof line, BASE "%s", rows[i].flags);
        struct wishes wishes = command_wishes(line, NULL);
        const struct loss *loss = &only(&wishes)->loss;
        ck_assert_int_eq(loss->kind, LOSS_GILBERT_ELLIOTT);
        ck_assert_double_eq_tol(loss->p / (loss->p + loss->r) * loss->lost_bad, rows[i].loss, 1e-15);
        ck_assert_double_eq_tol(1 / loss->r, rows[i].burst, 1e-12);
        ck_assert_double_eq_tol(loss->lost_bad, rows[i].inside, 1e-15);
        ck_assert_double_eq_tol(loss->ratio, rows[i].loss, 1e-15);
        wishes_free(&wishes);
    }
    struct wishes wishes = command_wishes(BASE "--loss 1% --loss-burst 1", NULL);
    ck_assert_int_eq(only(&wishes)->loss.kind, LOSS_INDEPENDENT);
    wishes_free(&wishes);
}
END_TEST

START_TEST(rate_without_end_is_none)
{
    struct wishes wishes = command_wishes(BASE "--delay 1ms --rate inf", NULL);
    ck_assert_uint_eq(only(&wishes)->rate_byte_per_s, IMPAIRMENT_RATE_NONE);
    wishes_free(&wishes);
    command_refused(BASE "--rate inf", NULL, -EINVAL, "nothing to do: ", "add e.g. --delay");
}
END_TEST

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    ck_assert_int_eq(fclose(out), 0);
}

/* Kept as a full path, whatever the folder that it was named from. */
START_TEST(takes_a_table)
{
    char folder[] = "/tmp/longhaul-wish-XXXXXX", line[128], *full;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    full = realpath(".", NULL);
    write_file("good.dist", "# a table\n-8192 0 8192\n");
    write_file("bad.dist", "1 2\nx\n");
    struct wishes wishes = command_wishes(BASE "--delay 1ms --jitter 5ms --jitter-table ./good.dist", NULL);
    ck_assert(!command_noted(&wishes, "tc would look for"));
    /* -1, 0 and 1: sqrt(2/3), so 5 ms x sqrt 2 x sqrt(2/3) */
    ck_assert(command_noted(&wishes, "its mean is 0 and its deviation 0.816"));
    ck_assert(command_noted(&wishes, "longer by 2 ms, its jitter 5.774 ms sd"));
    snprintf(line, sizeof line, "%s/good.dist", full);
    ck_assert_str_eq(only(&wishes)->table_file, line);
    wishes_free(&wishes);
    ck_assert_int_eq(rename("good.dist", "good"), 0);
    wishes = command_wishes(BASE "--delay 1ms --jitter 5ms --jitter-table good", NULL);
    ck_assert(command_noted(&wishes, "/good.dist") && command_noted(&wishes, "tc would look for"));
    wishes_free(&wishes);
    ck_assert_int_eq(rename("good", "good.dist"), 0);
    command_refused(BASE "--delay 1ms --jitter 1ms --jitter-table bad.dist", NULL, -EINVAL,
                    "--jitter-table: bad.dist:2:1", "");
    command_refused(BASE "--delay 1ms --jitter 1ms --jitter-table none.dist", NULL, -ENOENT,
                    "--jitter-table: ", "none.dist");
    command_refused(BASE "--delay 1ms --jitter 1ms --jitter-shape pareto --jitter-table good.dist", NULL, -EINVAL,
                    "--jitter-table: ", "--jitter-shape another");
    command_refused(BASE "--delay 1ms --jitter-table good.dist", NULL, -EINVAL, "--jitter-table: ", "add --jitter");
    ck_assert(!remove("good.dist") && !remove("bad.dist") && !chdir("/") && !rmdir(folder));
    free(full);
}
END_TEST

/* Without --dev, each prefix where the kernel would send it; the rate by flags is that of each device. */
START_TEST(finds_devices)
{
    static const struct machine machine = {.routes = {{"10.2.0.0/17", "eth1"}, {"10.0.0.0/8", "eth0"}}};
    struct wishes wishes =
        command_wishes("--to 10.2.0.0/18 --to 10.2.128.0/17 --to fd00::/32 --rate 1Gb/s --seed 7", &machine);
    ck_assert_uint_eq(wishes.count, 2);
    ck_assert_str_eq(wishes.wishes[0].device, "eth1");
    ck_assert_str_eq(command_prefixes(&wishes.wishes[0].paths[0]), "10.2.0.0/18 fd00::/32");
    ck_assert_str_eq(wishes.wishes[1].device, "eth0");
    ck_assert_str_eq(command_prefixes(&wishes.wishes[1].paths[0]), "10.2.128.0/17");
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(wishes.wishes[i].paths[0].impairment.rate_byte_per_s, 125000000);
    ck_assert_uint_eq(wishes.wishes[0].paths[0].impairment.seed, 7);
    ck_assert_uint_ne(wishes.wishes[1].paths[0].impairment.seed, 7);
    ck_assert(command_noted(&wishes, "leaves by 2 devices; each has the whole rate one way"));
    ck_assert(command_noted(&wishes, "no route to 1 of 3 prefixes (no route to fd00::/32)"));
    wishes_free(&wishes);
    command_refused("--to 192.0.2.0/24 --delay 1ms", &machine, -ENOENT, "192.0.2.0/24: no route to 192.0.2.0/24",
                    "name the device with --dev");
}
END_TEST

/* What a flag says of a value is, word for word, what a scenario says. */
static const struct {
    const char *flag, *value;
    enum dimension dimension;
} units[] = {
    {"--delay", "21", DIM_TIME},          {"--delay", "21.3", DIM_TIME},      {"--delay", "-1 ms", DIM_TIME},
    {"--delay", "nan", DIM_TIME},         {"--delay", "1e400 s", DIM_TIME},   {"--delay", "inf", DIM_TIME},
    {"--delay", "1 MS", DIM_TIME},        {"--delay", "1 msec", DIM_TIME},    {"--delay", "ms", DIM_TIME},
    {"--delay", "1 ms x", DIM_TIME},      {"--delay", "0x10 ms", DIM_TIME},   {"--delay", "+1 ms", DIM_TIME},
    {"--delay", "1,5 ms", DIM_TIME},      {"--delay", "", DIM_TIME},          {"--delay", "1e-400 s", DIM_TIME},
    {"--delay", "1 Gb/s", DIM_TIME},      {"--jitter", "0.7", DIM_TIME},      {"--jitter", "0.7 MS", DIM_TIME},
    {"--jitter", "-1 us", DIM_TIME},      {"--jitter", "nan", DIM_TIME},      {"--jitter", "inf", DIM_TIME},
    {"--rate", "100", DIM_RATE},          {"--rate", "100 gb/s", DIM_RATE},   {"--rate", "100 Gbs", DIM_RATE},
    {"--rate", "10 Gbit", DIM_RATE},      {"--rate", "10mbps", DIM_RATE},     {"--rate", "-1 Gb/s", DIM_RATE},
    {"--rate", "nan", DIM_RATE},          {"--rate", "1e400 Gb/s", DIM_RATE}, {"--loss", "5", DIM_RATIO},
    {"--loss", "-1 %", DIM_RATIO},        {"--loss", "0.1 pct", DIM_RATIO},   {"--loss", "nan", DIM_RATIO},
    {"--loss", "inf", DIM_RATIO},         {"--correlation", "25", DIM_RATIO}, {"--reorder", "2", DIM_RATIO},
    {"--duplicate", "1 Gb/s", DIM_RATIO}, {"--corrupt", "1.01", DIM_RATIO},   {"--loss-in-burst", "50", DIM_RATIO},
};

START_TEST(units_as_in_a_scenario)
{
    char line[160], value[64], says[ERR_TEXT_MAX + 32];
    struct err err = {""};
    double ignored;
    ck_assert_int_eq(units_parse(units[_i].value, units[_i].dimension, &ignored, &err), -EINVAL);
    snprintf(value, sizeof value, "%s", units[_i].value);
    for (char *at = value; (at = strchr(at, ' ')); at++)
        *at = '~';
    snprintf(line, sizeof line, BASE "%s=%s", units[_i].flag, value);
    snprintf(says, sizeof says, "%s: %s", units[_i].flag, err.text);
    command_refused(line, NULL, -EINVAL, says, "");
}
END_TEST

static const struct {
    const char *line, *at, *says;
} refused[] = {
    /* what is missing */
    {"--delay 1ms", "--to is missing", "like --to 10.2.0.0/16"},
    {"--to 10.2.0.0/16", "nothing to do: ", "--delay 10.65ms"},
    {"--dev eth0", "nothing is asked for; ", "give a SCENARIO"},
    {BASE "--delay 0 --loss 0% --duplicate 0", "nothing to do: ", ""},
    {BASE "--limit 5 --seed 4", "nothing to do: ", ""},
    /* what contradicts */
    {BASE "--jitter 1ms", "--jitter: ", "add e.g. --delay"},
    {BASE "--jitter 1ms --loss 1% --delay 0", "--jitter: ", "add e.g. --delay"},
    {BASE "--delay 10ms --jitter 20ms", "--jitter: ", "is more than the --delay one way"},
    {BASE "--delay 1ms --correlation 5%", "--correlation: ", "add --jitter"},
    {BASE "--delay 1ms --jitter-shape pareto", "--jitter-shape: ", "add --jitter"},
    {BASE "--loss 1% --reorder 5%", "--reorder: ", "nothing to overtake"},
    {BASE "--loss-burst 3", "--loss-burst: ", "add e.g. --loss"},
    {BASE "--loss 1% --loss-in-burst 50%", "--loss-in-burst: ", "add e.g. --loss-burst"},
    {BASE "--loss 1% --loss-burst 3 --loss-in-burst 0", "--loss-in-burst: ", "above 0 %"},
    {BASE "--loss 60% --loss-burst 1.2", "--loss-burst: ", "--loss-burst 1.5 or more would fit"},
    {BASE "--loss 50% --loss-burst 3 --loss-in-burst 50%", "--loss: ", "more --loss-in-burst would fit"},
    {BASE "--loss 100% --loss-burst 3", "--loss: ", "less --loss would fit"},
    {BASE "--loss 0.00000003% --loss-burst 100", "--loss-burst: ", "1 in 2^32"},
    {BASE "--delay 1ms --at ingress --gso-off", "--gso-off: ", "give it there"},
    {BASE "--delay 1ms --delay 2ms", "--delay is given twice", ""},
    {BASE "--delay 1ms --dev eth1", "--dev is given twice", ""},
    {BASE "--delay 1ms --to 10.2.0.0/16", "--to: '10.2.0.0/16' is given twice", ""},
    {BASE "--delay 1ms --to fd00::/16 --to fd00:0::/16", "--to: 'fd00:0::/16' is given twice", ""},
    {BASE "--delay 1ms --site west", "--site: only with a SCENARIO", ""},
    {BASE "--delay 1ms --via east", "--via: only with a SCENARIO", ""},
    {BASE "--delay 1ms --share 1/2", "--share: only with a SCENARIO", "--rate"},
    {BASE "--delay 1ms --set wan.rtt=5ms", "--set: only with a SCENARIO", ""},
    {"a.yaml b.yaml", "one SCENARIO at a time", "'b.yaml'"},
    /* values */
    {BASE "--delay 1000001s", "--delay: ", "at most 1000000 s one way"},
    {BASE "--delay 1e300s", "--delay: ", "at most 1000000 s one way"},
    {BASE "--delay 0.4ns", "--delay: ", "less than the kernel's 1 ns"},
    {BASE "--delay 10s --jitter 2147483648ns", "--jitter: ", "at most 2.147483647 s"},
    {BASE "--delay 10s --jitter 3s", "--jitter: ", "at most 2.147483647 s"},
    {BASE "--loss 150%", "--loss: ", "0 % to 100 %"},
    {BASE "--loss 1e-12", "--loss: ", "1 in 2^32"},
    {BASE "--loss 1% --loss-burst 0.5", "--loss-burst: ", "1 to 1000000"},
    {BASE "--loss 1% --loss-burst 1e7", "--loss-burst: ", "1 to 1000000"},
    {BASE "--loss 1% --loss-burst 2~B", "--loss-burst: ", "not a plain number"},
    {BASE "--loss 1% --loss-burst nan", "--loss-burst: ", "not a plain number"},
    {BASE "--loss 1% --loss-burst 0x8", "--loss-burst: ", "not a plain number"},
    {BASE "--loss 1% --loss-burst=-3", "--loss-burst: ", "not a plain number"},
    {BASE "--loss 1% --loss-burst=", "--loss-burst: ", "not a plain number"},
    {BASE "--rate 0", "--rate: ", "8 b/s to 8 Tb/s"},
    {BASE "--rate 7b/s", "--rate: ", "8 b/s to 8 Tb/s"},
    {BASE "--rate 9Tb/s", "--rate: ", "8 b/s to 8 Tb/s"},
    {BASE "--delay 1ms --limit 0", "--limit: ", "1 to 2147483647"},
    {BASE "--delay 1ms --limit 2147483648", "--limit: ", "1 to 2147483647"},
    {BASE "--delay 1ms --limit 99999999999999999999", "--limit: ", "1 to 2147483647"},
    {BASE "--delay 1ms --limit 1000~packets", "--limit: ", "not a whole number"},
    {BASE "--delay 1ms --limit=-1", "--limit: ", "not a whole number"},
    {BASE "--delay 1ms --limit 1.5", "--limit: ", "not a whole number"},
    {BASE "--delay 1ms --seed 18446744073709551616", "--seed: ", "out of range"},
    {BASE "--delay 1ms --seed=", "--seed: ", "not a whole number"},
    {BASE "--delay 1ms --jitter 1us --jitter-shape gauss", "--jitter-shape: ", "normal, pareto, paretonormal, uniform"},
    {BASE "--delay 1ms --jitter 1us --jitter-shape paretonorml", "--jitter-shape: ", "(did you mean 'paretonormal'?)"},
    {BASE "--delay 1ms --at in", "--at: ", "egress, ingress"},
    {BASE "--delay 1ms --at Egress", "--at: ", "(did you mean 'egress'?)"},
    {"--dev a-name-of-16-byte --to 10.2.0.0/16 --delay 1ms", "--dev: ", "no device name"},
    {"--dev= --to 10.2.0.0/16 --delay 1ms", "--dev: ", "no device name"},
    {"--dev eth0/1 --to 10.2.0.0/16 --delay 1ms", "--dev: ", "no device name"},
    {"--dev eth0 --to 10.1.2.3/16 --delay 1ms", "--to: '10.1.2.3/16' has address bits", "write 10.1.0.0/16"},
    {"--dev eth0 --to 10.1.0.0/33 --delay 1ms", "--to: ", "from 0 to 32"},
    {"--dev eth0 --to west-1 --delay 1ms", "--to: ", "names are not looked up"},
    {"--dev eth0 --to= --delay 1ms", "--to: ", "an empty prefix"},
};

START_TEST(refuses)
{
    command_refused(refused[_i].line, NULL, -EINVAL, refused[_i].at, refused[_i].says);
}
END_TEST

/* As many prefixes as a site of a scenario may have, and not one more. */
START_TEST(counts_prefixes)
{
    char *line, *more;
    size_t size;
    FILE *out = open_memstream(&line, &size);
    fputs("--dev eth0 --delay 1ms", out);
    for (int i = 0; i < WISH_TO_MAX; i++)
        fprintf(out, " --to 10.%d.%d.0/24", i / 256, i % 256);
    fclose(out);
    struct wishes wishes = command_wishes(line, NULL);
    ck_assert_uint_eq(wishes.wishes[0].paths[0].prefix_count, WISH_TO_MAX);
    wishes_free(&wishes);
    ck_assert_int_gt(asprintf(&more, "%s --to 11.0.0.0/8", line), 0);
    command_refused(more, NULL, -EINVAL, "--to: 4097 are given; at most 4096", "");
    free(more);
    free(line);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("wish");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, takes_the_usual);
    tcase_add_test(cases, takes_the_rest);
    tcase_add_test(cases, takes_each_alone);
    tcase_add_test(cases, takes_shapes);
    tcase_add_test(cases, takes_places);
    tcase_add_test(cases, loses_in_bursts);
    tcase_add_test(cases, rate_without_end_is_none);
    tcase_add_test(cases, takes_a_table);
    tcase_add_test(cases, finds_devices);
    tcase_add_test(cases, counts_prefixes);
    tcase_add_loop_test(cases, units_as_in_a_scenario, 0, sizeof units / sizeof *units);
    tcase_add_loop_test(cases, refuses, 0, sizeof refused / sizeof *refused);
    return run_cases("wish", cases);
}
