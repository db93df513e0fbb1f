#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/lab/guest.h"

static int mount_one(const char *target, const char *type, unsigned long flags, const char *data, struct err *err)
{
    if (mount(type, target, type, flags, data) == 0)
        return 0;
    return err_set(err, errno, "%s: %s cannot be mounted in the lab: %s", target, type, strerror(errno));
}

int guest_mount_first(struct err *err)
{
    int rc = mount_one("/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
    return rc ? rc : mount_one("/dev", "devtmpfs", MS_NOSUID, "mode=755", err);
}

static int mount_devices(struct err *err)
{
    static const char *const links[][2] = {{"/proc/self/fd", "/dev/fd"},
                                           {"/proc/self/fd/0", "/dev/stdin"},
                                           {"/proc/self/fd/1", "/dev/stdout"},
                                           {"/proc/self/fd/2", "/dev/stderr"},
                                           {"pts/ptmx", "/dev/ptmx"}};
    (void)unlink("/dev/ptmx"); /* devpts has one of its own */
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (symlink(links[i][0], links[i][1]))
            return err_set(err, errno, "%s: %s", links[i][1], strerror(errno));
    (void)mkdir("/dev/pts", 0755), (void)mkdir("/dev/shm", 01777);
    int rc = mount_one("/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=666,mode=620", err);
    return rc ? rc : mount_one("/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", err);
}

/* Makes the folders on the way to path where they are missing (below a tmpfs that covers the host's). */
static void make_way(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        (void)mkdir(part, 0755);
    }
    (void)mkdir(path, 0755);
}

int guest_mount(const struct spec *spec, struct err *err)
{
    int rc = mount_devices(err);
    rc = rc ? rc : mount_one("/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, err);
    rc = rc ? rc : mount_one("/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755", err);
    if (!rc && spec->private_tmp)
        rc = mount_one("/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", err);
    (void)mkdir("/run/tmp", 0777);
    (void)chmod("/run/tmp", 01777);
    if (rc || !spec->writable)
        return rc;
    make_way(spec->writable);
    return mount_one(spec->writable, "hostfs", MS_NOSUID | MS_NODEV, spec->writable, err);
}

int guest_cover_hosts(const char *path, struct err *err)
{
    if (mount(path, "/etc/hosts", NULL, MS_BIND, NULL) == 0)
        return 0;
    return err_set(err, errno, "/etc/hosts cannot be replaced in the lab: %s", strerror(errno));
}
