/* The log: what each direction held, carried and dropped, in lines of CSV, in a file that does not grow for ever.
 *
 * A direction in which nothing happens gets no lines. Before the next one comes the last that was left out, so
 * what a line tells of the time since the line before is of no more than one interval in which something happened.
 */
#ifndef LOG_H
#define LOG_H

#include "link.h"

#include <stdio.h>

#define LOG_EVERY_NS 100000000

/* Of one direction: what its last line said, and when a line was last left out. */
struct logged {
    struct counters counters;
    struct shape shape;
    bool up;
    bool any;           /* there was a line */
    int64_t left_out_ns; /* 0: none since */
};

struct log {
    FILE *out;
    const char *path;
    uint64_t most_bytes; /* a file that has so many becomes PATH.1, in the place of the one before */
    struct logged logged[DIRECTIONS];
};

/* Begins a log; on failure says why on stderr and ends the process. */
void log_open(struct log *log, const char *path, uint64_t most_bytes);

/* Writes a line for each direction; what is told per interval begins anew. A log that cannot be written ends with
 * its last whole line, and the link says so. */
void log_lines(struct log *log, struct link *link);

#endif
