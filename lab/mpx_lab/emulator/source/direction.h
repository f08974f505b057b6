/* One direction of the link: a virtual serialiser, a delay, and the account of every frame.
 *
 * Nothing waits for a real clock tick: when a frame is read, its departure is computed as
 *     max(its arrival, the departure before it) + length / rate
 * and it is due a delay later. So a late loop makes single frames late, but never the rate lower.
 */
#ifndef DIRECTION_H
#define DIRECTION_H

#include "histogram.h"
#include "shape.h"
#include "store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally {
    uint64_t frames;
    uint64_t bytes;
};

/* received = delivered + every dropped + write_errors + held, in frames and in bytes, at any time.
 *
 *     dropped_queue    the queue was full
 *     dropped_loss     lost at random
 *     dropped_down     the link was down, or went down while it was held
 *     dropped_ring     no memory left: what is measured is worthless
 *     dropped_invalid  longer than the link's MTU permits: no single packet
 *     write_errors     the other device did not take it
 *     held             in the queue or on its way
 *     queued           of these in the queue, the one on the serialiser included
 */
#define TALLIES(DO)                                                                                                    \
    DO(received)                                                                                                       \
    DO(delivered)                                                                                                      \
    DO(dropped_queue)                                                                                                  \
    DO(dropped_loss)                                                                                                   \
    DO(dropped_down)                                                                                                   \
    DO(dropped_ring)                                                                                                   \
    DO(dropped_invalid)                                                                                                \
    DO(write_errors)                                                                                                   \
    DO(held)                                                                                                           \
    DO(queued)

struct counters {
#define MEMBER(name) struct tally name;
    TALLIES(MEMBER)
#undef MEMBER
};

struct direction {
    const char *name; /* "a-to-b" */
    int in_fd;
    int out_fd;
    size_t max_length; /* of a valid frame */
    bool up;
    struct shape shape;
    struct counters counters;
    struct histogram late;          /* delivered so much after it was due */
    struct histogram late_interval; /* the same, since the last line of the log */
    struct histogram pickup;        /* a frame may have waited so long for being read */
    struct histogram pickup_interval;
    uint64_t queued_bytes_max; /* since the last line of the log */
    int64_t seen_empty_ns;     /* when in_fd had nothing to read, or could not have been read earlier */

    struct store store;
    int64_t last_departure_ns;
    int64_t last_due_ns;
    int64_t departed_due_ns; /* of the last frame that has left the serialiser */
    uint64_t carry; /* what the last division left of a nanosecond, in units of 1 / rate */
    uint64_t drawn; /* numbers of the seed used since it was told, one for each frame received while up */
};

/* Prepares an empty direction that is up; false without memory. */
bool direction_init(struct direction *direction, const char *name, const struct shape *shape, size_t max_length);

/* Takes what has arrived, up to so many frames; returns whether there may be more. */
bool direction_read(struct direction *direction, int limit);

/* Delivers what is due, up to so many frames; returns when the next one is due, NEVER_NS if none is held. */
int64_t direction_deliver(struct direction *direction, int limit);

/* Brings `queued` up to date. */
void direction_settle(struct direction *direction, int64_t now_ns);

/* Changes the shape. What has left the serialiser keeps its time; what is on it or waits for it goes on with
 * the new rate and delay. Nothing overtakes, and nothing that was accepted is dropped. */
void direction_change(struct direction *direction, const struct shape *shape, int64_t now_ns);

/* Connects or cuts the link; cut, it loses all it holds. */
void direction_set_up(struct direction *direction, bool up, int64_t now_ns);

#endif
