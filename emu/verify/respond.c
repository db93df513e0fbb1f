/* The responder: one prober at a time, known by its key. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/verify/goodput.h"
#include "emu/verify/io.h"
#include "emu/verify/statistics.h"
#include "emu/verify/verify.h"
#include "emu/verify/wire.h"

#define KEY_WITHIN_S 5.0 /* who has not said it by then is no prober */
enum { LINE_MAX_BYTES = 256 };

/* Listening. */
struct server {
    int listener, stop_fd;
    int64_t idle_ns;
    char key_text[VERIFY_KEY_DIGITS + 1];
    uint8_t key[WIRE_KEY_BYTES];
};

/* One prober. */
struct session {
    const struct server *server;
    struct io_line control;
    int udp;
    struct sockaddr_storage peer;
    struct arrivals probes;
    uint32_t answered;
    struct batch *batch; /* owned */
};

static int64_t idle_until(const struct server *server)
{
    return io_now_ns() + server->idle_ns;
}

/* The line "WORD KEY REST" that opens every connection: is the key ours? rest: what follows. */
static bool knows_key(const struct server *server, struct io_line *line, const char *word, char *rest)
{
    char text[LINE_MAX_BYTES], first[16], key[VERIFY_KEY_DIGITS + 1];
    uint8_t bytes[WIRE_KEY_BYTES];
    int length = 0;
    if (io_read_line(line, text, sizeof text, io_now_ns() + io_ns(KEY_WITHIN_S), server->stop_fd))
        return false;
    if (sscanf(text, "%15s %32s%n", first, key, &length) != 2 || strcmp(first, word) != 0 ||
        wire_key_parse(key, bytes, NULL) || !wire_key_equal(bytes, server->key))
        return false;
    snprintf(rest, LINE_MAX_BYTES, "%s", text + length);
    return true;
}

/* UDP on the very address that the prober reached, so that answers come from there; on the same port where it is free.
 */
static int open_udp(struct session *session)
{
    struct sockaddr_storage here;
    socklen_t length = sizeof here;
    if (getsockname(session->control.fd, (struct sockaddr *)&here, &length))
        return -errno;
    session->udp = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (session->udp < 0)
        return -errno;
    wire_set_buffers(session->udp, WIRE_UDP_BUFFER_BYTES);
    int rc = bind(session->udp, (struct sockaddr *)&here, length);
    if (rc) {
        wire_set_port(&here, 0);
        rc = bind(session->udp, (struct sockaddr *)&here, length);
    }
    return rc || getsockname(session->udp, (struct sockaddr *)&here, &length) ? -errno : (int)wire_port(&here);
}

/* Answers what carries the key and comes from the prober's address, each probe once. */
static void answer_probes(struct session *session)
{
    struct batch *batch = session->batch;
    int got = batch_receive(batch, session->udp);
    int64_t now_ns = io_now_ns();
    unsigned answers = 0;
    for (int i = 0; i < got; i++) {
        struct datagram probe;
        if (!wire_same_host(&batch->names[i], &session->peer) ||
            !wire_unpack(batch->parts[i].iov_base, batch->messages[i].msg_len, session->server->key, &probe) ||
            probe.answer || !arrivals_add(&session->probes, probe.number))
            continue;
        probe.answer = true;
        probe.nth_answer = session->answered++;
        probe.received_ns = now_ns;
        wire_pack(&probe, batch->parts[answers].iov_base);
        batch->parts[answers].iov_len = batch->messages[i].msg_len;
        batch->names[answers] = batch->names[i];
        batch->messages[answers].msg_hdr.msg_namelen = batch->messages[i].msg_hdr.msg_namelen;
        answers++;
    }
    batch_send(batch, session->udp, answers, true);
}

static int report(struct session *session, const char *arguments)
{
    unsigned sent;
    uint64_t missing, runs;
    if (sscanf(arguments, "%u", &sent) != 1)
        return -EPROTO;
    arrivals_missing(&session->probes, sent, &missing, &runs);
    return io_say(session->control.fd, "report %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", missing, runs,
                  session->probes.reordered, session->probes.duplicated);
}

