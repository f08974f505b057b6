/* The link as a whole: two ends, two directions. */
#ifndef LINK_H
#define LINK_H

#include "direction.h"
#include "tap.h"

#include <stdbool.h>

enum { A_TO_B, B_TO_A, DIRECTIONS };

struct link {
    const char *name;
    struct tap ends[2];                      /* A, B */
    struct direction directions[DIRECTIONS]; /* reads from end i, writes to the other */
    bool realtime;                           /* SCHED_FIFO was permitted */
    bool memory_locked;                      /* no page of it can be swapped out */
    bool stopped;                            /* it was told to stop */
    bool log_failed;                         /* the log could not be written on */
};

#endif
