/* Starts a responder at the other end by a remote shell. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/verify/io.h"
#include "emu/verify/verify.h"

#define START_WITHIN_S 30.0
#define END_WITHIN_S 2.0
enum { WORDS_MAX = 64, SAID_MAX = 1024 };

/* RSH HOST PROGRAM respond --attached [--address ADDRESS], in words; rsh is cut in place. */
static int build_command(char *rsh, const char *host, const char *program, const char *address,
                         const char *words[WORDS_MAX], struct err *err)
{
    const char *const tail[] = {host, program, "respond", "--attached", address ? "--address" : NULL, address, NULL};
    size_t count = 0;
    for (char *word; (word = strsep(&rsh, " ")) && count < WORDS_MAX - 8;)
        if (*word)
            words[count++] = word;
    if (!count || rsh)
        return err_set(err, EINVAL, "--rsh: %s; right would be \"ssh -o BatchMode=yes\"",
                       count ? "too many words" : "no command");
    for (size_t i = 0; tail[i]; i++)
        words[count++] = tail[i];
    words[count] = NULL;
    return 0;
}

/* In the child: becomes the command. What it says goes to output and errors. */
static void become(const char *const *words, int input, int output)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0); /* Ctrl-C is for us; we then end it */
    if (dup2(input, 0) >= 0 && dup2(output, 1) >= 0 && dup2(output, 2) >= 0)
        execvp(words[0], (char *const *)words);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    _exit(127);
}

static int spawn(const char *const *words, struct responder *responder, struct err *err)
{
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC))
        return err_set(err, errno, "no pipe: %s", strerror(errno));
    if (pipe2(output, O_CLOEXEC)) {
        close(input[0]);
        close(input[1]);
        return err_set(err, errno, "no pipe: %s", strerror(errno));
    }
    int process = fork();
    if (process == 0)
        become(words, input[0], output[1]);
    close(input[0]);
    close(output[1]);
    responder->input = input[1];
    responder->output = output[0];
    responder->process = process;
    return process < 0 ? err_set(err, errno, "cannot start %s: %s", words[0], strerror(errno)) : 0;
}

/* Reads lines until the one that announces it. said keeps the last other one: a reason, where it ends. */
static int read_announcement(struct responder *responder, int stop_fd, char said[SAID_MAX])
{
    struct io_line line = {.fd = responder->output};
    int64_t until_ns = io_now_ns() + io_ns(START_WITHIN_S);
    char text[SAID_MAX];
    unsigned port;
    for (;;) {
        int rc = io_read_line(&line, text, sizeof text, until_ns, stop_fd);
        if (rc)
            return rc;
        if (sscanf(text, "port %u key %32[0-9a-f]", &port, responder->key) == 2 && port > 0 && port <= UINT16_MAX) {
            responder->port = (uint16_t)port;
            return 0;
        }
        if (*text)
            memcpy(said, text, sizeof text);
    }
}

static int explain(int rc, const char *const *words, const char *host, const char *said, struct err *err)
{
    if (rc == -EINTR)
        return err_set(err, EINTR, "interrupted");
    if (rc == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT, "%s on %s has started no responder within %.0f s", words[0], host,
                       START_WITHIN_S);
    return err_set(err, ECHILD,
                   "no responder on %s: %s (is longhaul-emu there? --remote-program names it, --rsh how to get there)",
                   host, *said ? said : "the remote shell ended without a word");
}

int responder_start(const char *rsh, const char *host, const char *program, const char *address, int stop_fd,
                    struct responder *responder, struct err *err)
{
    const char *words[WORDS_MAX];
    char said[SAID_MAX] = "", *split = strdup(rsh);
    *responder = (struct responder){.input = -1, .output = -1, .host = strdup(host)};
    int rc = split && responder->host ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : build_command(split, host, program, address, words, err);
    rc = rc ? rc : spawn(words, responder, err);
    if (!rc && (rc = read_announcement(responder, stop_fd, said)))
        rc = explain(rc, words, host, said, err);
    free(split);
    if (rc)
        responder_stop(responder);
    return rc;
}

/* Did the process end by then? The pipe from it ends with it. */
static bool ended_by(struct responder *responder, int64_t until_ns)
{
    char dropped[256];
    while (!io_wait(responder->output, POLLIN, until_ns, -1))
        if (read(responder->output, dropped, sizeof dropped) <= 0)
            return true;
    return false;
}

void responder_stop(struct responder *responder)
{
    if (!responder)
        return;
    if (responder->process > 0) {
        close(responder->input); /* its sign to end */
        if (!ended_by(responder, io_now_ns() + io_ns(END_WITHIN_S)))
            kill(-responder->process, SIGTERM);
        close(responder->output);
        waitpid(responder->process, NULL, 0);
    }
    free(responder->host);
    *responder = (struct responder){.input = -1, .output = -1};
}
