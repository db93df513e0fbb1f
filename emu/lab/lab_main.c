/* longhaul-lab: a scenario's network on one machine. Started as `init` by the kernel of the lab it is that kernel's
 * first process. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "configs/err.h"
#include "configs/options.h"
#include "configs/suggest.h"
#include "emu/lab/guest.h"
#include "emu/lab/lab.h"

static const struct verb {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"build", "build the lab's kernel, once", verb_build},
    {"doctor", "what is here, what is missing, what to install", verb_doctor},
    {"run", "run a command on a host of the lab", verb_run},
    {"shell", "an interactive shell on a host of the lab", verb_shell},
    {"up", "build the hosts and links on this machine's own kernel (--native)", verb_up},
    {"down", "take them away again (--native)", verb_down},
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static int print_help(FILE *out)
{
    fputs("longhaul-lab: a scenario's sites, hosts and long-haul links on one machine, without root\n\n"
          "usage: longhaul lab VERB [ARGUMENTS]\n"
          "       longhaul lab VERB --help\n"
          "       longhaul lab --version\n\n",
          out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nExample:\n\n"
          "  longhaul lab build\n"
          "  longhaul lab run lab-2x4 -- ping -c 5 east-0\n",
          out);
    return EXIT_FINE;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

static int unknown(const char *name)
{
    char phrase[128];
    suggest_phrase(name, verbs, VERB_COUNT, sizeof *verbs, phrase, sizeof phrase);
    fprintf(stderr, "longhaul-lab: unknown verb '%s'%s; see longhaul lab --help\n", name, phrase);
    return EXIT_USAGE;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    char name[64];
    struct err err = {""};
    snprintf(name, sizeof name, "longhaul-lab %s", verb->name);
    argv[0] = name;
    int code = verb->run(argc, argv);
    if (options_close(stdout, "-", &err)) {
        fprintf(stderr, "longhaul-lab: %s\n", err.text);
        return code ? code : EXIT_FAILED;
    }
    return code;
}

/* Never returns where this is the first process of a lab. */
static void be_init(char *path)
{
    char *slash = strrchr(path, '/');
    if (getpid() != 1 || !slash || strcmp(slash, "/init") != 0)
        return;
    *slash = '\0';
    guest_run(path);
}

int main(int argc, char **argv)
{
    char help_option[] = "--help";
    const char *name = argc > 1 ? argv[1] : "";
    be_init(argv[0]);
    options_setup();
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        puts("longhaul " LONGHAUL_VERSION);
        return EXIT_FINE;
    }
    bool help = !strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help");
    if (help && argc == 2)
        return print_help(stdout);
    const struct verb *verb = find_verb(help ? argv[2] : name);
    if (verb && help)
        return run(verb, 2, (char *[]){argv[2], help_option, NULL});
    if (verb)
        return run(verb, argc - 1, argv + 1);
    if (*name)
        return unknown(help ? argv[2] : name);
    print_help(stderr);
    return EXIT_USAGE;
}
