/* Emulates one link: Ethernet frames between two TAP devices in two network namespaces.
 *
 *     link --name L --log FILE --control SOCKET --mtu 1500 --a NETNS DEV [--a-mac MAC] --b NETNS DEV [--b-mac MAC]
 *          --log-bytes N --pause-ns N
 *          --a-to-b rate=200000000,delay_ns=30000000,queue_bytes=1500000,loss=0.0005,seed=7 --b-to-a ...
 *
 * Prints `ready` once it serves, and ends on SIGTERM or when told to; the devices go with it.
 */
#define _GNU_SOURCE
#include "link.h"

#include "clock.h"
#include "control.h"
#include "log.h"

#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HEADER_BYTES 18          /* Ethernet with a VLAN tag */
#define BATCH_FRAMES 64          /* per direction and round, so that no direction waits long for the other */
#define PAUSE_NS 50000 /* between two rounds, when nothing is due sooner: fewer, larger rounds cost less */
#define SHORT_PAUSE 2  /* half a pause is between two rounds at least, or others starve */
#define WATCH_NS 1000000     /* the longest wait while frames come and none is held */
#define WATCHED_NS 100000000 /* frames come: there was one so recently */
#define LOG_BYTES (UINT64_C(32) << 20)
#define PRIORITY 10

struct options {
    const char *name, *log, *control;
    const char *netns[2], *device[2], *mac[2];
    int mtu;
    uint64_t log_bytes;
    int64_t pause_ns;
    struct shape shapes[DIRECTIONS];
};

static volatile sig_atomic_t terminated;

static void on_signal(int number) {
    (void)number;
    terminated = 1;
}

static void parse_shape(struct shape *shape, char *text) {
    for (char *pair = strtok(text, ","); pair; pair = strtok(NULL, ","))
        if (!shape_set(shape, pair))
            errx(2, "not understood: %s", pair);
}

static struct options parse(int count, char **words) {
    struct options options = {.mtu = 1500, .log_bytes = LOG_BYTES, .pause_ns = PAUSE_NS};
    int i = 1;
#define NEXT (i < count ? words[i++] : (errx(2, "a value is missing at the end"), ""))
    while (i < count) {
        const char *option = NEXT;
        int end = !strncmp(option, "--b", 3); /* of what belongs to an end or a direction */
        if (!strcmp(option, "--name")) {
            options.name = NEXT;
        } else if (!strcmp(option, "--log")) {
            options.log = NEXT;
        } else if (!strcmp(option, "--control")) {
            options.control = NEXT;
        } else if (!strcmp(option, "--mtu")) {
            options.mtu = atoi(NEXT);
        } else if (!strcmp(option, "--log-bytes")) {
            options.log_bytes = strtoull(NEXT, NULL, 10);
        } else if (!strcmp(option, "--pause-ns")) {
            options.pause_ns = strtoll(NEXT, NULL, 10);
        } else if (!strcmp(option, "--a") || !strcmp(option, "--b")) {
            options.netns[end] = NEXT;
            options.device[end] = NEXT;
        } else if (!strcmp(option, "--a-mac") || !strcmp(option, "--b-mac")) {
            options.mac[end] = NEXT;
        } else if (!strcmp(option, "--a-to-b") || !strcmp(option, "--b-to-a")) {
            parse_shape(&options.shapes[end ? B_TO_A : A_TO_B], NEXT);
        } else {
            errx(2, "no such option: %s", option);
        }
    }
#undef NEXT
    if (!options.name || !options.log || !options.control || !options.device[0] || !options.device[1])
        errx(2, "--name, --log, --control, --a and --b are needed");
    if (options.mtu < 68 || options.mtu > 9000)
        errx(2, "an MTU must be 68 to 9000");
    if (options.pause_ns <= 0 || options.pause_ns > WATCH_NS)
        errx(2, "a pause must be 1 to %d ns", WATCH_NS);
    return options;
}

