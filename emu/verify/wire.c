#include "emu/verify/wire.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Layout, in network order: "LHP1", probe or answer, key, number, number of the answer, two times; the rest is 0. */
static const uint8_t magic[4] = {'L', 'H', 'P', '1'};
enum { AT_KIND = 4, AT_NUMBER = 8, AT_ANSWER = 12, AT_SENT = 16, AT_RECEIVED = 24, AT_KEY = 32 };

static void put32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof value);
}

static void put64(uint8_t *to, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);
    memcpy(to, &wire, sizeof wire);
}

static uint32_t get32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return be32toh(value);
}

static int64_t get64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return (int64_t)be64toh(value);
}

void wire_pack(const struct datagram *datagram, uint8_t bytes[VERIFY_PAYLOAD_MIN])
{
    memset(bytes, 0, VERIFY_PAYLOAD_MIN);
    memcpy(bytes, magic, sizeof magic);
    bytes[AT_KIND] = datagram->answer;
    put32(bytes + AT_NUMBER, datagram->number);
    put32(bytes + AT_ANSWER, datagram->nth_answer);
    put64(bytes + AT_SENT, datagram->sent_ns);
    put64(bytes + AT_RECEIVED, datagram->received_ns);
    memcpy(bytes + AT_KEY, datagram->key, WIRE_KEY_BYTES);
}

bool wire_unpack(const uint8_t *bytes, size_t size, const uint8_t key[WIRE_KEY_BYTES], struct datagram *datagram)
{
    if (size < VERIFY_PAYLOAD_MIN || memcmp(bytes, magic, sizeof magic) != 0 || !wire_key_equal(bytes + AT_KEY, key))
        return false;
    *datagram = (struct datagram){.answer = bytes[AT_KIND] != 0,
                                  .number = get32(bytes + AT_NUMBER),
                                  .nth_answer = get32(bytes + AT_ANSWER),
                                  .sent_ns = get64(bytes + AT_SENT),
                                  .received_ns = get64(bytes + AT_RECEIVED)};
    memcpy(datagram->key, key, WIRE_KEY_BYTES);
    return true;
}

int wire_key_parse(const char *text, uint8_t key[WIRE_KEY_BYTES], struct err *err)
{
    static const char digits[] = "0123456789abcdef";
    bool good = text && strlen(text) == VERIFY_KEY_DIGITS && strspn(text, digits) == VERIFY_KEY_DIGITS;
    if (!good)
        return err_set(err, EINVAL, "a key is %d digits 0-9 a-f, as longhaul-emu respond prints it", VERIFY_KEY_DIGITS);
    for (int i = 0; i < WIRE_KEY_BYTES; i++)
        key[i] = (uint8_t)((strchr(digits, text[2 * i]) - digits) << 4 | (strchr(digits, text[2 * i + 1]) - digits));
    return 0;
}

int wire_key_new(char text[VERIFY_KEY_DIGITS + 1], struct err *err)
{
    uint8_t key[WIRE_KEY_BYTES];
    if (getrandom(key, sizeof key, 0) != sizeof key)
        return err_set(err, errno, "no random key: %s", strerror(errno));
    for (int i = 0; i < WIRE_KEY_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", (unsigned)key[i]);
    return 0;
}

bool wire_key_equal(const uint8_t *a, const uint8_t *b)
{
    unsigned difference = 0;
    for (int i = 0; i < WIRE_KEY_BYTES; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

/* The boot's id, and the time namespace, which can shift the clock. */
void wire_clock(char name[WIRE_CLOCK_MAX])
{
    char boot[40] = "unknown", space[32] = "time";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!file || fscanf(file, "%39s", boot) != 1)
        snprintf(boot, sizeof boot, "unknown-%d-%lld", (int)getpid(), (long long)random());
    if (file)
        fclose(file);
    ssize_t length = readlink("/proc/self/ns/time", space, sizeof space - 1);
    space[length > 0 ? length : 4] = '\0';
    snprintf(name, WIRE_CLOCK_MAX, "%s/%s", boot, space);
}

/* Any address: a socket of IPv6 takes IPv4 too; a kernel without IPv6 has only the other. */
static void any_address(uint16_t port, struct sockaddr_storage *name, socklen_t *length)
{
    int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (six >= 0) {
        close(six);
        *(struct sockaddr_in6 *)name = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        *length = sizeof(struct sockaddr_in6);
        return;
    }
    *(struct sockaddr_in *)name = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    *length = sizeof(struct sockaddr_in);
}

int wire_address(const char *address, uint16_t port, struct sockaddr_storage *name, socklen_t *length, struct err *err)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    *name = (struct sockaddr_storage){0};
    if (!address) {
        any_address(port, name, length);
        return 0;
    }
    if (getaddrinfo(address, NULL, &hints, &found))
        return err_set(err, EINVAL, "'%s' is no IP address; right would be 10.2.0.1 or fd00:2::1", address);
    memcpy(name, found->ai_addr, found->ai_addrlen);
    *length = found->ai_addrlen;
    freeaddrinfo(found);
    wire_set_port(name, port);
    return 0;
}

void wire_set_port(struct sockaddr_storage *name, uint16_t port)
{
    if (name->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)name)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)name)->sin_port = htons(port);
}

uint16_t wire_port(const struct sockaddr_storage *name)
{
    return ntohs(name->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)name)->sin6_port
                                             : ((const struct sockaddr_in *)name)->sin_port);
}

bool wire_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr,
                   sizeof(struct in6_addr));
}

void wire_set_buffers(int fd, uint32_t bytes)
{
    int value = (int)(bytes / 2); /* the kernel doubles it */
    if (bytes) {
        (void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &value, sizeof value);
        (void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof value);
    }
}

struct batch *batch_new(size_t stride)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch)
        batch->bytes = calloc(WIRE_BATCH, stride);
    if (!batch || !batch->bytes) {
        free(batch);
        return NULL;
    }
    batch->stride = stride;
    for (unsigned i = 0; i < WIRE_BATCH; i++) {
        batch->parts[i] = (struct iovec){.iov_base = batch->bytes + i * stride, .iov_len = stride};
        batch->messages[i].msg_hdr =
            (struct msghdr){.msg_name = &batch->names[i], .msg_iov = &batch->parts[i], .msg_iovlen = 1};
    }
    return batch;
}

void batch_free(struct batch *batch)
{
    if (batch)
        free(batch->bytes);
    free(batch);
}

int batch_receive(struct batch *batch, int fd)
{
    for (unsigned i = 0; i < WIRE_BATCH; i++) {
        batch->messages[i].msg_hdr.msg_namelen = sizeof batch->names[i];
        batch->parts[i].iov_len = batch->stride;
    }
    int got = recvmmsg(fd, batch->messages, WIRE_BATCH, MSG_DONTWAIT, NULL);
    return got > 0 ? got : 0;
}

void batch_send(struct batch *batch, int fd, unsigned count, bool named)
{
    if (!named)
        for (unsigned i = 0; i < count; i++)
            batch->messages[i].msg_hdr.msg_namelen = 0;
    for (unsigned done = 0; done < count;) {
        int sent = sendmmsg(fd, batch->messages + done, count - done, MSG_NOSIGNAL);
        done += sent > 0 ? (unsigned)sent : 1;
    }
}
