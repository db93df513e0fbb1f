/* A command line and a made-up machine, for the tests of wishes. */
#ifndef LONGHAUL_TEST_COMMAND_H
#define LONGHAUL_TEST_COMMAND_H

#include "emu/verbs/wish.h"

enum { MACHINE_MAX = 8 };

/* Lists end at NULL. */
struct machine {
    const char *addresses[MACHINE_MAX];
    struct {
        const char *prefix, *device; /* the first that holds what is asked for */
    } routes[MACHINE_MAX];
};

/* Words separated by spaces, parsed as a verb does ('~' in a word stands for a space), then resolved on the machine
 * (NULL: one without addresses and routes). */
int command_resolve(const char *line, const struct machine *machine, struct wishes *wishes, struct err *err);

/* Fails the test where it is refused. */
struct wishes command_wishes(const char *line, const struct machine *machine);
/* Fails the test unless it is refused with this code and one line that begins with at and contains says. */
void command_refused(const char *line, const struct machine *machine, int code, const char *at, const char *says);

/* Is there a note that contains this? */
bool command_noted(const struct wishes *wishes, const char *says);
/* "10.2.0.0/16 fd00:2::/32": the path's prefixes, in a static buffer. */
const char *command_prefixes(const struct path *path);

#endif
