/* A sender or receiver of one file inside TLS 1.3, one thread for each stream: what mpx is measured against.
 *
 *     tls_peer receive PORT STREAMS FILE BYTES CERTIFICATE KEY
 *     tls_peer send    PORT STREAMS FILE BYTES
 *
 * Each stream has an equal part of the file, read with pread() and written with pwrite() in pieces of 256 KiB.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 256 * 1024, MOST_STREAMS = 64 };

static SSL_CTX *context;
static int file, sends;
static long part_bytes;

struct stream {
    int connection;
    long start;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *run(void *of) {
    struct stream *stream = of;
    char *piece = malloc(PIECE);
    SSL *tls = SSL_new(context);
    SSL_set_fd(tls, stream->connection);
    if ((sends ? SSL_connect(tls) : SSL_accept(tls)) != 1)
        fail("handshake");
    long at = stream->start, end = at + part_bytes;
    while (at < end) {
        int size = end - at < PIECE ? end - at : PIECE;
        if (sends) {
            if (pread(file, piece, size, at) != size || SSL_write(tls, piece, size) != size)
                fail("send");
        } else {
            int got = 0, more;
            for (; got < size; got += more)
                if ((more = SSL_read(tls, piece + got, size - got)) <= 0)
                    fail("receive");
            if (pwrite(file, piece, size, at) != size)
                fail("write");
        }
        at += size;
    }
    SSL_shutdown(tls);
    while (SSL_read(tls, piece, PIECE) > 0)
        ;
    close(stream->connection);
    return NULL;
}

int main(int count, char **words) {
    if (count < 6)
        return 2;
    sends = !strcmp(words[1], "send");
    int streams = atoi(words[3]), one = 1, listener = -1;
    file = sends ? open(words[4], O_RDONLY) : open(words[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
    part_bytes = atol(words[5]) / streams;
    if (file < 0 || streams < 1 || streams > MOST_STREAMS)
        fail(words[4]);
    context = SSL_CTX_new(sends ? TLS_client_method() : TLS_server_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    if (!sends && (SSL_CTX_use_certificate_file(context, words[6], SSL_FILETYPE_PEM) != 1 ||
                   SSL_CTX_use_PrivateKey_file(context, words[7], SSL_FILETYPE_PEM) != 1))
        fail("certificate");
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
    if (!sends) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, (void *)&place, sizeof place) || listen(listener, MOST_STREAMS))
            fail("listen");
        puts("ready");
        fflush(stdout);
    }
    pthread_t threads[MOST_STREAMS];
    static struct stream each[MOST_STREAMS];
    for (int i = 0; i < streams; i++) {
        if (sends) {
            each[i].connection = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(each[i].connection, (void *)&place, sizeof place))
                fail("connect");
        } else {
            each[i].connection = accept(listener, NULL, NULL);
        }
        setsockopt(each[i].connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        each[i].start = i * part_bytes;
        pthread_create(&threads[i], NULL, run, &each[i]);
    }
    for (int i = 0; i < streams; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
