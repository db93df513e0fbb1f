#include "emu/lab/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_PREFIX "linux-source-"
#define SOURCE_SUFFIX ".tar.xz"

const char kernel_fragment[] =
#include "kernel_config.inc"
    ;

enum { OLDEST_MAJOR = 6, OLDEST_MINOR = 1 }; /* the first with dependable time travel in Debian */

/* "6.12" of ".../linux-source-6.12.tar.xz"; false for other names. */
static bool version_of(const char *path, char *version, size_t size, long number[2])
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (strncmp(name, SOURCE_PREFIX, strlen(SOURCE_PREFIX)) != 0)
        return false;
    name += strlen(SOURCE_PREFIX);
    char *end;
    number[0] = strtol(name, &end, 10);
    number[1] = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    size_t length = (size_t)(end - name);
    if (number[1] < 0 || strcmp(end, SOURCE_SUFFIX) != 0 || length >= size)
        return false;
    memcpy(version, name, length);
    version[length] = '\0';
    return true;
}

static bool recent_enough(const long number[2])
{
    return number[0] > OLDEST_MAJOR || (number[0] == OLDEST_MAJOR && number[1] >= OLDEST_MINOR);
}

static int newest_source(char path[PATH_MAX])
{
    glob_t found = {0};
    long best[2] = {-1, -1};
    if (glob("/usr/src/" SOURCE_PREFIX "*" SOURCE_SUFFIX, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char version[32];
            long number[2];
            if (!version_of(found.gl_pathv[i], version, sizeof version, number) || !recent_enough(number))
                continue;
            if (number[0] > best[0] || (number[0] == best[0] && number[1] > best[1])) {
                memcpy(best, number, sizeof best);
                snprintf(path, PATH_MAX, "%s", found.gl_pathv[i]);
            }
        }
    globfree(&found);
    return best[0] < 0 ? -ENOENT : 0;
}

int kernel_source_find(const char *given, struct kernel_source *source, struct err *err)
{
    long number[2];
    struct stat status;
    *source = (struct kernel_source){0};
    if (given)
        snprintf(source->path, sizeof source->path, "%s", given);
    else if (newest_source(source->path))
        return err_set(err, ENOENT,
                       "no kernel source /usr/src/linux-source-*.tar.xz of 6.1 or later; install it: "
                       "apt-get install linux-source (Debian 12 backports: linux-source-6.12)");
    if (stat(source->path, &status) || !S_ISREG(status.st_mode))
        return err_set(err, EINVAL, "%s: not a file that can be read; give a linux-source-VERSION.tar.xz",
                       source->path);
    if (!version_of(source->path, source->version, sizeof source->version, number) || !recent_enough(number))
        return err_set(err, EINVAL, "%s: not named linux-source-VERSION.tar.xz with a VERSION of 6.1 or later",
                       source->path);
    source->size_bytes = status.st_size;
    source->mtime_s = status.st_mtime;
    return 0;
}

int kernel_cache(char folder[PATH_MAX], struct err *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && *cache == '/')
        length = snprintf(folder, PATH_MAX, "%s/longhaul", cache);
    else if (home && *home == '/')
        length = snprintf(folder, PATH_MAX, "%s/.cache/longhaul", home);
    if (length < 0 || length > PATH_MAX - 200)
        return err_set(err, EINVAL, "no folder to keep the kernel in; set XDG_CACHE_HOME or HOME to an absolute path");
    return 0;
}

/* FNV-1a, folded to 32 bits: an identity, not a secret. */
static uint32_t identity(const void *data, size_t size, uint64_t hash)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t fragment_identity(void)
{
    return identity(kernel_fragment, strlen(kernel_fragment), 0xcbf29ce484222325u);
}

int kernel_path(const struct kernel_source *source, char path[PATH_MAX], struct err *err)
{
    char folder[PATH_MAX], text[96];
    int rc = kernel_cache(folder, err);
    if (rc)
        return rc;
    int length =
        snprintf(text, sizeof text, "%s %lld %lld", source->version, (long long)source->size_bytes, source->mtime_s);
    snprintf(path, PATH_MAX, "%.*s/linux-%s-%08x-%08x", PATH_MAX - 100, folder, source->version,
             (unsigned)identity(text, (size_t)length, 0xcbf29ce484222325u), (unsigned)fragment_identity());
    return 0;
}

/* Keeps the newest of the folder's kernels with our fragment; *best is the time of what path holds. */
static bool newest_kernel(const char *folder, char path[PATH_MAX])
{
    char suffix[16];
    struct timespec best = {0};
    bool found = false;
    snprintf(suffix, sizeof suffix, "-%08x", (unsigned)fragment_identity());
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        char candidate[PATH_MAX];
        struct stat status;
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, "linux-", 6) != 0 || length < sizeof "linux-" + 9 ||
            strcmp(entry->d_name + length - 9, suffix) != 0)
            continue;
        snprintf(candidate, sizeof candidate, "%.*s/%s", PATH_MAX - 300, folder, entry->d_name);
        if (stat(candidate, &status) || !S_ISREG(status.st_mode) || access(candidate, X_OK))
            continue;
        if (!found || status.st_mtim.tv_sec > best.tv_sec) {
            found = true;
            best = status.st_mtim;
            memcpy(path, candidate, sizeof candidate);
        }
    }
    if (directory)
        closedir(directory);
    return found;
}

int kernel_find(const char *given, char path[PATH_MAX], struct err *err)
{
    char folder[PATH_MAX];
    if (given) {
        if (access(given, X_OK) || !realpath(given, path))
            return err_set(err, EINVAL, "%s: not a kernel that can be started: %s", given, strerror(errno));
        return 0;
    }
    int rc = kernel_cache(folder, err);
    if (rc)
        return rc;
    if (newest_kernel(folder, path))
        return 0;
    return err_set(err, ENOTSUP, "the lab's kernel is not built yet; run: longhaul lab build (once, some minutes)");
}

static const struct tool {
    const char *name, *package;
} tools_needed[] = {
    {"make", "make"},   {"gcc", "gcc"},   {"ld", "binutils"}, {"bc", "bc"},
    {"bison", "bison"}, {"flex", "flex"}, {"xz", "xz-utils"}, {"tar", "tar"},
};

bool kernel_on_path(const char *name)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : ""), *rest = copy;
    bool found = false;
    for (char *folder; copy && !found && (folder = strsep(&rest, ":")) != NULL;) {
        char file[PATH_MAX];
        found = *folder && snprintf(file, sizeof file, "%s/%s", folder, name) < PATH_MAX && access(file, X_OK) == 0;
    }
    free(copy);
    return found;
}

void kernel_missing_tools(char *tools, size_t tools_size, char *packages, size_t packages_size)
{
    *tools = *packages = '\0';
    for (size_t i = 0; i < sizeof tools_needed / sizeof *tools_needed; i++) {
        if (kernel_on_path(tools_needed[i].name))
            continue;
        size_t used = strlen(tools), taken = strlen(packages);
        snprintf(tools + used, tools_size - used, "%s%s", used ? " " : "", tools_needed[i].name);
        snprintf(packages + taken, packages_size - taken, "%s%s", taken ? " " : "", tools_needed[i].package);
    }
}
