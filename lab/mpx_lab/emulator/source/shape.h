/* What one direction does to frames, and how that is written: `rate=200000000,delay_ns=30000000,...`. */
#ifndef SHAPE_H
#define SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shape {
    uint64_t rate_bps; /* 0: unlimited */
    int64_t delay_ns;
    uint64_t queue_bytes;   /* 0: unlimited */
    uint64_t queue_packets; /* 0: unlimited; only one of the two is set */
    double loss;            /* 0 to 1 */
    uint64_t seed;
    uint64_t seedings; /* how often the seed was told: each time its sequence begins anew */
};

/* Changes a shape by one `key=value`; false where the key or the value is not understood. */
bool shape_set(struct shape *shape, const char *pair);

#endif
