#include "tests/emu/verbs/command.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 2 * WISH_TO_MAX + 64 };

static error_t hand_down(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    if (key != ARGP_KEY_INIT)
        return ARGP_ERR_UNKNOWN;
    state->child_inputs[0] = state->input;
    return 0;
}

static int give_addresses(void *context, struct prefix **addresses, size_t *count, struct err *err)
{
    const struct machine *machine = context;
    *addresses = calloc(MACHINE_MAX, sizeof **addresses);
    ck_assert_ptr_nonnull(*addresses);
    for (*count = 0; machine && *count < MACHINE_MAX && machine->addresses[*count]; ++*count)
        ck_assert_int_eq(prefix_parse(machine->addresses[*count], &(*addresses)[*count], err), 0);
    return 0;
}

static int find_device(void *context, const struct prefix *prefix, char device[16], struct err *err)
{
    const struct machine *machine = context;
    char text[PREFIX_TEXT_MAX];
    for (size_t i = 0; machine && i < MACHINE_MAX && machine->routes[i].prefix; i++) {
        struct prefix route;
        ck_assert_int_eq(prefix_parse(machine->routes[i].prefix, &route, err), 0);
        if (!prefix_contains(&route, prefix))
            continue;
        snprintf(device, 16, "%s", machine->routes[i].device);
        return 0;
    }
    return err_set(err, ENOENT, "no route to %s", prefix_format(prefix, text, sizeof text));
}

int command_resolve(const char *line, const struct machine *machine, struct wishes *wishes, struct err *err)
{
    static const struct argp_child children[] = {{&wish_argp, 0, NULL, 0}, {0}};
    static const struct argp parser = {.parser = hand_down, .children = children};
    const struct wish_lookups lookups = {(void *)machine, give_addresses, find_device};
    struct wish_arguments arguments = {0};
    char *copy = strdup(line), *rest = copy, program[] = "test", *word;
    char **argv = calloc(WORDS_MAX, sizeof *argv);
    ck_assert(copy && argv);
    int argc = 0;
    argv[argc++] = program;
    while ((word = strsep(&rest, " ")) && argc < WORDS_MAX - 1) {
        for (char *at = word; (at = strchr(at, '~')); at++)
            *at = ' ';
        argv[argc++] = word;
    }
    ck_assert_int_eq(argp_parse(&parser, argc, argv, ARGP_NO_EXIT, NULL, &arguments), 0);
    int rc = wishes_resolve_with(&arguments, &lookups, wishes, err);
    free(argv);
    free(copy);
    return rc;
}

struct wishes command_wishes(const char *line, const struct machine *machine)
{
    struct wishes wishes;
    struct err err = {""};
    int rc = command_resolve(line, machine, &wishes, &err);
    ck_assert_msg(rc == 0, "'%s': %d, %s", line, rc, err.text);
    ck_assert_str_eq(err.text, "");
    for (size_t i = 0; i < wishes.note_count; i++)
        ck_assert_msg(!strchr(wishes.notes[i], '\n'), "%s", wishes.notes[i]);
    return wishes;
}

void command_refused(const char *line, const struct machine *machine, int code, const char *at, const char *says)
{
    struct wishes wishes;
    struct err err = {""};
    int rc = command_resolve(line, machine, &wishes, &err);
    ck_assert_msg(rc == code, "'%s': %d, %s; expected %d, '%s%s'", line, rc, err.text, code, at, says);
    ck_assert_msg(!strncmp(err.text, at, strlen(at)), "'%s': got '%s', expected '%s'", line, err.text, at);
    ck_assert_msg(strstr(err.text, says) != NULL, "'%s': got '%s', expected '%s'", line, err.text, says);
    ck_assert_msg(!strchr(err.text, '\n'), "'%s'", err.text);
    ck_assert_uint_eq(wishes.count, 0);
    ck_assert_uint_eq(wishes.note_count, 0);
    ck_assert_ptr_null(wishes.wishes);
    ck_assert_ptr_null(wishes.notes);
}

bool command_noted(const struct wishes *wishes, const char *says)
{
    for (size_t i = 0; i < wishes->note_count; i++)
        if (strstr(wishes->notes[i], says))
            return true;
    return false;
}

const char *command_prefixes(const struct path *path)
{
    static char list[1024];
    char text[PREFIX_TEXT_MAX];
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < path->prefix_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? " " : "",
                                 prefix_format(&path->prefixes[i], text, sizeof text));
    return list;
}
