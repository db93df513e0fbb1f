#include "emu/host/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "emu/host/wish_json.h"

#define SCHEMA "longhaul.emu-record/1"

static const char *folder_path(void)
{
    const char *path = getenv("LONGHAUL_EMU_STATE");
    return path && *path ? path : "/run/longhaul-emu";
}

static int folder_failed(int error, struct err *err)
{
    bool denied = error == EACCES || error == EPERM || error == EROFS;
    return err_set(err, error, "%s: %s%s", folder_path(), strerror(error),
                   denied ? "; changing traffic control needs root (or CAP_NET_ADMIN with LONGHAUL_EMU_STATE set to a "
                            "folder of one's own)"
                          : "");
}

/* Opens the folder, made where it is missing and wanted; never follows a link, never trusts one that others may write.
 */
static int open_folder(bool make, int *folder, struct err *err)
{
    struct stat status;
    const char *path = folder_path();
    if (*path != '/')
        return err_set(err, EINVAL, "LONGHAUL_EMU_STATE=%s: the expiry looks from another folder; give a path from /",
                       path);
    if (make && mkdir(path, 0700) && errno != EEXIST)
        return folder_failed(errno, err);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && !make)
        return -ENOENT;
    if (fd < 0)
        return folder_failed(errno, err);
    if (fstat(fd, &status) || status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH)) {
        close(fd);
        return err_set(err, EPERM, "%s: belongs to somebody else or others may write it; remove it", path);
    }
    *folder = fd;
    return 0;
}

/* The inode of this network namespace: one folder serves them all. */
static uintmax_t namespace_id(void)
{
    struct stat status;
    return stat("/proc/self/ns/net", &status) ? 0 : (uintmax_t)status.st_ino;
}

enum { NAME_SIZE = 64 };

static void file_name(const char *device, const char *suffix, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%ju-%s%s", namespace_id(), device, suffix);
}

int record_lock(const struct device *device, int *fd, struct err *err)
{
    enum { WAIT_MS = 20, TRIES = 1500 };
    char name[NAME_SIZE];
    int folder, rc = open_folder(true, &folder, err);
    if (rc)
        return rc;
    file_name(device->name, ".lock", name);
    int lock = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    rc = lock < 0 ? err_set(err, errno, "%s/%s: %s", folder_path(), name, strerror(errno)) : 0;
    close(folder);
    for (int i = 0; !rc && flock(lock, LOCK_EX | LOCK_NB); i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == TRIES)
            rc = err_set(err, EBUSY, "%s: another longhaul-emu is at work on it", device->name);
        else
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    if (rc && lock >= 0)
        close(lock);
    else
        *fd = lock;
    return rc;
}

static json_t *offloads_to_json(const struct offloads *offloads)
{
    return json_pack("{s:b, s:b, s:b}", "known", offloads->known, "gso", offloads->gso, "tso", offloads->tso);
}

static json_t *to_json(const struct record *record)
{
    return json_pack("{s:s, s:{s:s, s:i, s:I}, s:b, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "schema", SCHEMA, "device",
                     "name", record->device.name, "ifindex", record->device.ifindex, "mtu",
                     (json_int_t)record->device.mtu, "complete", record->complete, "wish", wish_to_json(&record->wish),
                     "before", snapshot_to_json(&record->before), "offloads_before",
                     offloads_to_json(&record->offloads_before), "applied_unix_s", (json_int_t)record->applied_unix_s,
                     "expires_boot_ns", (json_int_t)record->expires_boot_ns, "watcher", (json_int_t)record->watcher,
                     "watcher_start", (json_int_t)record->watcher_start);
}

static int from_json(const json_t *json, struct record *record, struct err *err)
{
    const char *schema, *name;
    int complete, known, gso, tso;
    json_int_t mtu, applied, expires, watcher, start;
    if (json_unpack((json_t *)json, "{s:s, s:{s:s, s:i, s:I}, s:b, s:{s:b, s:b, s:b}, s:I, s:I, s:I, s:I}", "schema",
                    &schema, "device", "name", &name, "ifindex", &record->device.ifindex, "mtu", &mtu, "complete",
                    &complete, "offloads_before", "known", &known, "gso", &gso, "tso", &tso, "applied_unix_s", &applied,
                    "expires_boot_ns", &expires, "watcher", &watcher, "watcher_start", &start) ||
        strcmp(schema, SCHEMA) || strlen(name) >= sizeof record->device.name)
        return err_set(err, EBADMSG, "not a record of this version");
    strcpy(record->device.name, name);
    record->device.mtu = (uint32_t)mtu;
    record->complete = complete;
    record->offloads_before = (struct offloads){known, gso, tso};
    record->applied_unix_s = applied;
    record->expires_boot_ns = expires;
    record->watcher = (pid_t)watcher;
    record->watcher_start = (uint64_t)start;
    int rc = wish_from_json(json_object_get(json, "wish"), &record->wish, err);
    return rc ? rc : snapshot_from_json(json_object_get(json, "before"), &record->before, err);
}

