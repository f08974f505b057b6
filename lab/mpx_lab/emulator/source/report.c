#include "report.h"

#include "clock.h"

#include <inttypes.h>
#include <sys/resource.h>

static const struct {
    const char *name;
    size_t offset;
} TALLIES[] = {
#define TALLY(member) {#member, offsetof(struct counters, member)}
    TALLY(received),     TALLY(delivered),       TALLY(dropped_queue), TALLY(dropped_loss), TALLY(dropped_down),
    TALLY(dropped_ring), TALLY(dropped_invalid), TALLY(write_errors),  TALLY(held),         TALLY(queued),
#undef TALLY
};
static const int TALLY_COUNT = sizeof TALLIES / sizeof *TALLIES;

static struct tally tally_of(const struct direction *direction, int i) {
    return *(const struct tally *)((const char *)&direction->counters + TALLIES[i].offset);
}

static void histogram(FILE *out, const char *name, const struct histogram *seen) {
    fprintf(out, ", \"%s\": {\"max_ns\": %" PRId64 ", \"counts\": [", name, seen->max_ns);
    const char *comma = "";
    for (int bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        if (!seen->counts[bucket])
            continue;
        fprintf(out, "%s[%" PRId64 ", %" PRIu64 "]", comma, histogram_upper_ns(bucket), seen->counts[bucket]);
        comma = ", ";
    }
    fputs("]}", out);
}

static void direction_stats(FILE *out, const struct direction *direction, uint64_t device_dropped) {
    const struct shape *shape = &direction->shape;
    fprintf(out,
            ", \"%s\": {\"shape\": {\"rate_bps\": %" PRIu64 ", \"delay_ns\": %" PRId64 ", \"queue_bytes\": %" PRIu64
            ", \"queue_packets\": %" PRIu64 ", \"loss\": %.17g, \"seed\": %" PRIu64 "}",
            direction->name, shape->rate_bps, shape->delay_ns, shape->queue_bytes, shape->queue_packets, shape->loss,
            shape->seed);
    for (int i = 0; i < TALLY_COUNT; i++) {
        struct tally tally = tally_of(direction, i);
        fprintf(out, ", \"%s\": [%" PRIu64 ", %" PRIu64 "]", TALLIES[i].name, tally.frames, tally.bytes);
    }
    fprintf(out, ", \"device_dropped\": %" PRIu64, device_dropped);
    histogram(out, "late", &direction->late);
    histogram(out, "pickup", &direction->pickup);
    fputs("}", out);
}

void report_stats(FILE *out, struct link *link) {
    uint64_t dropped[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++) {
        if (!tap_dropped(&link->ends[i], &dropped[i])) {
            fprintf(out, "error the device %s is not where it was made, so its losses are unknown",
                    link->ends[i].device);
            return;
        }
    }
    int64_t now = now_ns();
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    fprintf(out, "{\"name\": \"%s\", \"time_ns\": %" PRId64 ", \"up\": %s, \"realtime\": %s, \"cpu_s\": %.6f",
            link->name, now, link->directions[A_TO_B].up ? "true" : "false", link->realtime ? "true" : "false", cpu_s);
    for (int i = 0; i < DIRECTIONS; i++) {
        direction_settle(&link->directions[i], now);
        direction_stats(out, &link->directions[i], dropped[i]);
    }
    fputs("}", out);
}

void report_log_header(FILE *out) {
    fputs("time_ns,direction,up,rate_bps,delay_ns,queue_max_bytes", out);
    for (int i = 0; i < TALLY_COUNT; i++)
        fprintf(out, ",%s_frames,%s_bytes", TALLIES[i].name, TALLIES[i].name);
    fputs(",late_p50_ns,late_p99_ns,late_max_ns\n", out);
}

void report_log_lines(FILE *out, struct link *link) {
    int64_t now = now_ns();
    for (int i = 0; i < DIRECTIONS; i++) {
        struct direction *direction = &link->directions[i];
        direction_settle(direction, now);
        fprintf(out, "%" PRId64 ",%s,%d,%" PRIu64 ",%" PRId64 ",%" PRIu64, now, direction->name, direction->up,
                direction->shape.rate_bps, direction->shape.delay_ns, direction->queued_bytes_max);
        for (int j = 0; j < TALLY_COUNT; j++) {
            struct tally tally = tally_of(direction, j);
            fprintf(out, ",%" PRIu64 ",%" PRIu64, tally.frames, tally.bytes);
        }
        struct histogram *late = &direction->late_interval;
        fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", histogram_quantile(late, 0.5),
                histogram_quantile(late, 0.99), late->max_ns);
        histogram_clear(late);
        direction->queued_bytes_max = direction->counters.queued.bytes;
    }
    fflush(out);
}
