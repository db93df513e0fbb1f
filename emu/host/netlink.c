#include "emu/host/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BATCH_MESSAGES = 64, /* acks of one batch fit a receive buffer of default size (768 byte each in the kernel) */
    BATCH_BYTES = 64 << 10,
    SOCKET_BYTES = 4 << 20,
    RECEIVE_BYTES = 256 << 10,
    DUMP_TRIES = 20,
};

struct netlink {
    int fd;
    uint32_t sequence;
    char *buffer; /* RECEIVE_BYTES */
};

/* More than the limits of sysctl where the privilege is there; what is given otherwise will do. */
static void enlarge(int fd, int forced, int polite)
{
    int size = SOCKET_BYTES;
    if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size))
        (void)setsockopt(fd, SOL_SOCKET, polite, &size, sizeof size);
}

struct netlink *netlink_open(struct err *err)
{
    struct netlink *netlink = calloc(1, sizeof *netlink);
    if (!netlink || !(netlink->buffer = malloc(RECEIVE_BYTES))) {
        err_set(err, ENOMEM, "out of memory");
        free(netlink);
        return NULL;
    }
    struct sockaddr_nl any = {.nl_family = AF_NETLINK};
    int on = 1;
    netlink->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink->fd < 0 || bind(netlink->fd, (struct sockaddr *)&any, sizeof any)) {
        err_set(err, errno, "no netlink socket: %s", strerror(errno));
        netlink_close(netlink);
        return NULL;
    }
    /* Kernels before 4.12 know neither: messages are poorer then, nothing else. */
    (void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
    (void)setsockopt(netlink->fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
    enlarge(netlink->fd, SO_RCVBUFFORCE, SO_RCVBUF);
    enlarge(netlink->fd, SO_SNDBUFFORCE, SO_SNDBUF);
    return netlink;
}

void netlink_close(struct netlink *netlink)
{
    if (!netlink)
        return;
    if (netlink->fd >= 0)
        close(netlink->fd);
    free(netlink->buffer);
    free(netlink);
}

/* "netem" or "ifb", or "". */
static void kind_of(const struct nlmsghdr *message, char *kind, size_t size)
{
    bool link = message->nlmsg_type == RTM_NEWLINK || message->nlmsg_type == RTM_DELLINK;
    int header = link ? (int)sizeof(struct ifinfomsg) : (int)sizeof(struct tcmsg);
    struct nlattr *found = nlmsg_find_attr((struct nlmsghdr *)message, header, link ? IFLA_LINKINFO : TCA_KIND);
    if (link && found)
        found = nla_find(nla_data(found), nla_len(found), IFLA_INFO_KIND);
    snprintf(kind, size, "%s", "");
    if (found)
        nla_strlcpy(kind, found, size);
}

static void handle_text(uint32_t handle, char *text, size_t size)
{
    if (TC_H_MIN(handle))
        snprintf(text, size, "%x:%x", TC_H_MAJ(handle) >> 16, TC_H_MIN(handle));
    else
        snprintf(text, size, "%x:", TC_H_MAJ(handle) >> 16);
}

/* "setting qdisc netem (10a1:)" */
static void describe(const struct nlmsghdr *message, char *text, size_t size)
{
    static const struct {
        uint16_t type;
        const char *verb, *noun;
    } known[] = {
        {RTM_NEWQDISC, "setting", "qdisc"},     {RTM_DELQDISC, "deleting", "qdisc"},
        {RTM_GETQDISC, "reading", "qdiscs"},    {RTM_NEWTCLASS, "setting", "class"},
        {RTM_DELTCLASS, "deleting", "class"},   {RTM_GETTCLASS, "reading", "classes"},
        {RTM_NEWTFILTER, "setting", "filter"},  {RTM_DELTFILTER, "deleting", "filter"},
        {RTM_GETTFILTER, "reading", "filters"}, {RTM_NEWLINK, "setting", "device"},
        {RTM_DELLINK, "deleting", "device"},    {RTM_GETLINK, "reading", "devices"},
        {RTM_GETADDR, "reading", "addresses"},  {RTM_GETROUTE, "looking up", "route"},
    };
    const char *verb = "sending", *noun = "request";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].type == message->nlmsg_type)
            verb = known[i].verb, noun = known[i].noun;
    char kind[32] = "", handle[16] = "";
    bool tc = message->nlmsg_type >= RTM_NEWQDISC && message->nlmsg_type <= RTM_GETTFILTER;
    if (tc || message->nlmsg_type == RTM_NEWLINK)
        kind_of(message, kind, sizeof kind);
    if (tc && message->nlmsg_type < RTM_NEWTFILTER) {
        const struct tcmsg *tcm = nlmsg_data(message);
        if (tcm->tcm_handle)
            handle_text(tcm->tcm_handle, handle, sizeof handle);
    }
    snprintf(text, size, "%s %s%s%s%s%s%s", verb, noun, *kind ? " " : "", kind, *handle ? " (" : "", handle,
             *handle ? ")" : "");
}

