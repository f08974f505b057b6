#include "histogram.h"

#include <string.h>

#define UNIT_BITS 8 /* times count in units of 256 ns */
#define STEP_BITS 4 /* 16 buckets for every doubling */
#define STEPS (1 << STEP_BITS)

static int bucket_of(int64_t value_ns) {
    uint64_t units = value_ns > 0 ? (uint64_t)value_ns >> UNIT_BITS : 0;
    if (units < STEPS)
        return (int)units;
    int exponent = 63 - __builtin_clzll(units);
    int bucket = (exponent - STEP_BITS) * STEPS + (int)(units >> (exponent - STEP_BITS));
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

int64_t histogram_upper_ns(int bucket) {
    int64_t next = bucket + 1; /* the first unit that no longer belongs to this bucket */
    if (next > STEPS) {
        int doublings = (int)(next / STEPS) - 1;
        next = (next % STEPS + STEPS) << doublings;
    }
    return (next << UNIT_BITS) - 1;
}

void histogram_add(struct histogram *seen, int64_t value_ns) {
    seen->counts[bucket_of(value_ns)]++;
    seen->total++;
    if (value_ns > seen->max_ns)
        seen->max_ns = value_ns;
}

void histogram_clear(struct histogram *seen) {
    memset(seen, 0, sizeof *seen);
}

int64_t histogram_quantile(const struct histogram *seen, double share) {
    double wanted = share * (double)seen->total;
    uint64_t below = 0;
    for (int bucket = 0; bucket < HISTOGRAM_BUCKETS && seen->total; bucket++) {
        below += seen->counts[bucket];
        if ((double)below >= wanted && below) {
            int64_t upper_ns = histogram_upper_ns(bucket);
            return upper_ns < seen->max_ns ? upper_ns : seen->max_ns;
        }
    }
    return 0;
}
