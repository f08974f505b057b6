/* Times are nanoseconds of CLOCK_MONOTONIC, as in Python's time.monotonic_ns(). */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)
#define NEVER_NS INT64_MAX

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static inline struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

#endif
