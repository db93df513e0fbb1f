/* guard_session: the connection by which the person at the keyboard, or a launcher, reaches this process. */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/host/apply.h"

struct connection {
    struct prefix peer; /* full length */
    unsigned peer_port, own_port;
    unsigned long inode;
};
struct connections {
    size_t count;
    struct connection *items;
};

/* IPv4 in IPv6's clothes is IPv4. */
static struct prefix address_of(int family, const uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct prefix address = {.family = family, .length = family == AF_INET ? 32 : 128};
    if (family == AF_INET6 && !memcmp(bytes, mapped, sizeof mapped)) {
        address.family = AF_INET;
        address.length = 32;
        memcpy(address.address, bytes + 12, 4);
    } else {
        memcpy(address.address, bytes, family == AF_INET ? 4 : 16);
    }
    return address;
}

/* /proc/net/tcp prints an address as 32-bit words of the machine's own byte order. */
static bool parse_address(const char *text, int family, struct prefix *address)
{
    size_t words = family == AF_INET ? 1 : 4;
    uint8_t bytes[16];
    if (strlen(text) != 8 * words)
        return false;
    for (size_t i = 0; i < words; i++) {
        char word[9] = "";
        memcpy(word, text + 8 * i, 8);
        uint32_t value = (uint32_t)strtoul(word, NULL, 16);
        memcpy(bytes + 4 * i, &value, 4);
    }
    *address = address_of(family, bytes);
    return true;
}

static bool parse_connection(const char *line, int family, struct connection *connection)
{
    enum { TCP_LISTEN_STATE = 0x0a };
    char peer[40];
    unsigned state;
    if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %39[0-9A-Fa-f]:%x %x %*s %*s %*s %*u %*u %lu", &connection->own_port, peer,
               &connection->peer_port, &state, &connection->inode) != 5)
        return false;
    return state != TCP_LISTEN_STATE && connection->inode && parse_address(peer, family, &connection->peer);
}

static int add_connections(const char *path, int family, struct connections *connections)
{
    char line[512];
    FILE *file = fopen(path, "re");
    int rc = 0;
    while (file && !rc && fgets(line, sizeof line, file)) {
        struct connection connection, *grown;
        if (!parse_connection(line, family, &connection))
            continue;
        grown = reallocarray(connections->items, connections->count + 1, sizeof *grown);
        if (grown) {
            connections->items = grown;
            grown[connections->count++] = connection;
        } else {
            rc = -ENOMEM;
        }
    }
    if (file)
        fclose(file);
    return rc;
}

/* The path and prefix of the wish in which this address lies. */
static const struct path *shaped(const struct wish *wish, const struct prefix *peer, const struct prefix **prefix)
{
    for (size_t i = 0; i < wish->path_count; i++)
        for (size_t k = 0; k < wish->paths[i].prefix_count; k++)
            if (prefix_contains(&wish->paths[i].prefixes[k], peer)) {
                *prefix = &wish->paths[i].prefixes[k];
                return &wish->paths[i];
            }
    return NULL;
}

static int refuse(const struct wish *wish, const struct prefix *peer, const char *whose, struct err *err)
{
    const struct prefix *prefix;
    char from[PREFIX_TEXT_MAX], to[PREFIX_TEXT_MAX];
    if (!shaped(wish, peer, &prefix))
        return 0;
    return err_set(err, EBUSY,
                   "%s: this session comes from %s (%s), which lies in %s and would be shaped too; nothing is changed "
                   "(--force does it all the same)",
                   wish->device, prefix_format(peer, from, sizeof from), whose, prefix_format(prefix, to, sizeof to));
}

/* Name and parent of a process, from /proc/PID/stat: the name may hold anything, also ") ". */
static pid_t parent_of(pid_t process, char *name, size_t size)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    char *open = strchr(line, '('), *close = strrchr(line, ')');
    int parent = 0;
    if (!read || !open || !close || sscanf(close + 1, " %*c %d", &parent) != 1)
        return 0;
    snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
    return parent;
}

static const struct connection *find_inode(const struct connections *connections, unsigned long inode)
{
    for (size_t i = 0; i < connections->count; i++)
        if (connections->items[i].inode == inode)
            return &connections->items[i];
    return NULL;
}

/* Every socket that this process holds. */
static int check_process(const struct wish *wish, pid_t process, const char *name,
                         const struct connections *connections, struct err *err)
{
    char path[64], target[64], whose[160];
    int rc = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && !rc && (entry = readdir(folder));) {
        unsigned long inode;
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        const struct connection *found =
            sscanf(target, "socket:[%lu]", &inode) == 1 ? find_inode(connections, inode) : NULL;
        if (!found)
            continue;
        snprintf(whose, sizeof whose, "TCP port %u to port %u of %s, process %d", found->peer_port, found->own_port,
                 name, (int)process);
        rc = refuse(wish, &found->peer, whose, err);
    }
    if (folder)
        closedir(folder);
    return rc;
}

static bool is_ssh(const char *name)
{
    return !strncmp(name, "sshd", strlen("sshd"));
}

/* Under tmux or screen the connection is held by no ancestor: where a person is at a terminal, by which of the ssh
 * daemons he came cannot be told. */
static int check_daemons(const struct wish *wish, const struct connections *connections, struct err *err)
{
    int rc = 0, terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return 0;
    close(terminal);
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && !rc && (entry = readdir(folder));) {
        char name[64] = "";
        pid_t process = atoi(entry->d_name);
        if (process > 0 && parent_of(process, name, sizeof name) && is_ssh(name))
            rc = check_process(wish, process, name, connections, err);
    }
    if (folder)
        closedir(folder);
    return rc;
}

static int check_ssh_variable(const struct wish *wish, struct err *err)
{
    const char *variable = getenv("SSH_CONNECTION");
    char text[INET6_ADDRSTRLEN + 1] = "";
    uint8_t bytes[16];
    if (!variable || sscanf(variable, "%46[0-9A-Fa-f:.]", text) != 1)
        return 0;
    for (int family = AF_INET;; family = AF_INET6) {
        if (inet_pton(family, text, bytes) == 1) {
            struct prefix peer = address_of(family, bytes);
            return refuse(wish, &peer, "$SSH_CONNECTION", err);
        }
        if (family == AF_INET6)
            return 0;
    }
}

int guard_session(const struct wish *wish, struct err *err)
{
    struct connections connections = {0};
    bool by_ssh = false;
    int rc = add_connections("/proc/self/net/tcp", AF_INET, &connections);
    rc = rc ? rc : add_connections("/proc/self/net/tcp6", AF_INET6, &connections);
    if (rc)
        err_set(err, ENOMEM, "out of memory");
    for (pid_t process = getpid(), parent; !rc && process > 0; process = parent) {
        char name[64] = "?";
        parent = parent_of(process, name, sizeof name);
        by_ssh |= is_ssh(name);
        rc = check_process(wish, process, name, &connections, err);
    }
    rc = rc || by_ssh ? rc : check_daemons(wish, &connections, err);
    free(connections.items);
    return rc ? rc : check_ssh_variable(wish, err);
}
