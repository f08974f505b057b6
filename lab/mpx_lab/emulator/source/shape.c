#include "shape.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RATE_BPS UINT64_C(100000000000)
#define MAX_DELAY_NS UINT64_C(60000000000)

static bool whole(const char *text, uint64_t max, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && *value <= max;
}

static bool share(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return isdigit((unsigned char)*text) && !*end && *value >= 0 && *value <= 1;
}

bool shape_set(struct shape *shape, const char *pair) {
    const char *equals = strchr(pair, '=');
    if (!equals)
        return false;
    size_t length = (size_t)(equals - pair);
    const char *text = equals + 1;
    uint64_t number = 0;
#define IS(key) (length == strlen(key) && !strncmp(pair, key, length))
    if (IS("rate"))
        return whole(text, MAX_RATE_BPS, &shape->rate_bps);
    if (IS("delay_ns") && whole(text, MAX_DELAY_NS, &number)) {
        shape->delay_ns = (int64_t)number;
        return true;
    }
    if (IS("queue_bytes")) {
        shape->queue_packets = 0; /* one limit replaces the other, also where it is none */
        return whole(text, UINT64_MAX, &shape->queue_bytes);
    }
    if (IS("queue_packets")) {
        shape->queue_bytes = 0;
        return whole(text, UINT64_MAX, &shape->queue_packets);
    }
    if (IS("loss"))
        return share(text, &shape->loss);
    if (IS("seed")) {
        shape->seedings++;
        return whole(text, UINT64_MAX, &shape->seed);
    }
#undef IS
    return false;
}