/* The kernel's own sentence in an error answer, or "". */
static void kernel_text(const struct nlmsghdr *answer, char *text, size_t size)
{
    const struct nlmsgerr *error = nlmsg_data(answer);
    size_t used = sizeof *error;
    *text = '\0';
    if (!(answer->nlmsg_flags & NLM_F_ACK_TLVS))
        return;
    if (!(answer->nlmsg_flags & NLM_F_CAPPED))
        used += error->msg.nlmsg_len - sizeof error->msg;
    used = NLMSG_ALIGN(used);
    size_t length = answer->nlmsg_len - NLMSG_HDRLEN;
    struct nlattr *said =
        used < length ? nla_find((struct nlattr *)((char *)error + used), (int)(length - used), NLMSGERR_ATTR_MSG)
                      : NULL;
    if (said)
        nla_strlcpy(text, said, size);
}

/* Which module would bring what the kernel does not have? */
static const char *module_prefix(const struct nlmsghdr *message, const char *text)
{
    if (strstr(text, "TC action"))
        return "act_mirred";
    switch (message->nlmsg_type) {
    case RTM_NEWQDISC:
        return "sch_";
    case RTM_NEWTFILTER:
        return "cls_";
    case RTM_NEWLINK:
        return "";
    default:
        return NULL;
    }
}

static bool is_unknown_kind(const struct nlmsghdr *message, int error, const char *text)
{
    if (message->nlmsg_type == RTM_NEWLINK)
        return error == EOPNOTSUPP;
    return error == ENOENT && (strstr(text, "kind is unknown") || strstr(text, "classifier not found") ||
                               strstr(text, "TC action module"));
}

static int refused(const struct nlmsghdr *message, const struct nlmsghdr *answer, struct err *err)
{
    const struct nlmsgerr *error = nlmsg_data(answer);
    int code = -error->error;
    char what[96], text[512], kind[32];
    describe(message, what, sizeof what);
    kernel_text(answer, text, sizeof text);
    const char *module = module_prefix(message, text);
    if (module && is_unknown_kind(message, code, text)) {
        kind_of(message, kind, sizeof kind);
        bool action = !strcmp(module, "act_mirred");
        return err_set(err, ENOTSUP,
                       "%s: this kernel has no %s (%s); load the module (modprobe %s%s) or use a kernel "
                       "that has it",
                       what, action ? "mirred" : kind, *text ? text : strerror(code), module, action ? "" : kind);
    }
    if (code == EPERM)
        return err_set(err, EPERM, "%s: not permitted; root (CAP_NET_ADMIN) is needed", what);
    if (!*text)
        return err_set(err, code, "%s: %s", what, strerror(code));
    return err_set(err, code, "%s: %s (%s)", what, text, strerror(code));
}

static int lost(int error, struct err *err)
{
    return err_set(err, error, "netlink: %s",
                   error == ENOBUFS ? "answers were lost (the receive buffer is too small)" : strerror(error));
}

/* One datagram of answers; its length or a negative errno. */
static ssize_t receive(struct netlink *netlink, struct err *err)
{
    for (;;) {
        struct sockaddr_nl from = {0};
        struct iovec part = {netlink->buffer, RECEIVE_BYTES};
        struct msghdr header = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1};
        ssize_t length = recvmsg(netlink->fd, &header, 0);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return lost(errno, err);
        if (header.msg_flags & MSG_TRUNC)
            return lost(EMSGSIZE, err);
        if (from.nl_pid == 0) /* the kernel, not another process */
            return length;
    }
}

static int transmit(struct netlink *netlink, struct iovec *parts, size_t count, struct err *err)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct msghdr header = {.msg_name = &kernel, .msg_namelen = sizeof kernel, .msg_iov = parts, .msg_iovlen = count};
    for (;;) {
        if (sendmsg(netlink->fd, &header, 0) >= 0)
            return 0;
        if (errno != EINTR)
            return lost(errno, err);
    }
}

static struct iovec number(struct netlink *netlink, struct nl_msg *message, unsigned flags)
{
    struct nlmsghdr *header = nlmsg_hdr(message);
    header->nlmsg_seq = ++netlink->sequence;
    header->nlmsg_pid = 0;
    header->nlmsg_flags |= (uint16_t)(NLM_F_REQUEST | flags);
    return (struct iovec){header, NLMSG_ALIGN(header->nlmsg_len)};
}

/* Collects one answer for each message of a batch. *failed is the first refused, or count. */
static int collect(struct netlink *netlink, struct nl_msg *const *messages, size_t count, uint32_t first,
                   size_t *failed, struct err *err)
{
    int rc = 0;
    *failed = count;
    for (size_t answers = 0; answers < count;) {
        ssize_t length = receive(netlink, err);
        if (length < 0)
            return (int)length;
        int rest = (int)length;
        for (struct nlmsghdr *answer = (void *)netlink->buffer; nlmsg_ok(answer, rest);
             answer = nlmsg_next(answer, &rest)) {
            size_t place = answer->nlmsg_seq - first;
            if (answer->nlmsg_type != NLMSG_ERROR || place >= count)
                continue;
            answers++;
            if (((struct nlmsgerr *)nlmsg_data(answer))->error && place < *failed) {
                *failed = place;
                rc = refused(nlmsg_hdr(messages[place]), answer, err);
            }
        }
    }
    return rc;
}