/* The data connection: the next one that knows the key. Others are dropped. */
static int accept_data(const struct session *session, int64_t until_ns)
{
    for (;;) {
        int rc = io_wait(session->server->listener, POLLIN, until_ns, session->server->stop_fd);
        if (rc)
            return rc;
        int fd = accept4(session->server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            continue;
        struct io_line line = {.fd = fd};
        char rest[LINE_MAX_BYTES];
        /* Of the prober's line no more than itself may be taken: what follows is data, and dropped anyway. */
        if (knows_key(session->server, &line, "data", rest))
            return fd;
        close(fd);
    }
}

static int serve_goodput(struct session *session, const char *arguments)
{
    struct goodput_task task;
    struct goodput goodput = {0};
    char direction[8];
    if (sscanf(arguments, "%7s %" SCNu32 " %" SCNu32 " %" SCNd64 " %" SCNd64, direction, &task.buffer_bytes,
               &task.window_bytes, &task.warmup_ns, &task.time_ns) != 5)
        return -EPROTO;
    bool out = !strcmp(direction, "out");
    wire_set_buffers(session->server->listener, task.buffer_bytes);
    if (io_say(session->control.fd, "go\n"))
        return -ECONNRESET;
    int64_t until_ns = io_now_ns() + task.warmup_ns + task.time_ns + session->server->idle_ns;
    int fd = accept_data(session, until_ns);
    if (fd < 0)
        return fd;
    int rc = out ? goodput_receive(fd, &task, session->server->stop_fd, NULL, &goodput)
                 : goodput_send(fd, fd, until_ns, session->server->stop_fd, NULL, &goodput);
    if (!rc)
        rc = io_say(
            session->control.fd, "goodput %" PRIu64 " %" PRId64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %s\n",
            goodput.bytes, io_ns(goodput.time_s), out ? goodput.rcvbuf_bytes : goodput.sndbuf_bytes, goodput.mss_bytes,
            goodput.mtu_bytes, goodput.retransmits, *goodput.congestion ? goodput.congestion : "-");
    close(fd);
    return rc;
}

static const struct command {
    const char *word;
    int (*serve)(struct session *session, const char *arguments);
} commands[] = {{"report ", report}, {"goodput ", serve_goodput}};

static int serve_command(struct session *session)
{
    char text[LINE_MAX_BYTES];
    int rc =
        io_read_line(&session->control, text, sizeof text, io_now_ns() + io_ns(KEY_WITHIN_S), session->server->stop_fd);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (!strncmp(text, commands[i].word, strlen(commands[i].word)))
            return commands[i].serve(session, text + strlen(commands[i].word));
    return -EPROTO;
}

/* Probes and commands until the prober leaves, is idle, or we are to stop. */
static int serve_session(struct session *session)
{
    int64_t until_ns = idle_until(session->server);
    for (;;) {
        struct pollfd polled[] = {{.fd = session->udp, .events = POLLIN},
                                  {.fd = session->control.fd, .events = POLLIN},
                                  {.fd = session->server->stop_fd, .events = POLLIN}};
        int64_t left_ns = until_ns - io_now_ns();
        if (left_ns <= 0)
            return -ETIMEDOUT;
        struct timespec timeout = {.tv_sec = left_ns / IO_NS_PER_S, .tv_nsec = left_ns % IO_NS_PER_S};
        if (ppoll(polled, 3, &timeout, NULL) <= 0)
            continue;
        if (polled[2].revents)
            return -EINTR;
        if (polled[0].revents)
            answer_probes(session);
        int rc = polled[1].revents ? serve_command(session) : 0;
        if (rc)
            return rc;
        until_ns = idle_until(session->server);
    }
}

/* Greeting, key, and what the prober needs to know. */
static int open_session(struct session *session)
{
    char rest[LINE_MAX_BYTES], clock[WIRE_CLOCK_MAX];
    unsigned count;
    if (!knows_key(session->server, &session->control, "probe", rest))
        return -EACCES;
    if (sscanf(rest, "%u", &count) != 1 || count > VERIFY_PROBES_MAX)
        return -EPROTO;
    session->batch = batch_new(VERIFY_PAYLOAD_MAX);
    if (!session->batch || arrivals_init(&session->probes, count))
        return -ENOMEM;
    int port = open_udp(session);
    wire_clock(clock);
    return port < 0 ? port : io_say(session->control.fd, "ready %d %s\n", port, clock);
}

/* 1: somebody who knows the key was here. */
static int serve(const struct server *server)
{
    struct session session = {.server = server, .udp = -1};
    socklen_t length = sizeof session.peer;
    int one = 1;
    session.control.fd =
        accept4(server->listener, (struct sockaddr *)&session.peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (session.control.fd < 0)
        return 0;
    setsockopt(session.control.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int rc = open_session(&session);
    bool known = rc != -EACCES;
    if (!rc)
        serve_session(&session);
    if (session.udp >= 0)
        close(session.udp);
    close(session.control.fd);
    arrivals_free(&session.probes);
    batch_free(session.batch);
    return known;
}

static int open_server(const struct respond_options *options, struct server *server, struct err *err)
{
    struct sockaddr_storage name;
    socklen_t length;
    int one = 1;
    int rc = options->key ? 0 : wire_key_new(server->key_text, err);
    if (options->key)
        snprintf(server->key_text, sizeof server->key_text, "%.*s", VERIFY_KEY_DIGITS, options->key);
    rc = rc ? rc : wire_key_parse(options->key ? options->key : server->key_text, server->key, err);
    rc = rc ? rc : wire_address(options->address, options->port, &name, &length, err);
    if (rc)
        return rc;
    server->listener = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener >= 0)
        setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (server->listener < 0 || bind(server->listener, (struct sockaddr *)&name, length) ||
        listen(server->listener, 4) || getsockname(server->listener, (struct sockaddr *)&name, &length))
        return err_set(err, errno, "cannot listen on %s port %u: %s",
                       options->address ? options->address : "any address", options->port, strerror(errno));
    return wire_port(&name);
}

int respond_run(const struct respond_options *options, FILE *announce, struct err *err)
{
    struct server server = {.listener = -1, .stop_fd = options->stop_fd, .idle_ns = io_ns(options->idle_s)};
    int rc = open_server(options, &server, err);
    if (rc > 0) {
        fprintf(announce, "port %d key %s\n", rc, server.key_text);
        rc = fflush(announce) ? err_set(err, EIO, "the port and key cannot be written: %s", strerror(errno)) : 0;
    }
    int64_t until_ns = idle_until(&server);
    while (!rc) {
        rc = io_wait(server.listener, POLLIN, until_ns, server.stop_fd);
        if (!rc && io_now_ns() >= until_ns) /* strangers who knock keep nobody up */
            rc = -ETIMEDOUT;
        if (!rc && serve(&server))
            until_ns = idle_until(&server);
    }
    if (server.listener >= 0)
        close(server.listener);
    return rc == -ETIMEDOUT || rc == -EINTR ? 0 : rc;
}
