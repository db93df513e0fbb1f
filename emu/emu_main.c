/* longhaul-emu: makes real traffic of this machine feel a long-haul link, and takes it back unharmed. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "configs/err.h"
#include "configs/options.h"
#include "configs/suggest.h"
#include "emu/verbs/verbs.h"

static const struct verb {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"plan", "show what apply would do, also as tc commands; changes nothing", verb_plan},
    {"apply", "shape the traffic to the other sites; recorded, checked, taken back whole where it fails", verb_apply},
    {"status", "show what is applied, whether the kernel has it so, and its counters", verb_status},
    {"verify", "measure RTT, jitter, loss and goodput, requested beside measured", verb_verify},
    {"clear", "put back what stood before", verb_clear},
    {"respond", "answer the probes of a verify (it starts this by itself)", verb_respond},
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static int print_help(FILE *out)
{
    fputs("longhaul-emu: makes real traffic of this machine feel a long-haul link\n\n"
          "usage: longhaul-emu VERB [ARGUMENTS]\n"
          "       longhaul-emu VERB --help\n"
          "       longhaul-emu --version\n\n",
          out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-8s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nExample: 21.3 ms round trip to the hosts of 10.2.0.0/16, for an hour, when the same runs at their end:\n\n"
          "  longhaul-emu plan   --dev eth0 --to 10.2.0.0/16 --delay 10.65ms\n"
          "  longhaul-emu apply  --dev eth0 --to 10.2.0.0/16 --delay 10.65ms --for 1h\n"
          "  longhaul-emu status\n"
          "  longhaul-emu clear\n",
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
    fprintf(stderr, "longhaul-emu: unknown verb '%s'%s; see longhaul-emu --help\n", name, phrase);
    return EXIT_USAGE;
}

/* Runs a verb under the name that its help and messages shall show. */
static int run(const struct verb *verb, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "longhaul-emu %s", verb->name);
    argv[0] = name;
    int code = verb->run(argc, argv);
    struct err err = {""};
    if (options_close(stdout, "-", &err)) {
        fprintf(stderr, "longhaul-emu: %s\n", err.text);
        return code ? code : EXIT_FAILED;
    }
    return code;
}

int main(int argc, char **argv)
{
    char help_option[] = "--help";
    const char *name = argc > 1 ? argv[1] : "";
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
