#include "emu/verify/goodput.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "emu/verify/io.h"

enum { CHUNK_BYTES = 256 * 1024 };

double goodput_bit_per_s(uint64_t bytes, double time_s)
{
    const double bits_per_byte = 8;
    return bits_per_byte * (double)bytes / time_s;
}

static uint32_t buffer_of(int fd, int option)
{
    int value = 0;
    socklen_t length = sizeof value;
    getsockopt(fd, SOL_SOCKET, option, &value, &length);
    return (uint32_t)value;
}

static void ask_sender(int fd, struct goodput *goodput)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    goodput->mss_bytes = info.tcpi_snd_mss;
    goodput->mtu_bytes = info.tcpi_pmtu;
    goodput->retransmits = info.tcpi_total_retrans;
    goodput->sndbuf_bytes = buffer_of(fd, SO_SNDBUF);
    length = sizeof goodput->congestion - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, goodput->congestion, &length))
        goodput->congestion[0] = '\0';
}

/* Room to send (0), the end (1), or why not. */
static int wait_for_room(int fd, int end_fd, int64_t until_ns, int stop_fd)
{
    struct pollfd polled[] = {
        {.fd = fd, .events = POLLOUT}, {.fd = end_fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
    int64_t left = until_ns - io_now_ns();
    if (left <= 0)
        return -ETIMEDOUT;
    struct timespec timeout = {.tv_sec = left / IO_NS_PER_S, .tv_nsec = left % IO_NS_PER_S};
    int ready = ppoll(polled, 3, &timeout, NULL);
    if (ready < 0 && errno != EINTR)
        return -errno;
    if (polled[2].revents)
        return -EINTR;
    return polled[1].revents || polled[0].revents & (POLLERR | POLLHUP);
}

int goodput_send(int fd, int end_fd, int64_t until_ns, int stop_fd, struct progress *progress, struct goodput *goodput)
{
    int unsent = CHUNK_BYTES, end = 0; /* what waits in the kernel unsent needs no memory beyond this */
    uint8_t *chunk = calloc(1, CHUNK_BYTES);
    if (!chunk)
        return -ENOMEM;
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    ask_sender(fd, goodput); /* a broken connection forgets its MSS */
    while (!end) {
        ssize_t sent = send(fd, chunk, CHUNK_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            break;
        progress_show(progress);
        end = wait_for_room(fd, end_fd, until_ns, stop_fd);
        if (!end)
            ask_sender(fd, goodput);
    }
    free(chunk);
    return end < 0 ? end : 0;
}

/* Reads all that is there: TCP drops it uncopied. Bytes, or -ECONNRESET. */
static int64_t drain(int fd)
{
    int64_t bytes = 0;
    for (;;) {
        ssize_t got = recv(fd, NULL, CHUNK_BYTES, MSG_TRUNC | MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return -ECONNRESET;
        if (got < CHUNK_BYTES)
            return bytes + (got > 0 ? got : 0);
        bytes += got;
    }
}

/* Reads until the time has come and all that is there is read; adds to bytes. The kernel forgets the clamp when it
 * learns how well packets fill memory, so it is told again; where nothing changed this does nothing. */
static int read_until(int fd, int64_t until_ns, uint32_t window_bytes, int stop_fd, struct progress *progress,
                      uint64_t *bytes)
{
    for (;;) {
        progress_show(progress);
        if (window_bytes)
            (void)!setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &(int){(int)window_bytes}, sizeof(int));
        int rc = io_wait(fd, POLLIN, until_ns, stop_fd);
        if (rc)
            return rc == -ETIMEDOUT ? 0 : rc;
        int64_t got = drain(fd);
        if (got < 0)
            return (int)got;
        *bytes += (uint64_t)got;
        if (io_now_ns() >= until_ns)
            return 0;
    }
}

int goodput_receive(int fd, const struct goodput_task *task, int stop_fd, struct progress *progress,
                    struct goodput *goodput)
{
    uint64_t ignored = 0, bytes = 0;
    int rc = read_until(fd, io_now_ns() + task->warmup_ns, task->window_bytes, stop_fd, progress, &ignored);
    int64_t from_ns = io_now_ns();
    rc = rc ? rc : read_until(fd, from_ns + task->time_ns, task->window_bytes, stop_fd, progress, &bytes);
    if (rc)
        return rc;
    goodput->bytes = bytes;
    goodput->time_s = (double)(io_now_ns() - from_ns) / IO_NS_PER_S;
    goodput->bit_per_s = goodput_bit_per_s(bytes, goodput->time_s);
    goodput->rcvbuf_bytes = buffer_of(fd, SO_RCVBUF);
    return 0;
}
