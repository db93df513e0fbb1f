/* What needs no netem: records on disk, the guard of the session, the kernel's own words, no permission. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/host/apply.h"
#include "tests/emu/host/rig.h"
#include "tests/emu/host/wishes.h"

static const struct device e0 = {.ifindex = 7, .name = "e0", .mtu = 1500};

static struct record sample(void)
{
    struct record record = {.device = e0,
                            .complete = true,
                            .wish = wishes_two(),
                            .offloads_before = {true, true, false},
                            .applied_unix_s = 1796000000,
                            .expires_boot_ns = INT64_C(123456789012345),
                            .watcher = 4321,
                            .watcher_start = 987654};
    struct impairment *it = &record.wish.paths[0].impairment;
    it->table_file = strdup("/etc/my table.dist");
    it->loss = (struct loss){LOSS_GILBERT_ELLIOTT, 0.001, 1.0 / 3, 0.7, 0.9, 1e-17};
    it->correlation = 0.1;
    it->seed_given = true;
    it->seed = UINT64_MAX;
    record.before.parts = SNAPSHOT_EGRESS;
    record.before.entries = calloc(1, sizeof *record.before.entries);
    record.before.entries[record.before.count++] = (struct entry){.kind = ENTRY_QDISC,
                                                                  .handle = 0x80010000,
                                                                  .parent = 0xffffffff,
                                                                  .name = "fq",
                                                                  .size = 4,
                                                                  .attributes = malloc(4)};
    memcpy(record.before.entries[0].attributes, "\x04\x00\xff\x80", 4);
    return record;
}

static void start(void)
{
    rig_new_network();
}

START_TEST(record_comes_back_whole)
{
    struct err err = {""};
    struct stat status;
    char **names;
    size_t count;
    start();
    struct record out = sample(), in;
    ck_assert_int_eq(record_read(&e0, &in, &err), -ENOENT);
    ck_assert_msg(record_write(&out, &err) == 0, "%s", err.text);
    ck_assert_msg(record_read(&e0, &in, &err) == 0, "%s", err.text);
    ck_assert(wish_equal(&in.wish, &out.wish) && snapshot_equal(&in.before, &out.before, NULL, 0));
    ck_assert_str_eq(in.wish.paths[0].impairment.table_file, "/etc/my table.dist");
    ck_assert(!memcmp(&in.wish.paths[0].impairment.loss, &out.wish.paths[0].impairment.loss, sizeof(struct loss)));
    ck_assert_uint_eq(in.wish.paths[1].impairment.rate_byte_per_s, IMPAIRMENT_RATE_NONE);
    ck_assert(in.complete && in.offloads_before.gso && !in.offloads_before.tso);
    ck_assert_int_eq(in.expires_boot_ns, out.expires_boot_ns);
    ck_assert_int_eq(in.watcher, 4321);
    ck_assert_uint_eq(in.watcher_start, 987654);
    ck_assert_int_eq(stat(getenv("LONGHAUL_EMU_STATE"), &status), 0);
    ck_assert_int_eq(status.st_mode & 07777, 0700);
    char *modes = rig_output("stat -c %%a $LONGHAUL_EMU_STATE/*.json");
    ck_assert_str_eq(modes, "600\n");
    ck_assert_int_eq(record_list(&names, &count, &err), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(names[0], "e0");
    /* Another device by the same name: the record is none of its, and goes. */
    const struct device other = {.ifindex = 8, .name = "e0"};
    record_free(&in);
    ck_assert_int_eq(record_read(&other, &in, &err), -ENOENT);
    ck_assert_int_eq(record_read(&e0, &in, &err), -ENOENT);
    ck_assert_int_eq(record_remove(&e0, &err), 0);
    free(names[0]);
    free(names);
    free(modes);
    record_free(&out);
}
END_TEST

static const char *const broken[] = {"", "{", "[]", "{\"schema\": \"longhaul.emu-record/0\"}", "\xff\xfe"};

START_TEST(broken_record_is_one_line)
{
    struct err err = {""};
    struct record record = sample(), in;
    start();
    ck_assert_int_eq(record_write(&record, &err), 0);
    rig_run("f=$(ls $LONGHAUL_EMU_STATE/*.json); printf '%%s' '%s' >$f", broken[_i]);
    ck_assert_int_eq(record_read(&e0, &in, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "e0: the record") && !strchr(err.text, '\n'), "%s", err.text);
    record_free(&record);
}
END_TEST

