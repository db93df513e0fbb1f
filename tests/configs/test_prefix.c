#include "configs/prefix.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/configs/sample.h"

static const struct {
    const char *text, *written; /* written NULL: as text */
    int family;
    unsigned length;
} good[] = {
    {"10.1.0.0/16", NULL, AF_INET, 16},
    {"10.1.2.3", NULL, AF_INET, 32},
    {"10.1.2.3/32", "10.1.2.3", AF_INET, 32},
    {"10.1.2.2/31", NULL, AF_INET, 31},
    {"128.0.0.0/1", NULL, AF_INET, 1},
    {"0.0.0.0/0", NULL, AF_INET, 0},
    {"255.255.255.255", NULL, AF_INET, 32},
    {"fd00:1::/32", NULL, AF_INET6, 32},
    {"FD00:0001::/32", "fd00:1::/32", AF_INET6, 32},
    {"::1", NULL, AF_INET6, 128},
    {"::1/128", "::1", AF_INET6, 128},
    {"::/0", NULL, AF_INET6, 0},
    {"fd00:1:8000::/33", NULL, AF_INET6, 33},
    {"2001:db8:1:2:3:4:5:6", NULL, AF_INET6, 128},
    {"64:ff9b::10.1.2.3", "64:ff9b::a01:203", AF_INET6, 128},
    {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.254/127", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127", AF_INET6, 127},
};

START_TEST(reads_and_writes)
{
    struct prefix prefix, again;
    struct err err = {""};
    char text[PREFIX_TEXT_MAX];
    ck_assert_msg(!prefix_parse(good[_i].text, &prefix, &err), "%s", err.text);
    ck_assert_int_eq(prefix.family, good[_i].family);
    ck_assert_uint_eq(prefix.length, good[_i].length);
    ck_assert_str_eq(prefix_format(&prefix, text, sizeof text), good[_i].written ? good[_i].written : good[_i].text);
    ck_assert(!prefix_parse(text, &again, NULL));
    ck_assert_mem_eq(&prefix, &again, sizeof prefix);
    ck_assert(prefix_contains(&prefix, &again));
}
END_TEST

static const struct {
    const char *text, *says;
} bad[] = {
    {"", "an empty prefix"},
    {" ", "a space"},
    {"10.1.0.0/16 ", "from 0 to 32"},
    {" 10.1.0.0/16", "a space"},
    {"10.1.0.0 /16", "a space"},
    {"10.1.0.0/ 16", "from 0 to 32"},
    {"10.1.0.0,10.2.0.0", "no IP prefix"},
    {"10.1", "four numbers"},
    {"10.1/16", "four numbers"},
    {"10.1.2.3.4", "four numbers"},
    {"10.1.2.", "four numbers"},
    {"167837953", "four numbers"},
    {"10.1.2.256", "four numbers"},
    {"010.1.2.3", "without leading zeros"},
    {"0x0a.1.2.3", "names are not looked up"},
    {"10.1.0.0/33", "from 0 to 32"},
    {"10.1.0.0/-1", "from 0 to 32"},
    {"10.1.0.0/+16", "from 0 to 32"},
    {"10.1.0.0/016", "from 0 to 32"},
    {"10.1.0.0/1e1", "from 0 to 32"},
    {"10.1.0.0/", "from 0 to 32"},
    {"10.1.0.0/16/16", "from 0 to 32"},
    {"10.1.0.0/255.255.0.0", "from 0 to 32"},
    {"10.1.0.0/4294967312", "from 0 to 32"},
    {"10.1.0.0/18446744073709551632", "from 0 to 32"},
    {"/16", "no IP prefix"},
    {"10.1.2.3/16", "write 10.1.0.0/16 for the network or 10.1.2.3 for one host"},
    {"10.1.0.1/0", "write 0.0.0.0/0"},
    {"fd00:1::1/32", "write fd00:1::/32 for the network or fd00:1::1 for one host"},
    {"fd00::/129", "from 0 to 128 for IPv6, like fd00:1::/32"},
    {"fd00:::1", "no IPv6 prefix"},
    {"1:2:3:4:5:6:7:8:9", "no IPv6 prefix"},
    {"fe80::1%eth0", "has a zone"},
    {"fe80::1%eth0/64", "has a zone"},
    {"10.1.2.3%eth0", "has a zone"},
    {"10.1.2.3:80", "a port or brackets"},
    {"[fd00::1]:80", "a port or brackets"},
    {"[fd00::1]", "a port or brackets"},
    {"::ffff:10.1.2.3", "IPv4 in IPv6 notation; write 10.1.2.3"},
    {"::ffff:10.1.0.0/112", "write 10.1.0.0/16"},
    {"west", "names are not looked up"},
    {"dead", "names are not looked up"},
    {"::g", "no IPv6 prefix"},
    {"10.1.0.0/16\n", "from 0 to 32"},
    {"\xff\xfe", "no IP prefix"},
};