int netlink_send(struct netlink *netlink, struct nl_msg *const *messages, size_t count, size_t *failed, struct err *err)
{
    size_t unused;
    failed = failed ? failed : &unused;
    for (size_t start = 0; start < count;) {
        struct iovec parts[BATCH_MESSAGES];
        size_t batch = 0, bytes = 0, place = 0;
        uint32_t first = netlink->sequence + 1;
        while (start + batch < count && batch < BATCH_MESSAGES &&
               (!batch || bytes + nlmsg_hdr(messages[start + batch])->nlmsg_len <= BATCH_BYTES)) {
            parts[batch] = number(netlink, messages[start + batch], NLM_F_ACK);
            bytes += parts[batch++].iov_len;
        }
        *failed = start;
        int rc = transmit(netlink, parts, batch, err);
        rc = rc ? rc : collect(netlink, messages + start, batch, first, &place, err);
        if (rc) {
            *failed = start + (place < batch ? place : 0);
            return rc;
        }
        start += batch;
    }
    *failed = count;
    return 0;
}

/* Answers of a dump, kept until it is known to be whole. */
struct answers {
    size_t size, room;
    char *bytes;
    bool done, interrupted;
};

static int keep(struct answers *answers, const struct nlmsghdr *answer, struct err *err)
{
    size_t length = NLMSG_ALIGN(answer->nlmsg_len);
    if (answers->size + length > answers->room) {
        size_t room = 2 * answers->room + length + 4096;
        char *bytes = realloc(answers->bytes, room);
        if (!bytes)
            return err_set(err, ENOMEM, "out of memory");
        answers->bytes = bytes;
        answers->room = room;
    }
    memset(answers->bytes + answers->size, 0, length);
    memcpy(answers->bytes + answers->size, answer, answer->nlmsg_len);
    answers->size += length;
    return 0;
}

static int sort_answer(const struct nlmsghdr *request, const struct nlmsghdr *answer, struct answers *answers,
                       struct err *err)
{
    if (answer->nlmsg_seq != request->nlmsg_seq)
        return 0; /* of an earlier request that was given up */
    answers->interrupted |= !!(answer->nlmsg_flags & NLM_F_DUMP_INTR);
    if (answer->nlmsg_type == NLMSG_DONE) {
        answers->done = true;
        int code = answer->nlmsg_len >= NLMSG_HDRLEN + sizeof(int) ? *(int *)nlmsg_data(answer) : 0;
        return code < 0 ? lost(-code, err) : 0;
    }
    if (answer->nlmsg_type == NLMSG_ERROR) {
        answers->done = true;
        return ((struct nlmsgerr *)nlmsg_data(answer))->error ? refused(request, answer, err) : 0;
    }
    return keep(answers, answer, err);
}

/* Sends a request and keeps every answer up to the one that ends them. */
static int gather(struct netlink *netlink, struct nl_msg *request, unsigned flags, struct answers *answers,
                  struct err *err)
{
    struct iovec part = number(netlink, request, flags);
    int rc = transmit(netlink, &part, 1, err);
    while (!rc && !answers->done) {
        ssize_t length = receive(netlink, err);
        if (length < 0)
            return (int)length;
        int rest = (int)length;
        for (struct nlmsghdr *answer = (void *)netlink->buffer; !rc && nlmsg_ok(answer, rest);
             answer = nlmsg_next(answer, &rest))
            rc = sort_answer(nlmsg_hdr(request), answer, answers, err);
    }
    return rc;
}

static int hand_out(const struct answers *answers, netlink_take *take, void *context, struct err *err)
{
    int rc = 0, rest = (int)answers->size;
    for (struct nlmsghdr *answer = (void *)answers->bytes; !rc && answers->size && nlmsg_ok(answer, rest);
         answer = nlmsg_next(answer, &rest))
        rc = take(answer, context, err);
    return rc;
}

int netlink_dump(struct netlink *netlink, struct nl_msg *request, netlink_take *take, void *context, struct err *err)
{
    struct answers answers = {0};
    int rc = 0;
    for (int try = 0; try < DUMP_TRIES; try++) {
        answers.size = 0;
        answers.done = answers.interrupted = false;
        rc = gather(netlink, request, NLM_F_DUMP, &answers, err);
        if (rc || !answers.interrupted)
            break;
    }
    if (!rc && answers.interrupted)
        rc = err_set(err, EAGAIN, "the kernel's tables changed under every one of %d readings; try again", DUMP_TRIES);
    rc = rc ? rc : hand_out(&answers, take, context, err);
    free(answers.bytes);
    return rc;
}

int netlink_ask(struct netlink *netlink, struct nl_msg *request, netlink_take *take, void *context, struct err *err)
{
    struct answers answers = {0};
    int rc = gather(netlink, request, NLM_F_ACK, &answers, err);
    rc = rc ? rc : hand_out(&answers, take, context, err);
    free(answers.bytes);
    return rc;
}
