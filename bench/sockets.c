// Measures stream sockets by themselves: messages there and back, connections, and a stream,
// between two processes, over TCP or AF_UNIX.
//
// usage: sockets serve WHERE
//        sockets measure WHERE SECONDS
// WHERE is ADDRESS:PORT, or a path.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 64, BLOCK = 1 << 17, BLOCKS_AT_ONCE = 64 };

static char block[BLOCK];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

struct place {
    struct sockaddr_storage address;
    socklen_t size;
};

static struct place place_of(const char *where) {
    struct place place = {0};
    const char *colon = strrchr(where, ':');
    if (where[0] == '/' || colon == NULL) {
        struct sockaddr_un *address = (struct sockaddr_un *)&place.address;
        address->sun_family = AF_UNIX;
        snprintf(address->sun_path, sizeof address->sun_path, "%s", where);
        place.size = sizeof *address;
        return place;
    }
    struct sockaddr_in *address = (struct sockaddr_in *)&place.address;
    char host[64];
    snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
    address->sin_family = AF_INET;
    address->sin_port = htons((unsigned short)atoi(colon + 1));
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1) {
        fail(where);
    }
    place.size = sizeof *address;
    return place;
}

static void set_no_delay(int socket, const struct place *place) {
    int on = 1;
    if (place->address.ss_family == AF_INET) {
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
}

// Whether all came; nothing at all is an end.
static int get(int socket, char *into, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(socket, into + done, size - done);
        if (got < 0 || (got == 0 && done > 0)) {
            fail("read");
        }
        if (got == 0) {
            return 0;
        }
        done += (size_t)got;
    }
    return 1;
}

static void put(int socket, const char *from, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t sent = write(socket, from + done, size - done);
        if (sent < 0) {
            fail("write");
        }
        done += (size_t)sent;
    }
}

// One connection after the other. The first byte of each tells its kind.
static void serve(const struct place *place) {
    int listener = socket(place->address.ss_family, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (const struct sockaddr *)&place->address, place->size) != 0 ||
        listen(listener, 100) != 0) {
        fail("listen");
    }
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0) {
            fail("accept");
        }
        set_no_delay(connection, place);
        char kind = 0;
        if (get(connection, &kind, 1)) {
            if (kind == 'c') {
                put(connection, &kind, 1);
            }
            while (kind == 't' && get(connection, block, MESSAGE)) {
                put(connection, block, MESSAGE);
            }
            while (kind == 's' && get(connection, block, BLOCK)) {
                if (block[BLOCK - 1] != 'e') {
                    fail("another block");
                }
                if (block[0] == 'l') {
                    put(connection, block, 1);
                }
            }
        }
        close(connection);
    }
}

static int begin(const struct place *place, char kind) {
    int connection = socket(place->address.ss_family, SOCK_STREAM, 0);
    if (connect(connection, (const struct sockaddr *)&place->address, place->size) != 0) {
        fail("connect");
    }
    set_no_delay(connection, place);
    put(connection, &kind, 1);
    return connection;
}

static double turns(const struct place *place, double seconds) {
    int connection = begin(place, 't');
    double from = now();
    long count = 0;
    while (now() - from < seconds) {
        put(connection, block, MESSAGE);
        if (!get(connection, block, MESSAGE)) {
            fail("an early end");
        }
        count++;
    }
    double rate = (double)count / (now() - from);
    close(connection);
    return rate;
}

// A byte there and back, too: both ends have the connection.
static double connections(const struct place *place, double seconds) {
    double from = now();
    long count = 0;
    while (now() - from < seconds) {
        char answer = 0;
        int connection = begin(place, 'c');
        if (!get(connection, &answer, 1) || answer != 'c') {
            fail("no answer");
        }
        close(connection);
        count++;
    }
    return (double)count / (now() - from);
}

// The last of so many blocks is answered.
static double stream(const struct place *place, double seconds) {
    int connection = begin(place, 's');
    block[BLOCK - 1] = 'e';
    double from = now();
    long count = 0;
    while (now() - from < seconds) {
        for (int i = 1; i <= BLOCKS_AT_ONCE; i++) {
            block[0] = i == BLOCKS_AT_ONCE ? 'l' : 'n';
            put(connection, block, BLOCK);
        }
        char answer = 0;
        if (!get(connection, &answer, 1)) {
            fail("an early end");
        }
        count += BLOCKS_AT_ONCE;
    }
    double rate = (double)count * BLOCK / (now() - from) / 1e9;
    close(connection);
    return rate;
}

int main(int count, char **arguments) {
    if (count < 3) {
        return 2;
    }
    struct place place = place_of(arguments[2]);
    if (strcmp(arguments[1], "serve") == 0) {
        serve(&place);
    }
    double seconds = count > 3 ? atof(arguments[3]) : 1;
    printf("turns/64B %.1f 1/s\n", turns(&place, seconds));
    printf("connections %.1f 1/s\n", connections(&place, seconds));
    printf("stream/128K %.3f GB/s\n", stream(&place, seconds));
    return 0;
}
