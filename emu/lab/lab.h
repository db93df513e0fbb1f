/* The verbs of longhaul-lab: each parses its own command line (argv[0] is "longhaul-lab VERB"), prints, and returns an
 * exit code of configs/err.h; verb_run returns the command's own. */
#ifndef LONGHAUL_LAB_H
#define LONGHAUL_LAB_H

int verb_build(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_shell(int argc, char **argv);
int verb_up(int argc, char **argv);
int verb_down(int argc, char **argv);

#endif
