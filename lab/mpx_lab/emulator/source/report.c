#include "report.h"

#include "clock.h"

#include <inttypes.h>
#include <sys/resource.h>

static const char *json_bool(bool value) {
    return value ? "true" : "false";
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
    const struct counters *counters = &direction->counters;
#define PAIR(member) fprintf(out, ", \"" #member "\": [%" PRIu64 ", %" PRIu64 "]", counters->member.frames, counters->member.bytes);
    TALLIES(PAIR)
#undef PAIR
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
    fprintf(out,
            "{\"name\": \"%s\", \"time_ns\": %" PRId64 ", \"up\": %s, \"realtime\": %s, \"memory_locked\": %s, "
            "\"log_failed\": %s, \"cpu_s\": %.6f",
            link->name, now, json_bool(link->directions[A_TO_B].up), json_bool(link->realtime),
            json_bool(link->memory_locked), json_bool(link->log_failed), cpu_s);
    for (int i = 0; i < DIRECTIONS; i++) {
        direction_settle(&link->directions[i], now);
        direction_stats(out, &link->directions[i], dropped[i]);
    }
    fputs("}", out);
}
