/* TCA_OPTIONS of a netem qdisc, built attribute by attribute because libnl-route 3.7 lacks 64-bit delay and rate,
 * Gilbert-Elliott and seed. All attributes are always sent, also those that are 0: the kernel keeps what a change
 * leaves out. */
#ifndef LONGHAUL_NETEM_H
#define LONGHAUL_NETEM_H

#include <netlink/msg.h>
#include <stdio.h>

#include "emu/shape/distribution.h"
#include "emu/shape/impairment.h"

/* Appends TCA_KIND "netem" and TCA_OPTIONS. distribution may be NULL (no jitter). 0 or -ENOMEM. */
int netem_put(struct nl_msg *message, const struct impairment *impairment, const struct distribution *distribution,
              struct err *err);
/* Reads what a kernel dumped in TCA_OPTIONS. The jitter table is not dumped by any kernel: jitter_shape and table_file
 * stay as they were. Returns 0 or -EINVAL (not netem's layout). */
int netem_parse(const struct nlattr *options, struct impairment *impairment, struct err *err);
/* "netem limit 1000 delay 10650.000us ...": the words for tc that give the same settings, as precisely as tc can say:
 * times in whole us (tc up to 6.1), tc's own tables, no seed (unknown to tc before 6.6). A table file is named as tc
 * wants it: without folder (TC_LIB_DIR in tc's environment) and without ".dist". */
void netem_print_tc(FILE *out, const struct impairment *impairment);
/* "TC_LIB_DIR=FOLDER " where tc needs it to find the table; else nothing. */
void netem_print_tc_environment(FILE *out, const struct impairment *impairment);

#endif