/* Somebody else's folder, file or link is never followed. */
START_TEST(links_are_not_followed)
{
    struct err err = {""};
    struct record record = sample(), in;
    start();
    ck_assert_int_eq(record_write(&record, &err), 0);
    rig_run("cd $LONGHAUL_EMU_STATE && f=$(ls *.json) && mv $f ../precious && ln -s ../precious $f");
    ck_assert_int_eq(record_read(&e0, &in, &err), -EBADMSG);
    ck_assert_int_eq(record_write(&record, &err), 0); /* replaces the link, not what it names */
    rig_run("cd $LONGHAUL_EMU_STATE && test -f $(ls *.json) && test ! -L $(ls *.json) && rm ../precious");
    rig_run("mv $LONGHAUL_EMU_STATE $LONGHAUL_EMU_STATE.real && ln -s $LONGHAUL_EMU_STATE.real $LONGHAUL_EMU_STATE");
    ck_assert_int_lt(record_write(&record, &err), 0);
    rig_run("rm $LONGHAUL_EMU_STATE && mv $LONGHAUL_EMU_STATE.real $LONGHAUL_EMU_STATE && chmod 777 "
            "$LONGHAUL_EMU_STATE");
    ck_assert_int_eq(record_write(&record, &err), -EPERM);
    record_free(&record);
}
END_TEST

/* The guard sees a real connection, held by this process's parent, over IPv4, IPv6 and IPv4 in IPv6. */
static const struct {
    int family;
    const char *address, *shaped;
    bool refused;
} sessions[] = {
    {AF_INET, "127.0.0.1", "127.0.0.0/8", true},  {AF_INET, "127.0.0.1", "0.0.0.0/0", true},
    {AF_INET, "127.0.0.1", "10.2.0.0/16", false}, {AF_INET6, "::1", "::1", true},
    {AF_INET6, "::1", "127.0.0.0/8", false},      {AF_INET6, "::ffff:127.0.0.1", "127.0.0.1", true},
};

static int connect_to_self(int family, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr *where = family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
    socklen_t size = family == AF_INET ? sizeof v4 : sizeof v6;
    int off = 0, listener = socket(family, SOCK_STREAM, 0), fd = socket(family, SOCK_STREAM, 0);
    if (family == AF_INET6)
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ck_assert(listener >= 0 && fd >= 0 && !bind(listener, where, size) && !listen(listener, 1));
    ck_assert_int_eq(getsockname(listener, where, &size), 0);
    ck_assert_int_eq(inet_pton(family, address, family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr), 1);
    ck_assert_int_eq(connect(fd, where, size), 0);
    return fd;
}

START_TEST(session_is_guarded)
{
    struct err err = {""};
    start();
    struct wish wish = wishes_plain(1);
    ck_assert_int_eq(prefix_parse(sessions[_i].shaped, &wish.paths[0].prefixes[0], NULL), 0);
    connect_to_self(sessions[_i].family, sessions[_i].address);
    pid_t child = fork();
    if (child == 0) {
        closefrom(3); /* only the parent holds it */
        int rc = guard_session(&wish, &err);
        ck_assert_msg(rc == (sessions[_i].refused ? -EBUSY : 0), "%d: %s", rc, err.text);
        ck_assert(!rc || (strstr(err.text, "process ") && strstr(err.text, "--force")));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    wish_free(&wish);
}
END_TEST

/* As under tmux: no ancestor holds the connection, a daemon beside them does. */
START_TEST(session_of_a_multiplexer_is_guarded)
{
    struct err err = {""};
    int ready[2], status;
    char byte;
    start();
    struct wish wish = wishes_plain(1);
    ck_assert_int_eq(prefix_parse("127.0.0.0/8", &wish.paths[0].prefixes[0], NULL), 0);
    ck_assert_int_eq(pipe(ready), 0);
    pid_t daemon = fork();
    if (daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, "sshd");
        connect_to_self(AF_INET, "127.0.0.1");
        _exit(write(ready[1], "x", 1) == 1 ? pause() : 1);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    pid_t child = fork();
    if (child == 0) {
        int terminal = posix_openpt(O_RDWR | O_NOCTTY);
        setsid();
        ck_assert(terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal) && open(ptsname(terminal), O_RDWR) >= 0);
        int rc = guard_session(&wish, &err);
        _exit(rc == -EBUSY && strstr(err.text, "of sshd, process ") ? 0 : 1);
    }
    waitpid(child, &status, 0);
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    ck_assert_int_eq(status, 0);
    wish_free(&wish);
}
END_TEST

