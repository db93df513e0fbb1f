#include "tests/emu/host/rig.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/netlink.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((format(printf, 1, 0))) char *format_text(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    return text;
}

static int shell(const char *command)
{
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int rig_try(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *command = format_text(format, arguments);
    va_end(arguments);
    int code = shell(command);
    free(command);
    return code;
}

void rig_run(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *command = format_text(format, arguments);
    va_end(arguments);
    int code = shell(command);
    ck_assert_msg(code == 0, "exit %d of: %s", code, command);
    free(command);
}

char *rig_output(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *command = format_text(format, arguments), *text = NULL;
    va_end(arguments);
    size_t size = 0;
    FILE *pipe = popen(command, "r"), *out = open_memstream(&text, &size);
    for (int c; pipe && (c = getc(pipe)) != EOF;)
        putc(c, out);
    if (pipe)
        pclose(pipe);
    fclose(out);
    free(command);
    return text;
}

static void leave(const char *reason)
{
    printf("skipped: %s\n", reason);
    exit(77);
}

void rig_need(const char *const *kinds)
{
    if (geteuid() != 0)
        leave("needs root");
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET) || rig_try("ip link add probe type veth"))
            _exit(100);
        for (size_t i = 0; kinds[i]; i++)
            if (rig_try("tc qdisc add dev probe root handle %zx: %s >/dev/null 2>&1 && tc qdisc del dev probe root",
                        i + 1, kinds[i]))
                _exit(1 + (int)i);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    char reason[80];
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 100)
        leave("needs network namespaces, ip and tc");
    snprintf(reason, sizeof reason, "this kernel has no %s", kinds[WEXITSTATUS(status) ? WEXITSTATUS(status) - 1 : 0]);
    if (WEXITSTATUS(status))
        leave(reason);
}

static char state_folder[64];

void rig_new_network(void)
{
    char folder[128];
    snprintf(folder, sizeof folder, "%s/%d", state_folder, (int)getpid());
    setenv("LONGHAUL_EMU_STATE", folder, 1);
    unsetenv("SSH_CONNECTION");
    ck_assert(unshare(CLONE_NEWNET) == 0);
    rig_run("ip link set lo up");
    rig_run("ip link add e0 numtxqueues 4 numrxqueues 4 type veth peer name e1");
    rig_run("ip addr add 10.1.0.1/16 dev e0 && ip -6 addr add fd00:1::1/64 dev e0 nodad");
    rig_run("ip link set e0 up && ip link set e1 up");
}

/* Appends the settings among the attributes as hex. */
static int print_settings(struct nl_msg *message, void *context)
{
    FILE *out = context;
    const struct nlmsghdr *header = nlmsg_hdr(message);
    const struct tcmsg *tc = nlmsg_data(header);
    fprintf(out, "%d %x %x", header->nlmsg_type, tc->tcm_handle, tc->tcm_parent);
    int rest = nlmsg_attrlen(header, sizeof *tc);
    for (struct nlattr *one = nlmsg_attrdata(header, sizeof *tc); nla_ok(one, rest); one = nla_next(one, &rest)) {
        int type = nla_type(one);
        if (type == TCA_STATS || type == TCA_STATS2 || type == TCA_XSTATS)
            continue;
        fprintf(out, " %d=", type);
        for (int i = 0; i < nla_len(one); i++)
            fprintf(out, "%02x", ((unsigned char *)nla_data(one))[i]);
    }
    fputc('\n', out);
    return NL_OK;
}

static void dump(FILE *out, int type, const char *device)
{
    struct tcmsg tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = (int)if_nametoindex(device)};
    struct nl_sock *socket = nl_socket_alloc();
    ck_assert(socket && nl_connect(socket, NETLINK_ROUTE) == 0);
    nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, print_settings, out);
    ck_assert(nl_send_simple(socket, type, NLM_F_DUMP, &tc, sizeof tc) > 0);
    ck_assert(nl_recvmsgs_default(socket) == 0);
    nl_socket_free(socket);
}

/* Sorted: a hash table's order is none. */
char *rig_dump(const char *device)
{
    char path[] = "/dev/shm/longhaul-dump-XXXXXX";
    int fd = mkstemp(path);
    ck_assert(fd >= 0);
    FILE *out = fdopen(fd, "w");
    dump(out, RTM_GETQDISC, device);
    dump(out, RTM_GETTCLASS, device);
    fclose(out);
    char *text =
        rig_output("sort %s; rm %s; for p in $(tc qdisc show dev %s | sed -n 's/^qdisc [a-z_]* \\([0-9a-f]*:\\) "
                   ".*/\\1/p') $(tc class show dev %s | sed -n 's/^class htb \\([^ ]*\\) .*/\\1/p'); do echo at "
                   "$p; tc filter show dev %s parent $p; done; tc filter show dev %s ingress; tc filter show dev "
                   "%s egress",
                   path, path, device, device, device, device, device);
    return text;
}

int rig_main(const char *name, TCase *cases)
{
    setenv("TEMP", "/dev/shm", 0); /* the lab's root file system is read-only */
    snprintf(state_folder, sizeof state_folder, "/dev/shm/longhaul-test-XXXXXX");
    if (!mkdtemp(state_folder))
        leave("/dev/shm cannot be written");
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    rig_try("rm -rf %s", state_folder);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
