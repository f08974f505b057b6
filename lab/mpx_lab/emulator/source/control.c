#define _GNU_SOURCE
#include "control.h"

#include "clock.h"
#include "report.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_REQUEST 1024

void control_open(struct control *control, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        errx(2, "the path of the control socket is too long for the kernel: %s", path);
    strcpy(address.sun_path, path);
    unlink(path);
    int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    mode_t before = umask(077); /* whoever may connect may change the link */
    if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof address) < 0 || listen(listening, 8) < 0)
        err(1, "cannot listen at %s", path);
    umask(before);
    control->fds[0] = (struct pollfd){.fd = listening, .events = POLLIN};
    for (int i = 1; i < CONTROL_FDS; i++)
        control->fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
}

static void set_up(FILE *reply, struct link *link, bool up) {
    for (int i = 0; i < 2; i++) { /* first, as otherwise one end alone could be cut */
        if (!tap_present(&link->ends[i])) {
            fprintf(reply, "error the device %s is not where it was made, so neither end is changed",
                    link->ends[i].device);
            return;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!tap_carrier(&link->ends[i], up)) {
            fprintf(reply, "error the kernel does not change the carrier of %s", link->ends[i].device);
            return;
        }
    }
    for (int i = 0; i < DIRECTIONS; i++)
        direction_set_up(&link->directions[i], up, now_ns());
    fputs("ok", reply);
}

/* Returns which direction has this name, DIRECTIONS if none has. */
static int direction_named(const struct link *link, const char *name) {
    int i = 0;
    while (i < DIRECTIONS && strcmp(name, link->directions[i].name) != 0)
        i++;
    return i;
}

/* Answers `set WHICH KEY=VALUE ... WHICH KEY=VALUE ...`; nothing changes unless all of it is understood. */
static void set(FILE *reply, struct link *link, char *rest) {
    struct shape shapes[DIRECTIONS];
    for (int i = 0; i < DIRECTIONS; i++)
        shapes[i] = link->directions[i].shape;
    int chosen = DIRECTIONS;
    char *state = NULL;
    for (char *word = strtok_r(rest, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
        int named = direction_named(link, word);
        if (named < DIRECTIONS) {
            chosen = named;
        } else if (chosen == DIRECTIONS) {
            fprintf(reply, "error say which direction before %s: a-to-b or b-to-a", word);
            return;
        } else if (!shape_set(&shapes[chosen], word)) {
            fprintf(reply, "error not understood: %s", word);
            return;
        }
    }
    int64_t now = now_ns();
    for (int i = 0; i < DIRECTIONS; i++)
        direction_change(&link->directions[i], &shapes[i], now);
    fputs("ok", reply);
}

static void answer(FILE *reply, struct link *link, char *request) {
    if (!strcmp(request, "stats")) {
        report_stats(reply, link);
    } else if (!strcmp(request, "stop")) {
        link->stopped = true;
        fputs("ok", reply);
    } else if (!strcmp(request, "cut")) {
        set_up(reply, link, false);
    } else if (!strcmp(request, "connect")) {
        set_up(reply, link, true);
    } else if (!strncmp(request, "set ", 4)) {
        set(reply, link, request + 4);
    } else {
        fputs("error not understood; there are: set, cut, connect, stats, stop", reply);
    }
}

/* Returns whether the client is still there. */
static bool serve_client(int client, struct link *link) {
    char request[MAX_REQUEST];
    ssize_t length = recv(client, request, sizeof request - 1, MSG_DONTWAIT);
    if (length <= 0)
        return false;
    request[length] = '\0';
    request[strcspn(request, "\n")] = '\0';
    char *text = NULL;
    size_t size = 0;
    FILE *reply = open_memstream(&text, &size);
    if (!reply)
        return false;
    answer(reply, link, request);
    bool sent = fclose(reply) == 0 && send(client, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
    free(text);
    return sent;
}

static void take_client(struct control *control) {
    int client = accept4(control->fds[0].fd, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 1; i < CONTROL_FDS && client >= 0; i++) {
        if (control->fds[i].fd < 0) {
            control->fds[i].fd = client;
            return;
        }
    }
    if (client >= 0)
        close(client); /* eight are more than anybody needs */
}

void control_serve(struct control *control, const struct pollfd *found, struct link *link) {
    for (int i = 1; i < CONTROL_FDS; i++) {
        if (found[i].fd >= 0 && found[i].revents && !serve_client(found[i].fd, link)) {
            close(control->fds[i].fd);
            control->fds[i].fd = -1;
        }
    }
    if (found[0].revents)
        take_client(control);
}
