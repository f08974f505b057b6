/* The control socket: one request and one reply per message.
 *
 *     set a-to-b rate=... loss=... b-to-a rate=...  -> ok, or error TEXT and nothing has changed
 *     cut                                           -> the same; all on its way is lost, no end has a carrier
 *     connect                                       -> the same; both have one again
 *     stats                                         -> one JSON object
 *     stop                                          -> ok, and the link is gone
 */
#ifndef CONTROL_H
#define CONTROL_H

#include "link.h"

#include <poll.h>

#define CONTROL_FDS 9 /* one listens, eight clients */

struct control {
    struct pollfd fds[CONTROL_FDS]; /* the first one listens; fd -1: free */
};

/* Listens at a path; on failure says why and ends the process. */
void control_open(struct control *control, const char *path);

/* Serves what poll() found in `found`, a copy of `fds`. */
void control_serve(struct control *control, const struct pollfd *found, struct link *link);

#endif
