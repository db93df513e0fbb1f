#ifndef LONGHAUL_LAB_SYSCTL_H
#define LONGHAUL_LAB_SYSCTL_H

#include <stddef.h>

#include "configs/err.h"

struct sysctl {
    const char *name; /* below /proc/sys */
    const char *value;
};

/* Sets all, in this order. */
int sysctl_set(const struct sysctl *table, size_t count, struct err *err);

#endif
