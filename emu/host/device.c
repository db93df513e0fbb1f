#include "emu/host/device.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emu/shape/plan.h"

struct lookup {
    const char *name; /* looked for, or NULL: ifindex */
    int ifindex;
    struct device *device;
    bool found, ifb;
    char others[512]; /* names seen */
};

static int take_link(const struct nlmsghdr *answer, void *context, struct err *err)
{
    (void)err;
    struct lookup *lookup = context;
    const struct ifinfomsg *link = nlmsg_data(answer);
    struct nlattr *name = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *link, IFLA_IFNAME);
    struct nlattr *mtu = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *link, IFLA_MTU);
    struct nlattr *info = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *link, IFLA_LINKINFO);
    if (!name)
        return 0;
    if (lookup->name ? strcmp(nla_get_string(name), lookup->name) == 0 : link->ifi_index == lookup->ifindex) {
        struct nlattr *kind = info ? nla_find(nla_data(info), nla_len(info), IFLA_INFO_KIND) : NULL;
        lookup->found = true;
        lookup->ifb = kind && !nla_strcmp(kind, "ifb");
        lookup->device->ifindex = link->ifi_index;
        lookup->device->mtu = mtu ? nla_get_u32(mtu) : 0;
        nla_strlcpy(lookup->device->name, name, sizeof lookup->device->name);
    }
    size_t used = strlen(lookup->others);
    snprintf(lookup->others + used, sizeof lookup->others - used, "%s%s", used ? ", " : "", nla_get_string(name));
    return 0;
}

static int look_up(struct netlink *netlink, struct lookup *lookup, struct err *err)
{
    struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETLINK, 0);
    int rc =
        request && !nlmsg_append(request, &any, sizeof any, NLMSG_ALIGNTO) ? 0 : err_set(err, ENOMEM, "out of memory");
    rc = rc ? rc : netlink_dump(netlink, request, take_link, lookup, err);
    nlmsg_free(request);
    return rc;
}

int device_find(struct netlink *netlink, const char *name, struct device *device, struct err *err)
{
    struct lookup lookup = {.name = name, .device = device};
    int rc = look_up(netlink, &lookup, err);
    if (!rc && !lookup.found)
        rc = err_set(err, ENOENT, "no network device \"%s\"; there are %s", name, lookup.others);
    return rc;
}

static int take_route(const struct nlmsghdr *answer, void *context, struct err *err)
{
    (void)err;
    int *ifindex = context;
    struct nlattr *out = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof(struct rtmsg), RTA_OIF);
    if (out)
        *ifindex = (int)nla_get_u32(out);
    return 0;
}

/* A host of the prefix: its network address is not one where the prefix is a subnet of this machine. */
static void some_host(const struct prefix *prefix, unsigned last_bits, uint8_t address[16])
{
    unsigned length = prefix->family == AF_INET ? 4 : 16, free_bits = 8 * length - prefix->length;
    memcpy(address, prefix->address, length);
    if (free_bits > last_bits)
        address[length - 1] |= (uint8_t)last_bits;
}

static int route_to_host(struct netlink *netlink, const struct prefix *prefix, unsigned last_bits, int *ifindex,
                         struct err *err)
{
    uint8_t address[16];
    size_t length = prefix->family == AF_INET ? 4 : 16;
    some_host(prefix, last_bits, address);
    struct rtmsg route = {.rtm_family = (unsigned char)prefix->family, .rtm_dst_len = (unsigned char)(8 * length)};
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETROUTE, 0);
    bool built = request && !nlmsg_append(request, &route, sizeof route, NLMSG_ALIGNTO) &&
                 !nla_put(request, RTA_DST, (int)length, address);
    int rc = built ? netlink_ask(netlink, request, take_route, ifindex, err) : err_set(err, ENOMEM, "out of memory");
    nlmsg_free(request);
    return rc;
}

/* Its first host may be this machine, which is reached by lo: then its second. */
static int route_towards(struct netlink *netlink, const struct prefix *prefix, int *ifindex, struct err *err)
{
    int rc = route_to_host(netlink, prefix, 1, ifindex, err), lo = (int)if_nametoindex("lo");
    return rc || !lo || *ifindex != lo ? rc : route_to_host(netlink, prefix, 2, ifindex, err);
}

