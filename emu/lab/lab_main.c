/* longhaul-lab: a scenario's network on one machine. Started as `init` by the kernel of the lab it is that kernel's
 * first process, and as `rsh` inside it the way from one host to another. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "configs/verbs.h"
#include "emu/lab/guest.h"
#include "emu/lab/lab.h"

static const struct verb list[] = {
    {"build", "build the lab's kernel, once", verb_build},
    {"doctor", "what is here, what is missing, what to install", verb_doctor},
    {"run", "run a command on a host of the lab", verb_run},
    {"shell", "an interactive shell on a host of the lab", verb_shell},
    {"up", "build the hosts and links on this machine's own kernel (--native)", verb_up},
    {"down", "take them away again (--native)", verb_down},
};

static const struct verbs verbs = {
    .program = "longhaul-lab",
    .purpose = "a scenario's sites, hosts and long-haul links on one machine, without root",
    .example = "Example:\n\n"
               "  longhaul lab build\n"
               "  longhaul lab run lab-2x4 -- ping -c 5 east-0\n",
    .list = list,
    .count = sizeof list / sizeof *list,
};

/* Never returns where this is the first process of a lab. */
static void be_init(char *path)
{
    char *slash = strrchr(path, '/');
    if (getpid() != 1 || !slash || strcmp(slash, "/init") != 0)
        return;
    *slash = '\0';
    guest_run(path);
}

static bool is_called(const char *name, const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

int main(int argc, char **argv)
{
    be_init(argv[0]);
    if (is_called("rsh", argv[0]))
        return guest_rsh(argv);
    return verbs_main(&verbs, argc, argv);
}
