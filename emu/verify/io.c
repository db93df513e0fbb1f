#include "emu/verify/io.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t io_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * IO_NS_PER_S + now.tv_nsec;
}

int64_t io_ns(double seconds)
{
    return (int64_t)(seconds * IO_NS_PER_S + 0.5);
}

int io_wait(int fd, short events, int64_t until_ns, int stop_fd)
{
    struct pollfd polled[] = {{.fd = fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
    for (;;) {
        int64_t left = until_ns - io_now_ns();
        left = left > 0 ? left : 0;
        struct timespec timeout = {.tv_sec = left / IO_NS_PER_S, .tv_nsec = left % IO_NS_PER_S};
        int ready = ppoll(polled, 2, &timeout, NULL);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready > 0)
            return polled[1].revents ? -EINTR : 0;
        if (ready == 0)
            return -ETIMEDOUT;
    }
}

/* Moves a whole line out of the buffer. */
static int take_line(struct io_line *line, char *text, size_t size)
{
    char *end = memchr(line->bytes, '\n', line->used);
    if (!end)
        return line->used == sizeof line->bytes ? -ECONNRESET : -EAGAIN;
    size_t length = (size_t)(end - line->bytes);
    if (length >= size)
        return -ECONNRESET;
    memcpy(text, line->bytes, length);
    text[length] = '\0';
    line->used -= length + 1;
    memmove(line->bytes, end + 1, line->used);
    return 0;
}

int io_read_line(struct io_line *line, char *text, size_t size, int64_t until_ns, int stop_fd)
{
    for (;;) {
        int rc = take_line(line, text, size);
        if (rc != -EAGAIN)
            return rc;
        rc = io_wait(line->fd, POLLIN, until_ns, stop_fd);
        if (rc)
            return rc;
        ssize_t got = read(line->fd, line->bytes + line->used, sizeof line->bytes - line->used);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return -ECONNRESET;
        line->used += got > 0 ? (size_t)got : 0;
    }
}

int io_say(int fd, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        return -EMSGSIZE;
    ssize_t sent = send(fd, text, (size_t)length, MSG_NOSIGNAL);
    return sent == length ? 0 : -ECONNRESET;
}
