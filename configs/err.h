/* One error message on its way up. Whoever first knows what went wrong writes it; callers may prefix it; mains print
 * it. */
#ifndef LONGHAUL_ERR_H
#define LONGHAUL_ERR_H

#include <stdarg.h>

enum { ERR_TEXT_MAX = 1024 };

struct err {
    char text[ERR_TEXT_MAX]; /* one line, no newline at the end; "" while nothing went wrong */
};

/* Writes the message and returns -code, so that callers can `return err_set(err, EINVAL, ...)`.
 * err may be NULL: the message is dropped, the code still returned. A longer text is cut at ERR_TEXT_MAX - 1. */
int err_set(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before a message already set. */
void err_prefix(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Exit codes of every longhaul program. */
enum exit_code {
    EXIT_FINE = 0,         /* done */
    EXIT_FAILED = 1,       /* failed, or a check found a regression or a broken invariant */
    EXIT_USAGE = 2,        /* usage or bad input */
    EXIT_UNAVAILABLE = 77, /* not available here */
};

/* The exit code for a negative errno: -EINVAL and -ENOENT are the user's input (2), -ENOTSUP is 77, others are 1. */
int err_exit_code(int negative_errno);

#endif
