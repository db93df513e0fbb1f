/* The lab's kernel: where its source is, where the built one is kept. */
#ifndef LONGHAUL_LAB_KERNEL_H
#define LONGHAUL_LAB_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "configs/err.h"

extern const char kernel_fragment[]; /* kernel.config */

struct kernel_source {
    char path[PATH_MAX]; /* linux-source-6.12.tar.xz */
    char version[32];    /* "6.12" */
    off_t size_bytes;
    long long mtime_s;
};

/* given: a file, or NULL for the newest /usr/src/linux-source-*.tar.xz of 6.1 or later. -ENOENT: the message names the
 * package; -EINVAL: given is no such file. */
int kernel_source_find(const char *given, struct kernel_source *source, struct err *err);

/* $XDG_CACHE_HOME/longhaul or ~/.cache/longhaul; neither is created. */
int kernel_cache(char folder[PATH_MAX], struct err *err);
/* FOLDER/linux-VERSION-SOURCE-CONFIG: the last two identify the source file and kernel.config. */
int kernel_path(const struct kernel_source *source, char path[PATH_MAX], struct err *err);
/* The newest kernel in the cache that was built with this kernel.config, whatever its source; given: this file instead.
 * -ENOTSUP with the command to run where there is none. */
int kernel_find(const char *given, char path[PATH_MAX], struct err *err);

/* Builds the kernel into path. jobs: of make. Shows its progress on standard error where that is a terminal. Nothing is
 * left but the kernel, or after a failure the log that err names. */
int kernel_build(const struct kernel_source *source, const char *path, int jobs, struct err *err);

/* Tools that a build needs and that PATH lacks, separated by spaces; "" for none; and the packages that have them. */
void kernel_missing_tools(char *tools, size_t tools_size, char *packages, size_t packages_size);
bool kernel_on_path(const char *program);

#endif
