#include "emu/lab/space.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/lab/batch.h"
#include "emu/lab/network.h"
#include "emu/lab/sysctl.h"

enum { LOOPBACK_INDEX = 1 }; /* of lo in every namespace */

static void space_path(const char *prefix, const char *name, char path[256])
{
    snprintf(path, 256, NETWORK_FOLDER "/%.100s%.100s", prefix, name);
}

int space_folder(struct err *err)
{
    if (mkdir(NETWORK_FOLDER, 0755) && errno != EEXIST)
        return err_set(err, errno, NETWORK_FOLDER ": %s", strerror(errno));
    /* Shared, so that namespaces come and go for every process; a mount point of its own first, where it is none. */
    if (mount("", NETWORK_FOLDER, "none", MS_SHARED | MS_REC, NULL) == 0)
        return 0;
    if (errno != EINVAL || mount(NETWORK_FOLDER, NETWORK_FOLDER, "none", MS_BIND | MS_REC, NULL) ||
        mount("", NETWORK_FOLDER, "none", MS_SHARED | MS_REC, NULL))
        return err_set(err, errno, NETWORK_FOLDER ": cannot be mounted: %s%s", strerror(errno),
                       errno == EPERM ? "; root is needed" : "");
    return 0;
}

/* Settings of one namespace. Buffers: smallest, initial and largest byte. */
static int settings(bool router, struct err *err)
{
    char receive[64], transmit[64];
    snprintf(receive, sizeof receive, "4096 131072 %d", NETWORK_TCP_BUFFER_BYTES);
    snprintf(transmit, sizeof transmit, "4096 65536 %d", NETWORK_TCP_BUFFER_BYTES);
    const struct sysctl table[] = {
        {"net/ipv4/ip_forward", router ? "1" : "0"},
        {"net/ipv6/conf/all/forwarding", router ? "1" : "0"},
        {"net/ipv6/conf/default/accept_dad", "0"},
        {"net/ipv6/conf/default/accept_ra", "0"},
        {"net/ipv6/conf/default/router_solicitations", "0"},
        {"net/ipv4/tcp_rmem", receive},
        {"net/ipv4/tcp_wmem", transmit},
        {"net/ipv4/tcp_no_metrics_save", "1"},
        {"net/ipv4/ping_group_range", "0 2147483647"},
    };
    return sysctl_set(table, sizeof table / sizeof *table, err);
}

static int loopback_up(struct err *err)
{
    struct batch batch = {0};
    struct netlink *netlink = netlink_open(err);
    batch_up(&batch, LOOPBACK_INDEX);
    if (!netlink)
        return -EIO;
    int rc = batch_send(&batch, netlink, err);
    netlink_close(netlink);
    return rc;
}

/* The namespace this process is in gets its name. */
static int give_name(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, errno, "%s: %s", path,
                       errno == EEXIST ? "is there already; `longhaul lab down --native SCENARIO` removes it"
                                       : strerror(errno));
    close(fd);
    if (mount("/proc/self/ns/net", path, "none", MS_BIND, NULL) == 0)
        return 0;
    int rc = err_set(err, errno, "%s: cannot be mounted: %s", path, strerror(errno));
    (void)unlink(path);
    return rc;
}

int space_new(const char *prefix, const char *name, bool router, int *fd, struct err *err)
{
    char path[256];
    space_path(prefix, name, path);
    *fd = -1;
    if (unshare(CLONE_NEWNET))
        return err_set(err, errno, "no network namespace: %s%s", strerror(errno),
                       errno == EPERM ? "; root is needed" : "");
    int rc = give_name(path, err);
    if (rc)
        return rc;
    rc = settings(router, err);
    rc = rc ? rc : loopback_up(err);
    if (!rc && (*fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        rc = err_set(err, errno, "%s: %s", path, strerror(errno));
    if (rc)
        (void)space_remove(prefix, name);
    return rc;
}

bool space_remove(const char *prefix, const char *name)
{
    char path[256];
    space_path(prefix, name, path);
    (void)umount2(path, MNT_DETACH);
    return unlink(path) == 0;
}

int network_enter(const char *prefix, const char *name, struct err *err)
{
    char path[256];
    space_path(prefix, name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        rc = err_set(err, errno, "%s: no way into it: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}
