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
    if (!tap_carrier(&link->ends[0], up) || !tap_carrier(&link->ends[1], up)) {
        fputs("error the kernel does not change the carrier of a TAP device", reply);
        return;
    }
    for (int i = 0; i < DIRECTIONS; i++)
        direction_set_up(&link->directions[i], up, now_ns());
    fputs("ok", reply);
}

/* Answers `set WHICH KEY=VALUE ...`; nothing changes unless all of it is understood. */
static void set(FILE *reply, struct link *link, char *rest) {
    char *state = NULL;
    const char *which = strtok_r(rest, " ", &state);
    struct shape shapes[DIRECTIONS];
    bool chosen[DIRECTIONS];
    bool both = which && !strcmp(which, "both");
    for (int i = 0; i < DIRECTIONS; i++) {
        shapes[i] = link->directions[i].shape;
        chosen[i] = which && (both || !strcmp(which, link->directions[i].name));
    }
    if (!chosen[A_TO_B] && !chosen[B_TO_A]) {
        fputs("error say which direction: a-to-b, b-to-a or both", reply);
        return;
    }
    const char *pair = strtok_r(NULL, " ", &state);
    if (pair && both && (!strcmp(pair, "up=0") || !strcmp(pair, "up=1"))) {
        set_up(reply, link, pair[3] == '1');
        return;
    }
    for (; pair; pair = strtok_r(NULL, " ", &state)) {
        for (int i = 0; i < DIRECTIONS; i++) {
            if (chosen[i] && !shape_set(&shapes[i], pair)) {
                fprintf(reply, "error not understood: %s", pair);
                return;
            }
        }
    }
    int64_t now = now_ns();
    for (int i = 0; i < DIRECTIONS; i++) {
        if (chosen[i])
            direction_change(&link->directions[i], &shapes[i], now);
    }
    fputs("ok", reply);
}

static void answer(FILE *reply, struct link *link, char *request) {
    if (!strcmp(request, "stats")) {
        report_stats(reply, link);
    } else if (!strcmp(request, "stop")) {
        link->stopped = true;
        fputs("ok", reply);
    } else if (!strncmp(request, "set ", 4)) {
        set(reply, link, request + 4);
    } else {
        fputs("error not understood; there are: set, stats, stop", reply);
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
