/* Waiting that can be stopped, and lines over a connection. */
#ifndef LONGHAUL_VERIFY_IO_H
#define LONGHAUL_VERIFY_IO_H

#include <stddef.h>
#include <stdint.h>

#define IO_NS_PER_S INT64_C(1000000000)

int64_t io_now_ns(void); /* CLOCK_MONOTONIC */
int64_t io_ns(double seconds);

/* Waits until fd is ready for events. 0, -ETIMEDOUT at until_ns, -EINTR when stop_fd (-1: none) is readable, or another
 * negative errno. Errors of fd itself count as ready. */
int io_wait(int fd, short events, int64_t until_ns, int stop_fd);

/* What was read of a connection beyond its last line. */
struct io_line {
    int fd;
    size_t used;
    char bytes[512];
};
/* The next line, without its newline. 0, -ECONNRESET at the end or a line too long, -ETIMEDOUT, -EINTR. */
int io_read_line(struct io_line *line, char *text, size_t size, int64_t until_ns, int stop_fd);
/* Sends a text, short enough to fit into any socket's buffer. 0 or a negative errno. */
int io_say(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
