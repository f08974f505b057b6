#include "direction.h"

#include "chance.h"
#include "clock.h"

#include <errno.h>
#include <unistd.h>

#define BITS_NS (8 * UINT64_C(1000000000))
#define MAX_AHEAD_BYTES (UINT64_C(256) << 20) /* taken before anything arrives; more comes as needed */

static uint8_t scratch[sizeof(struct frame) + 65536]; /* for what is read and not kept */

static void count(struct tally *tally, size_t length) {
    tally->frames++;
    tally->bytes += length;
}

static void uncount(struct tally *tally, size_t length) {
    tally->frames--;
    tally->bytes -= length;
}

static uint64_t memory_for(const struct shape *shape) {
    double bytes = (double)shape->rate_bps / 8 * ((double)shape->delay_ns / SECOND_NS);
    bytes += shape->queue_packets ? 1514.0 * (double)shape->queue_packets : (double)shape->queue_bytes;
    return bytes < (double)MAX_AHEAD_BYTES ? (uint64_t)bytes : MAX_AHEAD_BYTES;
}

bool direction_init(struct direction *direction, const char *name, const struct shape *shape, size_t max_length) {
    *direction = (struct direction){.name = name, .max_length = max_length, .up = true, .shape = *shape};
    return store_init(&direction->store, memory_for(shape));
}

void direction_settle(struct direction *direction, int64_t now) {
    struct frame *frame;
    while ((frame = store_at(&direction->store.queued)) && frame->departure_ns <= now) {
        uncount(&direction->counters.queued, frame->length);
        direction->departed_due_ns = frame->due_ns;
        store_step(&direction->store.queued);
    }
}

static void set_due(struct direction *direction, struct frame *frame) {
    frame->due_ns = frame->departure_ns + direction->shape.delay_ns;
    if (frame->due_ns < direction->last_due_ns)
        frame->due_ns = direction->last_due_ns; /* the delay was lowered: nothing overtakes */
    direction->last_due_ns = frame->due_ns;
}

/* Sets when a frame departs that begins at `start_ns` or when the one before it has departed, and its due. */
static void serialise(struct direction *direction, struct frame *frame, int64_t start_ns) {
    uint64_t rate_bps = direction->shape.rate_bps;
    if (start_ns > direction->last_departure_ns) {
        direction->last_departure_ns = start_ns;
        direction->carry = 0;
    }
    if (rate_bps) { /* whole nanoseconds, the rest carried on: the rate is exact in the long run */
        uint64_t work = frame->length * BITS_NS + direction->carry;
        direction->last_departure_ns += (int64_t)(work / rate_bps);
        direction->carry = work % rate_bps;
    }
    frame->departure_ns = direction->last_departure_ns;
    set_due(direction, frame);
}

static bool queue_is_full(const struct direction *direction, size_t length) {
    const struct shape *shape = &direction->shape;
    const struct tally *queued = &direction->counters.queued;
    return (shape->queue_bytes && queued->bytes + length > shape->queue_bytes) ||
           (shape->queue_packets && queued->frames + 1 > shape->queue_packets);
}

/* Takes a frame that was just read; `kept` says whether it lies in the store. */
static void accept_frame(struct direction *direction, struct frame *frame, bool kept, int64_t now) {
    struct counters *counters = &direction->counters;
    count(&counters->received, frame->length);
    if (!direction->up) {
        count(&counters->dropped_down, frame->length);
        return;
    }
    frame->lost = chance(direction->shape.seed, direction->drawn++) < direction->shape.loss;
    direction_settle(direction, now);
    if (frame->length > direction->max_length) {
        count(&counters->dropped_invalid, frame->length);
    } else if (queue_is_full(direction, frame->length)) {
        count(&counters->dropped_queue, frame->length);
    } else if (!kept) {
        count(&counters->dropped_ring, frame->length);
    } else {
        serialise(direction, frame, now);
        store_add(&direction->store, frame);
        count(&counters->held, frame->length);
        count(&counters->queued, frame->length);
        if (counters->queued.bytes > direction->queued_bytes_max)
            direction->queued_bytes_max = counters->queued.bytes;
    }
}

