#define _GNU_SOURCE
#include "tap.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE_FRAMES 10000 /* what the kernel keeps for us while we are late; ours is the queue that counts */

static void enter(const char *netns) {
    int fd = open(netns, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        err(1, "cannot enter the network namespace %s", netns);
    close(fd);
}

static void must(int result, const char *device, const char *what) {
    if (result < 0)
        err(1, "device %s: cannot %s", device, what);
}

static struct ifreq request_for(const struct tap *tap) {
    struct ifreq request = {0};
    memcpy(request.ifr_name, tap->device, sizeof tap->device);
    return request;
}

static void configure(const struct tap *tap, const char *mac, int mtu) {
    int control = tap->asking_fd;
    struct ifreq request = request_for(tap);
    if (mac) {
        unsigned char *to = (unsigned char *)request.ifr_hwaddr.sa_data;
        char end;
        if (sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx%c", to, to + 1, to + 2, to + 3, to + 4, to + 5, &end) != 6)
            errx(2, "device %s: '%s' is no MAC address", tap->device, mac);
        request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
        must(ioctl(control, SIOCSIFHWADDR, &request), tap->device, "set the MAC address");
    }
    request = request_for(tap);
    request.ifr_mtu = mtu;
    must(ioctl(control, SIOCSIFMTU, &request), tap->device, "set the MTU");
    request = request_for(tap);
    request.ifr_qlen = QUEUE_FRAMES;
    must(ioctl(control, SIOCSIFTXQLEN, &request), tap->device, "set the queue length");
    request = request_for(tap);
    must(ioctl(control, SIOCGIFFLAGS, &request), tap->device, "read its flags");
    request.ifr_flags |= IFF_UP;
    must(ioctl(control, SIOCSIFFLAGS, &request), tap->device, "bring it up");
}

void tap_open(struct tap *tap, const char *netns, const char *device, const char *mac, int mtu) {
    *tap = (struct tap){0};
    if (strlen(device) >= sizeof tap->device)
        errx(2, "'%s' is no name for a device: it has more than 15 characters", device);
    strcpy(tap->device, device);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0)
        err(1, "cannot open /proc/self/ns/net");
    enter(netns);
    tap->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    must(tap->fd, device, "open /dev/net/tun");
    struct ifreq request = request_for(tap);
    request.ifr_flags = (short)(IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL);
    must(ioctl(tap->fd, TUNSETIFF, &request), device, "make it");
    must(ioctl(tap->fd, TUNSETOFFLOAD, 0), device, "turn offloads off"); /* single packets only */
    tap->counts_fd = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);
    must(tap->counts_fd, device, "open its counters");
    tap->asking_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    must(tap->asking_fd, device, "open a socket");
    configure(tap, mac, mtu);
    if (setns(home, CLONE_NEWNET) < 0)
        err(1, "cannot go back to the first network namespace");
    close(home);
}

static bool device_dropped(const struct tap *tap, uint64_t *frames) {
    char text[65536];
    size_t length = 0;
    ssize_t part; /* the kernel gives a page at a time */
    while ((part = pread(tap->counts_fd, text + length, sizeof text - 1 - length, (off_t)length)) > 0)
        length += (size_t)part;
    text[length] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *name = line + strspn(line, " ");
        size_t size = strlen(tap->device);
        if (!strncmp(name, tap->device, size) && name[size] == ':' &&
            sscanf(name + size + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, frames) == 1)
            return true;
    }
    return false;
}

bool tap_present(const struct tap *tap) {
    uint64_t dropped;
    return device_dropped(tap, &dropped);
}

/* A device that gets its carrier back goes on dropping what it is given until a worker of the kernel has seen to
 * it. Who asks for the carrier has that done first (Linux 6.8; such drops are counted from Linux 6.11 on). */
static bool see_to_carrier(const struct tap *tap) {
    struct ethtool_value carrier = {.cmd = ETHTOOL_GLINK};
    struct ifreq request = request_for(tap);
    request.ifr_data = (void *)&carrier;
    return ioctl(tap->asking_fd, SIOCETHTOOL, &request) == 0;
}

bool tap_carrier(struct tap *tap, bool up) {
    int carrier = up;
    uint64_t dropped;
    if (!up && !tap->cut) {
        if (!device_dropped(tap, &tap->dropped_before_cut))
            return false;
        tap->cut = true;
    }
    if (ioctl(tap->fd, TUNSETCARRIER, &carrier) != 0)
        return false;
    if (up && tap->cut) {
        if (!see_to_carrier(tap) || !device_dropped(tap, &dropped))
            return false;
        tap->dropped_by_cuts += dropped - tap->dropped_before_cut;
        tap->cut = false;
    }
    return true;
}

bool tap_dropped(const struct tap *tap, uint64_t *frames) {
    if (!device_dropped(tap, frames))
        return false;
    *frames = (tap->cut ? tap->dropped_before_cut : *frames) - tap->dropped_by_cuts;
    return true;
}