void record_free(struct record *record)
{
    wish_free(&record->wish);
    snapshot_free(&record->before);
    *record = (struct record){0};
}

/* A plain file of ours and nothing else. */
static json_t *load(int folder, const char *name, struct err *err)
{
    struct stat status;
    json_error_t error;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        err_set(err, errno, "%s/%s: %s", folder_path(), name, strerror(errno));
    if (fd < 0)
        return NULL;
    bool ours = !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid();
    json_t *json = ours ? json_loadfd(fd, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!json)
        err_set(err, EBADMSG, "%s/%s: %s", folder_path(), name, ours ? error.text : "is no file of ours");
    close(fd);
    return json;
}

int record_read(const struct device *device, struct record *record, struct err *err)
{
    char name[NAME_SIZE];
    int folder, rc = open_folder(false, &folder, err);
    *record = (struct record){0};
    if (rc)
        return rc;
    file_name(device->name, ".json", name);
    struct err why = {""};
    json_t *json = load(folder, name, &why);
    close(folder);
    if (!json && !why.text[0])
        return -ENOENT;
    rc = json ? from_json(json, record, &why) : -EBADMSG;
    json_decref(json);
    if (rc) {
        record_free(record);
        return err_set(err, EBADMSG, "%s: the record of what was done cannot be read (%s)", device->name, why.text);
    }
    if (record->device.ifindex == device->ifindex)
        return 0;
    record_free(record);
    rc = record_remove(device, err);
    return rc ? rc : -ENOENT;
}

static int save(int folder, const char *name, const char *text, struct err *err)
{
    char fresh[NAME_SIZE + 4];
    snprintf(fresh, sizeof fresh, "%s.new", name);
    (void)unlinkat(folder, fresh, 0); /* of one that was killed; we hold the lock */
    int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool written = fd >= 0;
    for (size_t done = 0, size = strlen(text); written && done < size;) {
        ssize_t part = write(fd, text + done, size - done);
        written = part > 0 || (part < 0 && errno == EINTR);
        done += part > 0 ? (size_t)part : 0;
    }
    written = written && !fsync(fd) && !renameat(folder, fresh, folder, name);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (written)
        return fsync(folder), 0;
    (void)unlinkat(folder, fresh, 0);
    return err_set(err, error, "%s/%s cannot be written: %s", folder_path(), name, strerror(error));
}

int record_write(const struct record *record, struct err *err)
{
    char name[NAME_SIZE];
    int folder, rc = open_folder(true, &folder, err);
    if (rc)
        return rc;
    file_name(record->device.name, ".json", name);
    json_t *json = to_json(record);
    char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
    rc = text ? save(folder, name, text, err) : err_set(err, ENOMEM, "out of memory");
    free(text);
    json_decref(json);
    close(folder);
    return rc;
}

int record_remove(const struct device *device, struct err *err)
{
    char name[NAME_SIZE];
    int folder, rc = open_folder(false, &folder, err);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    file_name(device->name, ".json", name);
    if (unlinkat(folder, name, 0) && errno != ENOENT)
        rc = err_set(err, errno, "%s/%s cannot be removed: %s", folder_path(), name, strerror(errno));
    close(folder);
    return rc;
}

static int add_name(char ***names, size_t *count, const char *name, size_t length)
{
    char **grown = reallocarray(*names, *count + 1, sizeof *grown);
    if (!grown)
        return -1;
    *names = grown;
    grown[*count] = strndup(name, length);
    return grown[*count] ? (++*count, 0) : -1;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

int record_list(char ***names, size_t *count, struct err *err)
{
    char prefix[NAME_SIZE];
    int folder, rc = open_folder(false, &folder, err), failed = 0;
    *names = NULL;
    *count = 0;
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    DIR *list = fdopendir(folder);
    if (!list)
        close(folder);
    file_name("", "", prefix);
    for (struct dirent *entry; list && !failed && (entry = readdir(list));) {
        size_t length = strlen(entry->d_name), before = strlen(prefix), after = strlen(".json");
        if (length > before + after && !strncmp(entry->d_name, prefix, before) &&
            !strcmp(entry->d_name + length - after, ".json"))
            failed = add_name(names, count, entry->d_name + before, length - before - after);
    }
    if (list)
        closedir(list);
    if (*count)
        qsort(*names, *count, sizeof **names, by_name);
    return failed ? err_set(err, ENOMEM, "out of memory") : 0;
}