START_TEST(refuses)
{
    struct prefix prefix = {.family = -1, .length = 7}, before = prefix;
    struct err err = {""};
    ck_assert_int_eq(prefix_parse(bad[_i].text, &prefix, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "'%s': got '%s'", bad[_i].text, err.text);
    ck_assert(!strchr(err.text, '\n'));
    ck_assert_mem_eq(&prefix, &before, sizeof prefix);
    ck_assert_int_eq(prefix_parse(bad[_i].text, &prefix, NULL), -EINVAL);
}
END_TEST

START_TEST(refuses_long)
{
    enum { LONG = 1 << 20 };
    static const char *const patterns[] = {"1", ":", ".", "/", "a", "[", "%", "1.", "0:"};
    char *text = malloc(LONG + 1);
    text[LONG] = '\0';
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        struct prefix prefix;
        struct err err = {""};
        for (size_t i = 0; i < LONG; i++)
            text[i] = patterns[p][i % strlen(patterns[p])];
        ck_assert_int_eq(prefix_parse(text, &prefix, &err), -EINVAL);
        ck_assert_uint_lt(strlen(err.text), 200);
        memcpy(text, "10.1.0.0/", 9);
        ck_assert_int_eq(prefix_parse(text, &prefix, &err), -EINVAL);
        ck_assert_uint_lt(strlen(err.text), 200);
    }
    free(text);
}
END_TEST

START_TEST(contains)
{
    static const struct {
        const char *outer, *inner;
        bool holds;
    } pairs[] = {
        {"10.1.0.0/16", "10.1.255.0/24", true},
        {"10.1.0.0/16", "10.2.0.0/24", false},
        {"10.1.2.0/24", "10.1.0.0/16", false},
        {"10.1.2.128/25", "10.1.2.127", false},
        {"10.1.2.128/25", "10.1.2.128", true},
        {"0.0.0.0/0", "255.255.255.255", true},
        {"0.0.0.0/0", "::/0", false},
        {"::/0", "10.1.2.3", false},
        {"::/0", "fd00::1", true},
        {"fd00:1::/33", "fd00:1:7fff:ffff::1", true},
        {"fd00:1::/33", "fd00:1:8000::", false},
        {"::1", "::1", true},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct prefix outer, inner;
        ck_assert(!prefix_parse(pairs[i].outer, &outer, NULL));
        ck_assert(!prefix_parse(pairs[i].inner, &inner, NULL));
        ck_assert_msg(prefix_contains(&outer, &inner) == pairs[i].holds, "%s %s", pairs[i].outer, pairs[i].inner);
    }
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("prefix");
    tcase_add_loop_test(cases, reads_and_writes, 0, sizeof good / sizeof good[0]);
    tcase_add_loop_test(cases, refuses, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(cases, refuses_long);
    tcase_add_test(cases, contains);
    return sample_run("prefix", cases);
}