bool direction_read(struct direction *direction, int limit) {
    for (int i = 0; i < limit; i++) {
        size_t room = direction->max_length + 1; /* one more, so that a longer frame shows */
        struct frame *frame = store_room(&direction->store, room);
        bool kept = frame != NULL;
        if (!kept)
            frame = (struct frame *)scratch;
        ssize_t length = read(direction->in_fd, frame->bytes, room);
        int64_t now = now_ns();
        if (length <= 0) { /* nothing there, or the device is down */
            direction->seen_empty_ns = now;
            return false;
        }
        frame->length = (uint32_t)length;
        histogram_add(&direction->pickup, now - direction->seen_empty_ns);
        histogram_add(&direction->pickup_interval, now - direction->seen_empty_ns);
        accept_frame(direction, frame, kept, now);
    }
    return true;
}

static void deliver(struct direction *direction, const struct frame *frame, int64_t now) {
    struct counters *counters = &direction->counters;
    if (frame->lost) {
        count(&counters->dropped_loss, frame->length);
        return;
    }
    ssize_t written = write(direction->out_fd, frame->bytes, frame->length);
    if (written != (ssize_t)frame->length) {
        count(&counters->write_errors, frame->length);
        return;
    }
    count(&counters->delivered, frame->length);
    histogram_add(&direction->late, now - frame->due_ns);
    histogram_add(&direction->late_interval, now - frame->due_ns);
}

int64_t direction_deliver(struct direction *direction, int limit) {
    struct frame *frame = store_at(&direction->store.head);
    for (int i = 0; frame && i < limit; i++) {
        int64_t now = now_ns();
        if (frame->due_ns > now)
            break;
        direction_settle(direction, now);
        deliver(direction, frame, now);
        uncount(&direction->counters.held, frame->length);
        store_drop_head(&direction->store);
        frame = store_at(&direction->store.head);
    }
    return frame ? frame->due_ns : NEVER_NS;
}

/* The frame on the serialiser goes on with what remains of it, those behind it follow. */
static void reschedule(struct direction *direction, uint64_t old_rate_bps, int64_t now) {
    uint64_t rate_bps = direction->shape.rate_bps;
    struct cursor cursor = direction->store.queued;
    struct frame *frame = store_at(&cursor);
    if (!frame)
        return;
    double remains_ns = (double)(frame->departure_ns - now);
    frame->departure_ns = now + (rate_bps ? (int64_t)(remains_ns * (double)old_rate_bps / (double)rate_bps) : 0);
    direction->last_departure_ns = frame->departure_ns;
    direction->last_due_ns = direction->departed_due_ns;
    direction->carry = 0;
    set_due(direction, frame);
    store_step(&cursor);
    while ((frame = store_at(&cursor))) {
        serialise(direction, frame, direction->last_departure_ns);
        store_step(&cursor);
    }
}

void direction_change(struct direction *direction, const struct shape *shape, int64_t now) {
    struct shape old = direction->shape;
    direction_settle(direction, now);
    direction->shape = *shape;
    if (shape->seedings != old.seedings)
        direction->drawn = 0;
    if (shape->rate_bps != old.rate_bps || shape->delay_ns != old.delay_ns)
        reschedule(direction, old.rate_bps, now);
}

void direction_set_up(struct direction *direction, bool up, int64_t now) {
    if (!up) {
        direction_settle(direction, NEVER_NS);
        for (struct frame *frame; (frame = store_at(&direction->store.head));) {
            count(&direction->counters.dropped_down, frame->length);
            uncount(&direction->counters.held, frame->length);
            store_drop_head(&direction->store);
        }
        direction->last_departure_ns = direction->last_due_ns = direction->departed_due_ns = now;
    }
    direction->up = up;
}
