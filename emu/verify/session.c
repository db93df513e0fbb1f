#include "emu/verify/session.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "emu/verify/goodput.h"

#define CONNECT_S 5.0

int session_lost(const struct session *session, int rc, struct err *err)
{
    const struct probe_plan *plan = session->plan;
    if (rc == -EINTR)
        return err_set(err, EINTR, "interrupted");
    if (rc == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT, "the responder at %s port %u is silent", plan->address, plan->port);
    return err_set(err, ECONNRESET, "the responder at %s port %u went away in the middle", plan->address, plan->port);
}

/* A connection to the responder within its time. The descriptor, or a negative errno. */
int session_connect(struct session *session, uint32_t buffer_bytes, struct err *err)
{
    const struct probe_plan *plan = session->plan;
    int code = 0, one = 1;
    socklen_t length = sizeof code;
    int fd = socket(session->peer.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, errno, "no TCP socket: %s", strerror(errno));
    wire_set_buffers(fd, buffer_bytes);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    int rc = connect(fd, (struct sockaddr *)&session->peer, session->peer_length) && errno != EINPROGRESS ? -errno : 0;
    rc = rc ? rc : io_wait(fd, POLLOUT, io_now_ns() + io_ns(CONNECT_S), plan->stop_fd);
    if (!rc && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length))
        rc = -code;
    if (!rc)
        return fd;
    close(fd);
    if (rc == -EINTR)
        return err_set(err, EINTR, "interrupted");
    return err_set(err, -rc, "no responder at %s port %u: %s", plan->address, plan->port, strerror(-rc));
}

int session_answer(struct session *session, const char *answer, char rest[SESSION_LINE_MAX], struct err *err)
{
    char line[SESSION_LINE_MAX];
    size_t word = strlen(answer);
    int rc = io_read_line(&session->control, line, sizeof line, io_now_ns() + io_ns(CONNECT_S + session->plan->grace_s),
                          session->plan->stop_fd);
    if (!rc && strncmp(line, answer, word) != 0)
        return err_set(err, EPROTO, "the responder at %s says '%s': is it another version?", session->plan->address,
                       line);
    if (rc)
        return session_lost(session, rc, err);
    snprintf(rest, SESSION_LINE_MAX, "%s", line + word);
    return 0;
}

/* Control connection, key, and the UDP port to probe. */
int session_open(const struct probe_plan *plan, struct session *session, struct err *err)
{
    *session = (struct session){.plan = plan, .control = {.fd = -1}, .udp = -1};
    char rest[SESSION_LINE_MAX], clock[WIRE_CLOCK_MAX], theirs[WIRE_CLOCK_MAX];
    unsigned port;
    int rc = wire_key_parse(plan->key, session->key, err);
    rc = rc ? rc : wire_address(plan->address, plan->port, &session->peer, &session->peer_length, err);
    if (rc)
        return rc;
    session->control.fd = session_connect(session, 0, err);
    if (session->control.fd < 0)
        return session->control.fd;
    if (!io_say(session->control.fd, "probe %s %zu\n", plan->key, plan->probes))
        rc = session_answer(session, "ready ", rest, err);
    else
        rc = -ECONNRESET;
    if (rc == -ECONNRESET)
        return err_set(err, EACCES, "the responder at %s port %u closes at once: its key is another one", plan->address,
                       plan->port);
    if (!rc && sscanf(rest, "%u %79s", &port, theirs) != 2)
        rc = err_set(err, EPROTO, "the responder at %s says 'ready %s'", plan->address, rest);
    if (rc)
        return rc;
    wire_clock(clock);
    session->same_clock = !strcmp(clock, theirs);
    struct sockaddr_storage name = session->peer;
    wire_set_port(&name, (uint16_t)port);
    session->udp = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    wire_set_buffers(session->udp, WIRE_UDP_BUFFER_BYTES);
    if (session->udp < 0 || connect(session->udp, (struct sockaddr *)&name, session->peer_length))
        return err_set(err, errno, "no UDP socket to %s port %u: %s", plan->address, port, strerror(errno));
    return 0;
}

void session_close(struct session *session)
{
    if (session->udp >= 0)
        close(session->udp);
    if (session->control.fd >= 0)
        close(session->control.fd);
    session->udp = session->control.fd = -1;
}

/* The responder's share of the result. */
static int take_goodput(struct session *session, bool out, struct goodput *ours, struct err *err)
{
    char rest[SESSION_LINE_MAX];
    struct goodput theirs = {0};
    int64_t ns;
    uint32_t buffer;
    int rc = session_answer(session, "goodput ", rest, err);
    if (rc)
        return rc;
    int fields =
        sscanf(rest, "%" SCNu64 " %" SCNd64 " %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %15s", &theirs.bytes, &ns,
               &buffer, &theirs.mss_bytes, &theirs.mtu_bytes, &theirs.retransmits, theirs.congestion);
    if (fields != 7 || (out && ns <= 0))
        return err_set(err, EPROTO, "TCP to %s measured nothing: the responder says 'goodput %s'",
                       session->plan->address, rest);
    if (out) {
        ours->bytes = theirs.bytes;
        ours->time_s = (double)ns / IO_NS_PER_S;
        ours->bit_per_s = goodput_bit_per_s(theirs.bytes, ours->time_s);
        ours->rcvbuf_bytes = buffer;
    } else {
        ours->mss_bytes = theirs.mss_bytes;
        ours->mtu_bytes = theirs.mtu_bytes;
        ours->retransmits = theirs.retransmits;
        ours->sndbuf_bytes = buffer;
        memcpy(ours->congestion, theirs.congestion, sizeof ours->congestion);
    }
    ours->known = true;
    ours->direction = out ? OUT : BACK;
    return 0;
}

int session_goodput(struct session *session, FILE *terminal, struct goodput *goodput, struct err *err)
{
    const struct probe_plan *plan = session->plan;
    const struct goodput_task task = {.buffer_bytes = plan->buffer_bytes,
                                      .window_bytes = plan->window_bytes,
                                      .warmup_ns = io_ns(plan->warmup_s),
                                      .time_ns = io_ns(plan->goodput_s)};
    bool out = plan->goodput_direction == OUT;
    char rest[SESSION_LINE_MAX];
    int rc = io_say(session->control.fd, "goodput %s %" PRIu32 " %" PRIu32 " %" PRId64 " %" PRId64 "\n",
                    out ? "out" : "back", task.buffer_bytes, task.window_bytes, task.warmup_ns, task.time_ns);
    if (rc)
        return session_lost(session, rc, err);
    rc = session_answer(session, "go", rest, err);
    if (rc)
        return rc;
    int data = session_connect(session, task.buffer_bytes, err);
    if (data < 0)
        return data;
    struct progress progress;
    progress_begin(&progress, terminal, out ? "TCP to" : "TCP from", plan->address,
                   io_now_ns() + task.warmup_ns + task.time_ns);
    rc = io_say(data, "data %s\n", plan->key);
    int64_t until_ns = io_now_ns() + task.warmup_ns + task.time_ns + io_ns(CONNECT_S + plan->grace_s);
    if (!rc)
        rc = out ? goodput_send(data, session->control.fd, until_ns, plan->stop_fd, &progress, goodput)
                 : goodput_receive(data, &task, plan->stop_fd, &progress, goodput);
    progress_clear(&progress);
    close(data);
    return rc ? session_lost(session, rc, err) : take_goodput(session, out, goodput, err);
}
