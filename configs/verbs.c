#include "configs/verbs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "configs/err.h"
#include "configs/options.h"
#include "configs/suggest.h"

static int print_help(const struct verbs *verbs, FILE *out)
{
    fprintf(out, "%s: %s\n\nusage: %s VERB [ARGUMENTS]\n       %s VERB --help\n       %s --version\n\n", verbs->program,
            verbs->purpose, verbs->program, verbs->program, verbs->program);
    for (size_t i = 0; i < verbs->count; i++)
        fprintf(out, "  %-8s %s\n", verbs->list[i].name, verbs->list[i].help);
    fprintf(out, "\n%s", verbs->example);
    return EXIT_FINE;
}

static const struct verb *find_verb(const struct verbs *verbs, const char *name)
{
    for (size_t i = 0; i < verbs->count; i++)
        if (!strcmp(verbs->list[i].name, name))
            return &verbs->list[i];
    return NULL;
}

static int unknown(const struct verbs *verbs, const char *name)
{
    char phrase[128];
    suggest_phrase(name, verbs->list, verbs->count, sizeof *verbs->list, phrase, sizeof phrase);
    fprintf(stderr, "%s: unknown verb '%s'%s; see %s --help\n", verbs->program, name, phrase, verbs->program);
    return EXIT_USAGE;
}

/* Runs a verb under the name that its help and messages shall show. */
static int run(const struct verbs *verbs, const struct verb *verb, int argc, char **argv)
{
    char name[64];
    struct err err = {""};
    snprintf(name, sizeof name, "%s %s", verbs->program, verb->name);
    argv[0] = name;
    int code = verb->run(argc, argv);
    if (options_close(stdout, "-", &err)) {
        fprintf(stderr, "%s: %s\n", verbs->program, err.text);
        return code ? code : EXIT_FAILED;
    }
    return code;
}

int verbs_main(const struct verbs *verbs, int argc, char **argv)
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
        return print_help(verbs, stdout);
    const struct verb *verb = find_verb(verbs, help ? argv[2] : name);
    if (verb && help)
        return run(verbs, verb, 2, (char *[]){argv[2], help_option, NULL});
    if (verb)
        return run(verbs, verb, argc - 1, argv + 1);
    if (*name)
        return unknown(verbs, help ? argv[2] : name);
    print_help(verbs, stderr);
    return EXIT_USAGE;
}
