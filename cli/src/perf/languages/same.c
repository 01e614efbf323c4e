/* The program that is measured in each language, in C: see same.rs. */
#include <ayre.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 5, MIB = 1 << 20, SMALL = 5000, LARGE = 50, BATCH = 50000 };

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

struct pair {
    ayre_port *port;
    ayre_peer peer;
    int rank;
    ayre_remote_region *remote;
    char *data;
};

static void send(struct pair *pair) {
    check(ayre_send_wait(pair->port, pair->peer, 0, pair->data, 8), "ayre_send_wait");
}

static void receive(struct pair *pair) {
    ayre_message message;
    char into[8];
    check(ayre_recv(pair->port, into, sizeof into, &message, -1), "ayre_recv");
}

static void put(struct pair *pair, size_t len) {
    int64_t code = AYRE_BUSY_LAST;
    while (code < 0 && code >= AYRE_BUSY_LAST) {
        code = ayre_put(pair->port, pair->remote, 0, pair->data, len, NULL);
        if (code < 0) {
            ayre_progress(pair->port);
        }
    }
    check(code, "ayre_put");
}

static void there_and_back(struct pair *pair, int count) {
    for (int at = 0; at < count; at++) {
        if (pair->rank == 0) {
            send(pair);
            receive(pair);
        } else {
            receive(pair);
            send(pair);
        }
    }
}

static void put_small(struct pair *pair, int count) {
    for (int at = 0; at < count && pair->rank == 0; at++) {
        put(pair, 8);
    }
    check(ayre_flush(pair->port, pair->peer), "ayre_flush");
}

static void fetch_add(struct pair *pair, int count) {
    for (int at = 0; at < count && pair->rank == 0; at++) {
        check(ayre_fetch_add(pair->port, pair->remote, 0, 1, NULL), "ayre_fetch_add");
    }
}

static void put_large(struct pair *pair, int count) {
    for (int at = 0; at < count && pair->rank == 0; at++) {
        put(pair, MIB);
        check(ayre_flush(pair->port, pair->peer), "ayre_flush");
    }
}

static void one_way(struct pair *pair, int count) {
    for (int at = 0; at < count; at++) {
        if (pair->rank == 0) {
            send(pair);
        } else {
            receive(pair);
        }
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int compare(const void *one, const void *other) {
    double left = *(const double *)one;
    double right = *(const double *)other;
    return (left > right) - (left < right);
}

/* Prints the median of the nanoseconds that an operation takes. */
static void measure(struct pair *pair, const char *name, void (*run)(struct pair *, int),
                    int count) {
    double times[ROUNDS];
    run(pair, count);
    for (int round = 0; round < ROUNDS; round++) {
        check(ayre_barrier(pair->port), "ayre_barrier");
        double begun = now();
        run(pair, count);
        times[round] = (now() - begun) / count;
    }
    qsort(times, ROUNDS, sizeof times[0], compare);
    if (pair->rank == 0) {
        printf("%s %.1f\n", name, times[ROUNDS / 2]);
    }
}

int main(void) {
    struct pair pair;
    ayre_region *region;
    ayre_range all = {0, MIB};
    check(ayre_port_join(NULL, &pair.port), "ayre_port_join");
    pair.rank = ayre_port_rank(pair.port);
    pair.peer = (ayre_peer)(pair.rank ^ 1);
    pair.data = (char *)calloc(1, MIB);
    check(pair.data == NULL ? AYRE_NO_MEMORY : AYRE_OK, "calloc");
    check(ayre_alloc(pair.port, MIB, 0, &region), "ayre_alloc");
    check(ayre_share(pair.port, pair.peer, region, all, AYRE_ALL_RIGHTS, 0, NULL), "ayre_share");
    check(ayre_accept_region(pair.port, pair.peer, 0, &pair.remote), "ayre_accept_region");
    measure(&pair, "there-and-back", there_and_back, SMALL);
    measure(&pair, "put", put_small, SMALL);
    measure(&pair, "fetch-add", fetch_add, SMALL);
    measure(&pair, "put-large", put_large, LARGE);
    measure(&pair, "message", one_way, BATCH);
    check(ayre_port_leave(pair.port), "ayre_port_leave");
    free(pair.data);
    return 0;
}
