#include "log.h"

#include "clock.h"

#include <err.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

static bool begin(struct log *log) {
    log->out = fopen(log->path, "we");
    if (!log->out)
        return false;
    fputs("time_ns,direction,up,rate_bps,delay_ns,queue_max_bytes", log->out);
#define HEAD(member) fputs("," #member "_frames," #member "_bytes", log->out);
    TALLIES(HEAD)
#undef HEAD
    fputs(",late_p50_ns,late_p99_ns,late_max_ns,pickup_p50_ns,pickup_p99_ns,pickup_max_ns\n", log->out);
    return fflush(log->out) == 0;
}

void log_open(struct log *log, const char *path, uint64_t most_bytes) {
    *log = (struct log){.path = path, .most_bytes = most_bytes};
    if (!begin(log))
        err(1, "cannot write %s", path);
}

static bool turn_over(struct log *log) {
    char older[PATH_MAX];
    if (snprintf(older, sizeof older, "%s.1", log->path) >= (int)sizeof older)
        return false;
    bool kept = fclose(log->out) == 0 && rename(log->path, older) == 0;
    log->out = NULL;
    return kept && begin(log);
}

static void quantiles(FILE *out, struct histogram *seen) {
    fprintf(out, ",%" PRId64 ",%" PRId64 ",%" PRId64, histogram_quantile(seen, 0.5), histogram_quantile(seen, 0.99),
            seen->max_ns);
    histogram_clear(seen);
}

static void line(FILE *out, const char *name, const struct logged *said, int64_t at_ns, uint64_t queued_bytes_max,
                 struct histogram *late, struct histogram *pickup) {
    fprintf(out, "%" PRId64 ",%s,%d,%" PRIu64 ",%" PRId64 ",%" PRIu64, at_ns, name, said->up, said->shape.rate_bps,
            said->shape.delay_ns, queued_bytes_max);
#define PAIR(member) fprintf(out, ",%" PRIu64 ",%" PRIu64, said->counters.member.frames, said->counters.member.bytes);
    TALLIES(PAIR)
#undef PAIR
    quantiles(out, late);
    quantiles(out, pickup);
    fputc('\n', out);
}

static bool same(const struct logged *said, const struct direction *direction) {
    return said->any && said->up == direction->up &&
           !memcmp(&said->counters, &direction->counters, sizeof said->counters) &&
           !memcmp(&said->shape, &direction->shape, sizeof said->shape);
}

static void log_direction(FILE *out, struct logged *said, struct direction *direction, int64_t now) {
    direction_settle(direction, now);
    if (same(said, direction)) {
        said->left_out_ns = now;
        return;
    }
    if (said->left_out_ns) {
        struct histogram none = {0};
        line(out, direction->name, said, said->left_out_ns, said->counters.queued.bytes, &none, &none);
    }
    *said = (struct logged){direction->counters, direction->shape, direction->up, .any = true};
    line(out, direction->name, said, now, direction->queued_bytes_max, &direction->late_interval,
         &direction->pickup_interval);
    direction->queued_bytes_max = direction->counters.queued.bytes;
}

void log_lines(struct log *log, struct link *link) {
    if (link->log_failed)
        return;
    int64_t now = now_ns();
    for (int i = 0; i < DIRECTIONS; i++)
        log_direction(log->out, &log->logged[i], &link->directions[i], now);
    link->log_failed = fflush(log->out) != 0 || ((uint64_t)ftell(log->out) >= log->most_bytes && !turn_over(log));
}