START_TEST(ssh_variable_is_guarded)
{
    struct err err = {""};
    start();
    struct wish wish = wishes_plain(1);
    setenv("SSH_CONNECTION", "10.2.0.9 51234 10.1.0.1 22", 1);
    ck_assert_int_eq(guard_session(&wish, &err), -EBUSY);
    ck_assert_msg(strstr(err.text, "10.2.0.9 ($SSH_CONNECTION)") != NULL, "%s", err.text);
    setenv("SSH_CONNECTION", "fd00:2::9%eth0 51234 fd00:1::1 22", 1);
    ck_assert_int_eq(guard_session(&wish, &err), -EBUSY);
    setenv("SSH_CONNECTION", "10.9.0.9 51234 10.1.0.1 22", 1);
    ck_assert_int_eq(guard_session(&wish, &err), 0);
    setenv("SSH_CONNECTION", "nonsense", 1);
    ck_assert_int_eq(guard_session(&wish, &err), 0);
    wish_free(&wish);
}
END_TEST

static struct nl_msg *qdisc(int type, uint32_t parent, uint32_t handle, const char *kind)
{
    struct tcmsg tc = {.tcm_ifindex = (int)if_nametoindex("e0"), .tcm_parent = parent, .tcm_handle = handle};
    struct nl_msg *message = nlmsg_alloc_simple(type, type == RTM_NEWQDISC ? NLM_F_CREATE | NLM_F_EXCL : 0);
    nlmsg_append(message, &tc, sizeof tc, NLMSG_ALIGNTO);
    nla_put_string(message, TCA_KIND, kind);
    return message;
}

static const struct {
    uint32_t parent, handle;
    const char *kind, *text;
    int error;
} words[] = {
    {0xffffffff, 0x10000, "nosuchkind",
     "setting qdisc nosuchkind (1:): this kernel has no nosuchkind (Specified qdisc kind is unknown); load the module "
     "(modprobe sch_nosuchkind) or use a kernel that has it",
     ENOTSUP},
    {0x50000, 0x10000, "pfifo", "setting qdisc pfifo (1:): Failed to find specified qdisc (No such file or directory)",
     ENOENT},
    {0xffffffff, 0x10001, "pfifo", "setting qdisc pfifo (1:1): Invalid minor handle (Invalid argument)", EINVAL},
};

START_TEST(kernel_speaks_for_itself)
{
    struct err err = {""};
    start();
    struct netlink *netlink = netlink_open(&err);
    /* Among good ones, in one batch: the first refused is told. */
    struct nl_msg *messages[] = {qdisc(RTM_NEWQDISC, 0xffffffff, 0x20000, "pfifo"),
                                 qdisc(RTM_DELQDISC, 0xffffffff, 0x20000, "pfifo"),
                                 qdisc(RTM_NEWQDISC, words[_i].parent, words[_i].handle, words[_i].kind),
                                 qdisc(RTM_NEWQDISC, 0x60000, 0x30000, "pfifo")};
    size_t failed;
    ck_assert_int_eq(netlink_send(netlink, messages, 4, &failed, &err), -words[_i].error);
    ck_assert_uint_eq(failed, 2);
    ck_assert_str_eq(err.text, words[_i].text);
    for (size_t i = 0; i < 4; i++)
        nlmsg_free(messages[i]);
    netlink_close(netlink);
}
END_TEST

START_TEST(no_permission_is_one_line)
{
    struct err err = {""};
    start();
    char *before = rig_dump("e0");
    struct nl_msg *message = qdisc(RTM_NEWQDISC, 0xffffffff, 0x10000, "pfifo");
    pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(setuid(65534), 0);
        struct netlink *netlink = netlink_open(&err);
        struct wish wish = wishes_two();
        enum apply_outcome outcome;
        ck_assert_int_eq(netlink_send(netlink, &message, 1, NULL, &err), -EPERM);
        ck_assert_str_eq(err.text, "setting qdisc pfifo (1:): not permitted; root (CAP_NET_ADMIN) is needed");
        unsetenv("LONGHAUL_EMU_STATE");
        ck_assert_int_lt(apply_run(netlink, &wish, 1, &(struct apply_options){0}, &outcome, &err), 0);
        ck_assert_msg(strstr(err.text, "needs root") != NULL, "%s", err.text);
        char own[] = "/dev/shm/longhaul-nobody-XXXXXX";
        ck_assert_ptr_nonnull(mkdtemp(own));
        setenv("LONGHAUL_EMU_STATE", own, 1);
        ck_assert_int_eq(apply_run(netlink, &wish, 1, &(struct apply_options){0}, &outcome, &err), -EPERM);
        ck_assert_msg(strstr(err.text, "not permitted") && strstr(err.text, "nothing is changed"), "%s", err.text);
        rig_try("rm -r %s", own);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    char *after = rig_dump("e0");
    ck_assert_str_eq(before, after);
    nlmsg_free(message);
    free(before);
    free(after);
}
END_TEST

