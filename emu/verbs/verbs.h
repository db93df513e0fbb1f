/* The verbs of longhaul-emu: each parses its own command line (argv[0] is "longhaul-emu VERB"), prints, and returns an
 * exit code of configs/err.h. */
#ifndef LONGHAUL_EMU_VERBS_H
#define LONGHAUL_EMU_VERBS_H

int verb_plan(int argc, char **argv);
int verb_apply(int argc, char **argv);
int verb_status(int argc, char **argv);
int verb_verify(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_clear(int argc, char **argv);
int verb_respond(int argc, char **argv);

#endif
