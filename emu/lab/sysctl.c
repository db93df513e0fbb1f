#include "emu/lab/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int sysctl_set(const struct sysctl *table, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        char path[256];
        snprintf(path, sizeof path, "/proc/sys/%s", table[i].name);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        size_t length = strlen(table[i].value);
        int failed = fd < 0 || write(fd, table[i].value, length) != (ssize_t)length ? errno : 0;
        if (fd >= 0)
            close(fd);
        if (failed)
            return err_set(err, failed, "%s: cannot be set to '%s': %s", path, table[i].value, strerror(failed));
    }
    return 0;
}
