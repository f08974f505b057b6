/* How often which time was seen, to about 6 % of it. */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 480 /* up to 18 minutes; what is longer counts in the last one */

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
    int64_t max_ns;
};

void histogram_add(struct histogram *seen, int64_t value_ns);
void histogram_clear(struct histogram *seen);

/* Returns a time that at least this share of all does not exceed; 0 when there are none. */
int64_t histogram_quantile(const struct histogram *seen, double share);

/* Returns the largest time that counts in a bucket. */
int64_t histogram_upper_ns(int bucket);

#endif
