/* A process of the machine becomes one of a host. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "emu/lab/guest.h"
#include "emu/lab/network.h"

enum { RSH_FAILED = 255 }; /* as ssh */

int guest_become_host(const char *host, struct err *err)
{
    int rc = network_enter("", host, err);
    if (rc)
        return rc;
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) || sethostname(host, strlen(host)) ||
        mount("", "/", "none", MS_SLAVE | MS_REC, NULL) ||
        (mount("sysfs", "/sys", "sysfs", 0, NULL) && errno != EBUSY)) /* EBUSY: it is this host's already */
        return err_set(err, errno, "%s: %s", host, strerror(errno));
    if (setenv("LONGHAUL_HOST", host, 1))
        return err_set(err, ENOMEM, "out of memory");
    return 0;
}

/* Words as one line for a shell, as rsh sends them: blanks between them, not quoted again. NULL out of memory. */
static char *join(char **words)
{
    size_t size = 1;
    for (char **word = words; *word; word++)
        size += strlen(*word) + 1;
    char *line = calloc(1, size), *end = line;
    for (char **word = words; line && *word; word++)
        end += sprintf(end, "%s%s", end == line ? "" : " ", *word);
    return line;
}

int guest_rsh(char **argv)
{
    struct err err = {""};
    char **words = argv + 1;
    while (*words && **words == '-') /* rsh's and ssh's flags without a value: -n, -x */
        words++;
    const char *host = *words ? *words++ : NULL;
    if (!host || !*words) {
        fputs("usage: rsh HOST COMMAND...\n", stderr);
        return RSH_FAILED;
    }
    char *line = join(words);
    if (!line || guest_become_host(host, &err)) {
        fprintf(stderr, "longhaul lab: rsh: %s\n", line ? err.text : "out of memory");
        return RSH_FAILED;
    }
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    fprintf(stderr, "longhaul lab: rsh: /bin/sh: %s\n", strerror(errno));
    return RSH_FAILED;
}