/* Takes what helps to be punctual, and notes what of it was permitted. */
static void be_punctual(struct link *link) {
    prctl(PR_SET_TIMERSLACK, 1);
    link->memory_locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    struct sched_param priority = {.sched_priority = PRIORITY};
    link->realtime = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

static void open_link(struct link *link, const struct options *options) {
    static const char *const NAMES[DIRECTIONS] = {"a-to-b", "b-to-a"};
    link->name = options->name;
    for (int i = 0; i < 2; i++)
        tap_open(&link->ends[i], options->netns[i], options->device[i], options->mac[i], options->mtu);
    for (int i = 0; i < DIRECTIONS; i++) {
        struct direction *direction = &link->directions[i];
        if (!direction_init(direction, NAMES[i], &options->shapes[i], (size_t)options->mtu + HEADER_BYTES))
            errx(1, "no memory for link %s", options->name);
        direction->in_fd = link->ends[i].fd;
        direction->out_fd = link->ends[!i].fd;
    }
}

/* Waits until something can be read or the time has come; `fds` tell what. */
static void wait_until(struct pollfd *fds, int count, int64_t until_ns) {
    int64_t left_ns = until_ns - now_ns();
    struct timespec timeout = timespec_of(left_ns > 0 ? left_ns : 0);
    if (ppoll(fds, (nfds_t)count, &timeout, NULL) < 0) /* a signal */
        for (int i = 0; i < count; i++)
            fds[i].revents = 0;
}

/* Returns until when to wait at most. While frames come, but none is held that would wake us, it is a short time:
 * only a wait that ends later than it should have shows that the machine stood still. */
static int64_t wait_limit(int64_t due_ns, int64_t log_at_ns, int64_t now, int64_t came_ns) {
    int64_t until_ns = due_ns < log_at_ns ? due_ns : log_at_ns;
    int64_t watch_ns = now + WATCH_NS;
    return due_ns == NEVER_NS && now - came_ns < WATCHED_NS && watch_ns < until_ns ? watch_ns : until_ns;
}

static void run(struct link *link, struct control *control, struct log *log, int64_t pause_ns) {
    int64_t log_at_ns = now_ns() + LOG_EVERY_NS;
    int64_t due_ns = 0;
    int64_t came_ns = 0; /* when there was a frame last */
    bool more = false;
    while (!terminated && !link->stopped) {
        struct pollfd fds[DIRECTIONS + CONTROL_FDS];
        for (int i = 0; i < DIRECTIONS; i++)
            fds[i] = (struct pollfd){.fd = link->directions[i].in_fd, .events = POLLIN};
        memcpy(fds + DIRECTIONS, control->fds, sizeof control->fds);
        int64_t asked_ns = now_ns();
        int64_t until_ns = more ? asked_ns : wait_limit(due_ns, log_at_ns, asked_ns, came_ns);
        wait_until(fds, DIRECTIONS + CONTROL_FDS, until_ns);
        int64_t began_ns = now_ns();

        more = false;
        for (int i = 0; i < DIRECTIONS; i++) {
            struct direction *direction = &link->directions[i];
            /* If it slept, there was nothing before it woke, or before it should have woken. */
            if (until_ns > asked_ns && began_ns - asked_ns > pause_ns)
                direction->seen_empty_ns = began_ns < until_ns ? began_ns : until_ns;
            if (fds[i].revents & (POLLERR | POLLNVAL))
                errx(1, "device %s was removed", link->ends[i].device);
            if (fds[i].revents & POLLIN) {
                came_ns = began_ns;
                more |= direction_read(direction, BATCH_FRAMES);
            } else {
                direction->seen_empty_ns = began_ns;
            }
        }
        due_ns = NEVER_NS;
        for (int i = 0; i < DIRECTIONS; i++) {
            int64_t next_ns = direction_deliver(&link->directions[i], BATCH_FRAMES);
            due_ns = next_ns < due_ns ? next_ns : due_ns;
        }
        control_serve(control, fds + DIRECTIONS, link);
        int64_t now = now_ns();
        if (now >= log_at_ns) {
            log_lines(log, link);
            log_at_ns = now + LOG_EVERY_NS;
        }
        if (!more && due_ns > now) {
            int64_t again_ns = began_ns + pause_ns;
            int64_t soonest_ns = began_ns + pause_ns / SHORT_PAUSE;
            if (due_ns < again_ns)
                again_ns = due_ns > soonest_ns ? due_ns : soonest_ns;
            struct timespec until = timespec_of(again_ns);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
    }
}

int main(int count, char **words) {
    struct options options = parse(count, words);
    struct link link = {0};
    struct control control;
    struct log log;
    /* Not blocked while it works: a wait that finds frames at once would never let them through. One that
     * comes just before a wait is seen after it, within LOG_EVERY_NS. */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log that may not grow is no reason to end */

    be_punctual(&link);
    open_link(&link, &options);
    log_open(&log, options.log, options.log_bytes);
    control_open(&control, options.control);
    puts("ready");
    fflush(stdout);
    run(&link, &control, &log, options.pause_ns);
    log_lines(&log, &link);
    for (int i = 0; i < 2; i++)
        close(link.ends[i].fd); /* whoever told it to stop sees the end of its connection after the devices' */
    unlink(options.control);
    return 0;
}
