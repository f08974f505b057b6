/* One end of the link: a TAP device in a network namespace, which goes when this process goes. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdint.h>

struct tap {
    int fd;
    char device[16];
    int counts_fd; /* /proc/net/dev of its namespace */
    int asking_fd; /* a socket in its namespace, to ask about devices */
    bool cut;
    uint64_t dropped_before_cut, dropped_by_cuts; /* at the device: what the kernel was given during a cut */
};

/* Opens a new device and brings it up; on failure says why on stderr and ends the process.
 * `mac` may be NULL. The process is back in its own namespace afterwards. */
void tap_open(struct tap *tap, const char *netns, const char *device, const char *mac, int mtu);

/* Returns whether the device is still there under its name. */
bool tap_present(const struct tap *tap);

/* Tells the kernel whether there is a carrier, and returns when it sends accordingly; false when it refuses. */
bool tap_carrier(struct tap *tap, bool up);

/* Tells how many frames the kernel dropped at this device before we could read them; false when the device is not
 * there under its name. Those of cuts are left out. Of those that we wrote nothing is told: the kernel counts as
 * dropped what nobody listens for. */
bool tap_dropped(const struct tap *tap, uint64_t *frames);

#endif
