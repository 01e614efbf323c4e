/* Threads with a port of their own, connected with each other, and threads that hand one port
 * around. The argument is a path to listen at. */
#include <ayre.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1000 };

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

static void expect(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

/* Puts and sends numbers to a peer, and gets as many from it. */
static void exchange(ayre_port *port, ayre_peer peer) {
    ayre_region *region = NULL;
    ayre_remote_region *remote = NULL;
    ayre_range all = {0, 4096};
    ayre_options options = {AYRE_COMPLETER, 0, 0};
    check(ayre_alloc(port, 4096, 0, &region), "ayre_alloc");
    check(ayre_share(port, peer, region, all, AYRE_ALL_RIGHTS, 0, NULL), "ayre_share");
    check(ayre_accept_region(port, peer, 0, &remote), "ayre_accept_region");
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t came[64] = {0};
        uint64_t sent[64] = {round};
        ayre_notification note;
        ayre_message message;
        sent[63] = round;
        check(ayre_put(port, remote, 0, sent, sizeof sent, &options), "ayre_put");
        check(ayre_wait_notification(port, &note, -1), "ayre_wait_notification");
        memcpy(came, ayre_region_address(region), sizeof came);
        expect(came[0] == round && came[63] == round, "what was put is there");
        check(ayre_send_wait(port, peer, 0, came, 8), "ayre_send_wait");
        check(ayre_recv(port, came, sizeof came, &message, -1), "ayre_recv");
        expect(came[0] == round && message.len == 8, "what was sent has come");
        check(ayre_fetch_add(port, remote, 1024, 1, NULL), "ayre_fetch_add");
    }
    ayre_remote_region_close(remote);
    ayre_region_close(region);
}

/* A port that listens, and the thread that connects with it. */
struct meeting {
    const char *path;
    ayre_port *listens;
};

static void *connecting(void *argument) {
    struct meeting *meeting = (struct meeting *)argument;
    ayre_port *port = NULL;
    check(ayre_port_open(NULL, &port), "ayre_port_open");
    int peer = ayre_port_connect(port, meeting->path);
    check(peer, "ayre_port_connect");
    exchange(port, (ayre_peer)peer);
    check(ayre_port_leave(port), "ayre_port_leave");
    return NULL;
}

static void *accepting(void *argument) {
    struct meeting *meeting = (struct meeting *)argument;
    int peer = ayre_port_accept(meeting->listens);
    check(peer, "ayre_port_accept");
    exchange(meeting->listens, (ayre_peer)peer);
    check(ayre_port_leave(meeting->listens), "ayre_port_leave");
    return NULL;
}

/* A port that threads hand around by a mutex, and what they have counted. */
struct common {
    pthread_mutex_t mutex;
    ayre_port *port;
    ayre_peer own;
    long turns;
};

static void *in_turn(void *argument) {
    struct common *common = (struct common *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        long came = 0;
        ayre_message message;
        pthread_mutex_lock(&common->mutex);
        check(ayre_send_wait(common->port, common->own, 0, &common->turns, sizeof common->turns),
              "ayre_send_wait");
        check(ayre_recv(common->port, &came, sizeof came, &message, -1), "ayre_recv");
        expect(came == common->turns, "a thread receives its own message");
        common->turns++;
        pthread_mutex_unlock(&common->mutex);
    }
    return NULL;
}

static void run_both(void *(*one)(void *), void *(*other)(void *), void *argument) {
    pthread_t threads[2];
    expect(pthread_create(&threads[0], NULL, one, argument) == 0, "a thread starts");
    expect(pthread_create(&threads[1], NULL, other, argument) == 0, "a thread starts");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

int main(int count, char **arguments) {
    expect(count > 1, "an argument says where to listen");
    struct meeting meeting = {arguments[1], NULL};
    ayre_config config;
    check(ayre_config_init(&config, sizeof config), "ayre_config_init");
    config.number = 1;
    check(ayre_port_open(&config, &meeting.listens), "ayre_port_open");
    check(ayre_port_listen(meeting.listens, meeting.path), "ayre_port_listen");
    run_both(accepting, connecting, &meeting);

    struct common common = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};
    check(ayre_port_open(NULL, &common.port), "ayre_port_open");
    int own = ayre_port_connect_loopback(common.port);
    check(own, "ayre_port_connect_loopback");
    common.own = (ayre_peer)own;
    run_both(in_turn, in_turn, &common);
    expect(common.turns == 2L * ROUNDS, "each turn was counted");
    check(ayre_port_close(common.port), "ayre_port_close");
    puts("all as expected");
    return 0;
}
