/* longhaul: the front door. `longhaul VERB ...` becomes `longhaul-VERB ...`, as git does, so that every verb can be
 * installed alone. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "configs/err.h"
#include "configs/suggest.h"

#define PREFIX "longhaul-"

static const struct verb {
    const char *name;
    const char *help;
    const char *install; /* what to install where it is missing */
} verbs[] = {
    {"sim", "predict a training step, strategy by strategy", "longhaul built with SimGrid (libsimgrid-dev)"},
    {"collective", "time one collective over message sizes", "longhaul built with SimGrid (libsimgrid-dev)"},
    {"platform", "print a scenario as a SimGrid platform", "longhaul built with SimGrid (libsimgrid-dev)"},
    {"compare", "lay a prediction beside what real ranks take in the lab",
     "longhaul built with jansson (libjansson-dev)"},
    {"emu", "make this node's real traffic feel the long-haul link", "longhaul built with libnl (libnl-3-dev)"},
    {"lab", "the scenario's sites and links on this machine, without root", "longhaul built with libnl (libnl-3-dev)"},
    {"config", "check or show a scenario", "longhaul built with libfyaml (libfyaml-dev)"},
};
enum { VERB_COUNT = sizeof verbs / sizeof *verbs };

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* The folder of this very program, or "" where it cannot be told. */
static void own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

/* Is this folder sim/ of a build tree? There the programs lie where their sources do, in folders of their own. */
static bool in_build_tree(const char *folder)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/../build.ninja", folder) < PATH_MAX && access(path, F_OK) == 0;
}

/* Folders where programs are looked for, in order, separated by ':': beside this one, in a build tree its neighbours,
 * LONGHAUL_EXEC_PATH, PATH. Caller frees; NULL when out of memory. */
static char *search_path(void)
{
    char folder[PATH_MAX], neighbours[5 * PATH_MAX + 64] = "";
    own_folder(folder);
    if (in_build_tree(folder))
        snprintf(neighbours, sizeof neighbours, "%s/engine:%s/report:%s/../configs:%s/../emu/verbs:%s/../emu/lab",
                 folder, folder, folder, folder, folder);
    const char *extra = getenv("LONGHAUL_EXEC_PATH");
    const char *path = getenv("PATH");
    char *folders = NULL;
    if (asprintf(&folders, "%s:%s:%s:%s", folder, neighbours, extra != NULL ? extra : "", path != NULL ? path : "") < 0)
        return NULL;
    return folders;
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* Writes the path of longhaul-VERB; false where there is none. */
static bool find_program(const char *verb, char path[PATH_MAX])
{
    bool found = false;
    char *folders = search_path();
    char *rest = folders;
    for (char *folder; !found && (folder = strsep(&rest, ":")) != NULL;) {
        int length = snprintf(path, PATH_MAX, "%s/" PREFIX "%s", folder, verb);
        found = *folder != '\0' && length < PATH_MAX && is_program(path);
    }
    free(folders);
    return found;
}

struct names {
    char **items;
    size_t count;
};

/* Keeps a name once; what does not fit in memory is left out. */
static void names_add(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return;
    }
    char **items = reallocarray(names->items, names->count + 1, sizeof *items);
    if (items == NULL)
        return;
    names->items = items;
    names->items[names->count] = strdup(name);
    names->count += names->items[names->count] != NULL;
}

static void add_folder(struct names *names, const char *folder)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PATH_MAX];
        bool ours = strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0;
        if (ours && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_MAX && is_program(path) &&
            find_verb(entry->d_name + strlen(PREFIX)) == NULL)
            names_add(names, entry->d_name + strlen(PREFIX));
    }
    closedir(directory);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Verbs that this table does not know but that are installed. */
static void print_others(void)
{
    struct names names = {0};
    char *folders = search_path();
    char *rest = folders;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        if (*folder != '\0')
            add_folder(&names, folder);
    }
    if (names.count > 0) {
        qsort(names.items, names.count, sizeof *names.items, compare_names);
        printf("\nAlso here:");
    }
    for (size_t i = 0; i < names.count; i++) {
        printf(" %s", names.items[i]);
        free(names.items[i]);
    }
    if (names.count > 0)
        putchar('\n');
    free(names.items);
    free(folders);
}

static int print_help(void)
{
    puts("longhaul: what will this training run do on that long-haul link, and which communication strategy should it "
         "use?\n\n"
         "usage: longhaul VERB [ARGUMENTS]\n"
         "       longhaul help VERB\n"
         "       longhaul --version\n");
    for (size_t i = 0; i < VERB_COUNT; i++) {
        char path[PATH_MAX];
        bool here = find_program(verbs[i].name, path);
        printf("  %-12s %s%s\n", verbs[i].name, verbs[i].help, here ? "" : " (not installed)");
    }
    print_others();
    return EXIT_FINE;
}

static int missing(const char *name)
{
    const struct verb *verb = find_verb(name);
    if (verb != NULL) {
        fprintf(stderr, "longhaul: '%s' is not installed here; install %s\n", name, verb->install);
        return EXIT_UNAVAILABLE;
    }
    char phrase[128];
    suggest_phrase(name, verbs, VERB_COUNT, sizeof *verbs, phrase, sizeof phrase);
    fprintf(stderr, "longhaul: unknown verb '%s'%s; see longhaul --help\n", name, *phrase != '\0' ? phrase : "");
    return EXIT_USAGE;
}

/* Becomes longhaul-VERB; arguments[0] is replaced by its name. Returns an exit code only when that failed. */
static int become(const char *verb, char **arguments)
{
    char path[PATH_MAX];
    if (*verb == '\0' || strchr(verb, '/') != NULL || !find_program(verb, path))
        return missing(verb);
    arguments[0] = strrchr(path, '/') + 1;
    execv(path, arguments);
    fprintf(stderr, "longhaul: cannot run %s: %s\n", path, strerror(errno));
    return EXIT_FAILED;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "--help";
    if (strcmp(verb, "--version") == 0 || strcmp(verb, "-V") == 0) {
        puts("longhaul " LONGHAUL_VERSION);
        return EXIT_FINE;
    }
    bool help = strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "help") == 0;
    if (help && argc <= 2)
        return print_help();
    if (help) {
        char option[] = "--help";
        return become(argv[2], (char *[]){argv[2], option, NULL});
    }
    return become(verb, argv + 1);
}