/* A real one where the kernel is such; in the lab there is netem, and nothing to see. */
START_TEST(kernel_without_netem)
{
    struct err err = {""};
    enum apply_outcome outcome;
    char **names;
    size_t count;
    start();
    if (rig_try("tc qdisc add dev e1 root netem 2>/dev/null") == 0)
        return;
    char *before = rig_dump("e0");
    struct wish wish = wishes_two();
    struct netlink *netlink = netlink_open(&err);
    ck_assert_int_eq(apply_run(netlink, &wish, 1, &(struct apply_options){0}, &outcome, &err), -ENOTSUP);
    ck_assert_msg(strstr(err.text, "modprobe sch_netem") && strstr(err.text, "nothing is changed"), "%s", err.text);
    char *after = rig_dump("e0");
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(record_list(&names, &count, &err), 0);
    ck_assert_uint_eq(count, 0);
    netlink_close(netlink);
    wish_free(&wish);
    free(before);
    free(after);
}
END_TEST

START_TEST(devices_and_routes)
{
    struct err err = {""};
    struct device device;
    struct prefix prefix, *addresses;
    size_t count, own = 0;
    start();
    rig_run("ip route add 10.2.0.0/16 via 10.1.0.9 && ip -6 route add fd00:2::/32 via fd00:1::9");
    struct netlink *netlink = netlink_open(&err);
    ck_assert_int_eq(device_find(netlink, "e9", &device, &err), -ENOENT);
    ck_assert_msg(strstr(err.text, "no network device \"e9\"; there are lo") != NULL, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(prefix_parse(i ? "fd00:2::/32" : "10.2.0.0/16", &prefix, NULL), 0);
        ck_assert_msg(device_towards(netlink, &prefix, &device, &err) == 0, "%s", err.text);
        ck_assert_str_eq(device.name, "e0");
        ck_assert_uint_eq(device.mtu, 1500);
    }
    ck_assert_int_eq(prefix_parse("10.1.0.0/16", &prefix, NULL), 0);
    ck_assert_int_eq(device_towards(netlink, &prefix, &device, &err), 0);
    ck_assert_str_eq(device.name, "e0");
    ck_assert_int_eq(prefix_parse("192.0.2.0/24", &prefix, NULL), 0);
    ck_assert_int_eq(device_towards(netlink, &prefix, &device, &err), -ENOENT);
    ck_assert_int_eq(device_addresses(netlink, &addresses, &count, &err), 0);
    for (size_t i = 0; i < count; i++) {
        char text[PREFIX_TEXT_MAX];
        prefix_format(&addresses[i], text, sizeof text);
        own += !strcmp(text, "10.1.0.1") || !strcmp(text, "fd00:1::1");
        ck_assert_str_ne(text, "127.0.0.1");
        ck_assert_str_ne(text, "::1");
    }
    ck_assert_uint_eq(own, 2);
    free(addresses);
    netlink_close(netlink);
}
END_TEST

int main(void)
{
    rig_need((const char *const[]){NULL});
    TCase *cases = tcase_create("host");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, record_comes_back_whole);
    tcase_add_loop_test(cases, broken_record_is_one_line, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(cases, links_are_not_followed);
    tcase_add_loop_test(cases, session_is_guarded, 0, sizeof sessions / sizeof sessions[0]);
    tcase_add_test(cases, session_of_a_multiplexer_is_guarded);
    tcase_add_test(cases, ssh_variable_is_guarded);
    tcase_add_loop_test(cases, kernel_speaks_for_itself, 0, sizeof words / sizeof words[0]);
    tcase_add_test(cases, no_permission_is_one_line);
    tcase_add_test(cases, kernel_without_netem);
    tcase_add_test(cases, devices_and_routes);
    return rig_main("host", cases);
}