int device_towards(struct netlink *netlink, const struct prefix *prefix, struct device *device, struct err *err)
{
    int ifindex = 0;
    char text[PREFIX_TEXT_MAX];
    prefix_format(prefix, text, sizeof text);
    int rc = route_towards(netlink, prefix, &ifindex, err);
    if (rc == -ENOMEM)
        return rc;
    if (rc || !ifindex)
        return err_set(err, ENOENT, "no route to %s from here; name the device with --dev", text);
    struct lookup lookup = {.ifindex = ifindex, .device = device};
    rc = look_up(netlink, &lookup, err);
    if (!rc && !lookup.found)
        rc = err_set(err, ENOENT, "the device of the route to %s went away", text);
    return rc;
}

struct address_list {
    struct prefix *addresses;
    size_t count;
};

static bool is_loopback(const struct prefix *address)
{
    static const uint8_t loopback6[16] = {[15] = 1};
    return address->family == AF_INET ? address->address[0] == 127 : !memcmp(address->address, loopback6, 16);
}

static int take_address(const struct nlmsghdr *answer, void *context, struct err *err)
{
    struct address_list *list = context;
    const struct ifaddrmsg *header = nlmsg_data(answer);
    struct nlattr *found = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *header, IFA_LOCAL);
    if (!found)
        found = nlmsg_find_attr((struct nlmsghdr *)answer, sizeof *header, IFA_ADDRESS);
    int length = header->ifa_family == AF_INET ? 4 : 16;
    if (!found || nla_len(found) < length || (header->ifa_family != AF_INET && header->ifa_family != AF_INET6))
        return 0;
    struct prefix address = {.family = header->ifa_family, .length = 8 * (unsigned)length};
    memcpy(address.address, nla_data(found), (size_t)length);
    if (is_loopback(&address))
        return 0;
    struct prefix *grown = reallocarray(list->addresses, list->count + 1, sizeof *grown);
    if (!grown)
        return err_set(err, ENOMEM, "out of memory");
    list->addresses = grown;
    list->addresses[list->count++] = address;
    return 0;
}

int device_addresses(struct netlink *netlink, struct prefix **addresses, size_t *count, struct err *err)
{
    struct address_list list = {0};
    struct ifaddrmsg any = {.ifa_family = AF_UNSPEC};
    struct nl_msg *request = nlmsg_alloc_simple(RTM_GETADDR, 0);
    bool built = request && !nlmsg_append(request, &any, sizeof any, NLMSG_ALIGNTO);
    int rc = built ? netlink_dump(netlink, request, take_address, &list, err) : err_set(err, ENOMEM, "out of memory");
    nlmsg_free(request);
    if (rc) {
        free(list.addresses);
        return rc;
    }
    *addresses = list.addresses;
    *count = list.count;
    return 0;
}

static bool belongs_to(const char *rdma, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/net/%s", rdma, name);
    return access(path, F_OK) == 0;
}

void device_rdma(const char *name, char *buffer, size_t size)
{
    *buffer = '\0';
    for (int pass = 0; pass < 2; pass++) { /* its own first */
        DIR *folder = opendir("/sys/class/infiniband");
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            if (entry->d_name[0] == '.' || belongs_to(entry->d_name, name) != (pass == 0))
                continue;
            size_t used = strlen(buffer);
            snprintf(buffer + used, size - used, "%s%s", used ? " " : "", entry->d_name);
        }
        if (folder)
            closedir(folder);
    }
}

static void ifb_name(const struct device *device, char name[16])
{
    snprintf(name, 16, PLAN_IFB_PREFIX "%d", device->ifindex);
}

/* The request to make, set up or (type RTM_DELLINK) remove a link by name. */
static struct nl_msg *link_request(int type, int flags, const char *name, bool ifb)
{
    struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
    if (type == RTM_NEWLINK)
        link.ifi_flags = link.ifi_change = IFF_UP;
    struct nl_msg *request = nlmsg_alloc_simple(type, flags);
    bool built = request && !nlmsg_append(request, &link, sizeof link, NLMSG_ALIGNTO) &&
                 !nla_put_string(request, IFLA_IFNAME, name);
    if (built && ifb) {
        struct nlattr *info = nla_nest_start(request, IFLA_LINKINFO);
        built = info && !nla_put_string(request, IFLA_INFO_KIND, "ifb");
        if (built)
            nla_nest_end(request, info);
    }
    if (built)
        return request;
    nlmsg_free(request);
    return NULL;
}

static int send_link(struct netlink *netlink, int type, int flags, const char *name, bool ifb, struct err *err)
{
    struct nl_msg *request = link_request(type, flags, name, ifb);
    int rc = request ? netlink_send(netlink, &request, 1, NULL, err) : err_set(err, ENOMEM, "out of memory");
    nlmsg_free(request);
    return rc;
}

int device_ifb_open(struct netlink *netlink, const struct device *device, int *ifb_ifindex, struct err *err)
{
    char name[16];
    struct device ifb;
    ifb_name(device, name);
    int rc = send_link(netlink, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name, true, err);
    if (rc == -EEXIST)
        rc = send_link(netlink, RTM_NEWLINK, 0, name, false, err); /* up, if it was not */
    if (rc) {
        err_prefix(err, "%s", name);
        return rc;
    }
    struct lookup lookup = {.name = name, .device = &ifb};
    rc = look_up(netlink, &lookup, err);
    if (!rc && !lookup.ifb)
        rc = err_set(err, EEXIST, "%s exists and is no ifb device; rename or remove it", name);
    if (!rc)
        *ifb_ifindex = ifb.ifindex;
    return rc;
}

int device_ifb_find(struct netlink *netlink, const struct device *device, int *ifb_ifindex, struct err *err)
{
    char name[16];
    struct device ifb;
    ifb_name(device, name);
    struct lookup lookup = {.name = name, .device = &ifb};
    int rc = look_up(netlink, &lookup, err);
    if (rc || !lookup.found || !lookup.ifb)
        return rc ? rc : err_set(err, ENOENT, "%s: no ifb device %s", device->name, name);
    *ifb_ifindex = ifb.ifindex;
    return 0;
}

int device_ifb_close(struct netlink *netlink, const struct device *device, struct err *err)
{
    char name[16];
    int ifb, rc = device_ifb_find(netlink, device, &ifb, err);
    if (rc)
        return rc == -ENOENT ? 0 : rc;
    ifb_name(device, name);
    rc = send_link(netlink, RTM_DELLINK, 0, name, false, err);
    return rc == -ENODEV ? 0 : rc;
}

static int ethtool(int fd, const char *name, uint32_t command, uint32_t *data)
{
    struct ethtool_value value = {.cmd = command, .data = *data};
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    request.ifr_data = (void *)&value;
    if (ioctl(fd, SIOCETHTOOL, &request))
        return -errno;
    *data = value.data;
    return 0;
}

int device_offloads(const char *name, struct offloads *offloads, struct err *err)
{
    uint32_t gso = 0, tso = 0;
    *offloads = (struct offloads){0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(err, errno, "%s: offloads cannot be read: %s", name, strerror(errno));
    int rc = ethtool(fd, name, ETHTOOL_GGSO, &gso);
    rc = rc ? rc : ethtool(fd, name, ETHTOOL_GTSO, &tso);
    close(fd);
    if (rc == -ENODEV)
        return err_set(err, ENODEV, "%s: the device went away", name);
    if (!rc)
        *offloads = (struct offloads){.known = true, .gso = gso, .tso = tso};
    return 0; /* a driver that does not answer has none to speak of */
}

int device_set_offloads(const char *name, const struct offloads *offloads, struct err *err)
{
    uint32_t gso = offloads->gso, tso = offloads->tso;
    if (!offloads->known)
        return 0;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 ? -errno : 0;
    /* TSO needs GSO in some drivers: on in this order, off in the other. */
    rc = rc ? rc : ethtool(fd, name, gso ? ETHTOOL_SGSO : ETHTOOL_STSO, gso ? &gso : &tso);
    rc = rc ? rc : ethtool(fd, name, gso ? ETHTOOL_STSO : ETHTOOL_SGSO, gso ? &tso : &gso);
    if (fd >= 0)
        close(fd);
    return rc ? err_set(err, -rc, "%s: segmentation offload cannot be switched: %s", name, strerror(-rc)) : 0;
}
