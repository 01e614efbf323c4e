/* Calls that no correct program makes: each is an error with a text, and harms nothing. */
#include "misuse.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

void expect(bool holds, const char *what, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: %s (%s)\n", file, line, what, ayre_detail());
        failures++;
    }
}

static struct all open_all(void) {
    struct all all = {0};
    EXPECT(ayre_port_open(NULL, &all.port) == AYRE_OK);
    int own = ayre_port_connect_loopback(all.port);
    EXPECT(own >= 0);
    all.own = (ayre_peer)own;
    ayre_range range = {0, 64};
    EXPECT(ayre_alloc(all.port, 64, 0, &all.region) == AYRE_OK);
    EXPECT(ayre_share(all.port, all.own, all.region, range, AYRE_ALL_RIGHTS, 1, &all.grant) ==
           AYRE_OK);
    EXPECT(ayre_accept_region(all.port, all.own, 1, &all.remote) == AYRE_OK);
    EXPECT(ayre_create_queue(all.port, 256, &all.queue) == AYRE_OK);
    EXPECT(ayre_share_queue(all.port, all.own, all.queue, 1) == AYRE_OK);
    EXPECT(ayre_accept_queue(all.port, all.own, 1, &all.producer) == AYRE_OK);
    return all;
}

static void close_all(struct all *all) {
    EXPECT(ayre_remote_queue_close(all->producer) == AYRE_OK);
    EXPECT(ayre_queue_close(all->queue) == AYRE_OK);
    EXPECT(ayre_remote_region_close(all->remote) == AYRE_OK);
    EXPECT(ayre_grant_close(all->grant) == AYRE_OK);
    EXPECT(ayre_region_close(all->region) == AYRE_OK);
    EXPECT(ayre_port_close(all->port) == AYRE_OK);
}

static void null_handles(void) {
    char bytes[8] = {0};
    ayre_notification note;
    ayre_message message;
    ayre_record record;
    FAILS(ayre_port_rank(NULL), AYRE_BAD_HANDLE);
    EXPECT(strstr(ayre_detail(), "ayre_port") != NULL);
    FAILS(ayre_progress(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_port_fd(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_port_rest(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_port_wake(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_barrier(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_port_leave(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_port_peers(NULL, NULL, 0), AYRE_BAD_HANDLE);
    FAILS(ayre_poll_notification(NULL, &note), AYRE_BAD_HANDLE);
    FAILS(ayre_send(NULL, 0, 0, bytes, 8), AYRE_BAD_HANDLE);
    FAILS(ayre_try_recv(NULL, bytes, 8, &message), AYRE_BAD_HANDLE);
    FAILS(ayre_put(NULL, NULL, 0, bytes, 8, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_dequeue(NULL, NULL, bytes, 8, &record), AYRE_BAD_HANDLE);
    FAILS(ayre_remote_region_len(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_region_len(NULL), AYRE_BAD_HANDLE);
    EXPECT(ayre_region_address(NULL) == NULL);
    /* As with free: nothing to close is no error. */
    FAILS(ayre_port_close(NULL), AYRE_OK);
    FAILS(ayre_region_close(NULL), AYRE_OK);
}

static void null_arguments(struct all *all) {
    char bytes[8] = {0};
    ayre_fetched fetched;
    ayre_atomic_op add = {8, AYRE_ADD, 1, 0};
    struct iovec nowhere = {NULL, 8};
    FAILS(ayre_port_open(NULL, NULL), AYRE_INVALID);
    FAILS(ayre_alloc(all->port, 64, 0, NULL), AYRE_INVALID);
    FAILS(ayre_put(all->port, all->remote, 0, NULL, 8, NULL), AYRE_INVALID);
    FAILS(ayre_get(all->port, all->remote, 0, NULL, 8, NULL), AYRE_INVALID);
    FAILS(ayre_put_part(all->port, all->remote, 0, NULL, NULL), AYRE_INVALID);
    FAILS(ayre_put_rows(all->port, all->remote, 0, bytes, 8, NULL, NULL), AYRE_INVALID);
    FAILS(ayre_putv(all->port, all->remote, 0, NULL, 1, NULL), AYRE_INVALID);
    FAILS(ayre_getv(all->port, all->remote, 0, &nowhere, 1, NULL), AYRE_INVALID);
    FAILS(ayre_sendv(all->port, all->own, 0, &nowhere, 1), AYRE_INVALID);
    FAILS(ayre_fetch(all->port, all->remote, 0, NULL, NULL, &fetched), AYRE_INVALID);
    FAILS(ayre_poll_notification(all->port, NULL), AYRE_INVALID);
    FAILS(ayre_try_recv(all->port, NULL, 0, NULL), AYRE_INVALID);
    FAILS(ayre_port_listen(all->port, NULL), AYRE_INVALID);
    FAILS(ayre_post(all->port, all->own, NULL, 1), AYRE_INVALID);
    FAILS(ayre_lock_try(all->port, NULL, AYRE_SHARED), AYRE_INVALID);
    FAILS(ayre_config_init(NULL, sizeof(ayre_config)), AYRE_INVALID);
    /* A result that nobody wants. */
    FAILS(ayre_fetch(all->port, all->remote, 0, &add, NULL, NULL), AYRE_OK);
    FAILS(ayre_fetch_add(all->port, all->remote, 0, 1, NULL), AYRE_OK);
}

static void wrong_values(struct all *all) {
    unsigned char bytes[128] = {0};
    ayre_fetched fetched;
    ayre_config config;
    ayre_port *port = NULL;
    ayre_atomic_op no_width = {3, AYRE_ADD, 1, 0};
    ayre_atomic_op no_op = {8, 99, 1, 0};
    ayre_part outside = {all->region, 60, 8};
    ayre_part around = {all->region, SIZE_MAX, 8};
    ayre_rows huge = {1, UINT64_MAX, UINT64_MAX, 1};
    ayre_operation odd = {0};
    ayre_lock lock = {all->remote, 8, 4, 77};
    /* The last one overlaps the first one. */
    struct iovec pieces[] = {{bytes, 60}, {&bytes[64], 1}, {&bytes[59], 4}};
    struct iovec endless[] = {{bytes, 1}, {&bytes[1], SIZE_MAX}}, long_ones[9];
    for (int i = 0; i < 9; i++) {
        long_ones[i] = pieces[0];
        long_ones[i].iov_len = 128;
    }
    FAILS(ayre_fetch(all->port, all->remote, 0, &no_width, NULL, &fetched), AYRE_INVALID);
    FAILS(ayre_region_atomic(all->region, 0, &no_op, &fetched), AYRE_INVALID);
    no_op.op = AYRE_ADD;
    FAILS(ayre_region_atomic(all->region, 60, &no_op, &fetched), AYRE_INVALID);
    FAILS(ayre_region_atomic(all->region, 4, &no_op, &fetched), AYRE_INVALID);
    FAILS(ayre_put(all->port, all->remote, 60, bytes, 8, NULL), AYRE_FAULT_BOUNDS);
    FAILS(ayre_put(all->port, all->remote, UINT64_MAX, bytes, 8, NULL), AYRE_FAULT_BOUNDS);
    FAILS(ayre_put(all->port, all->remote, 0, bytes, SIZE_MAX, NULL), AYRE_INVALID);
    FAILS(ayre_putv(all->port, all->remote, 0, pieces, 3, NULL), AYRE_FAULT_BOUNDS);
    FAILS(ayre_getv(all->port, all->remote, 0, pieces, 3, NULL), AYRE_INVALID);
    FAILS(ayre_putv(all->port, all->remote, 0, endless, 2, NULL), AYRE_INVALID);
    FAILS(ayre_getv(all->port, all->remote, 0, endless, 2, NULL), AYRE_INVALID);
    FAILS(ayre_putv(all->port, all->remote, 0, pieces, SIZE_MAX, NULL), AYRE_INVALID);
    FAILS(ayre_sendv(all->port, all->own, 0, long_ones, 9), AYRE_FAULT_TOO_LONG);
    FAILS(ayre_sendv(all->port, all->own, 0, NULL, 0), AYRE_FAULT_MALFORMED);
    FAILS(ayre_put_part(all->port, all->remote, 0, &outside, NULL), AYRE_INVALID);
    FAILS(ayre_put_part(all->port, all->remote, 0, &around, NULL), AYRE_INVALID);
    FAILS(ayre_put_rows(all->port, all->remote, 0, bytes, 8, &huge, NULL), AYRE_FAULT_BOUNDS);
    FAILS(ayre_put_word(all->port, all->remote, 4, 1, NULL), AYRE_FAULT_ALIGNMENT);
    FAILS(ayre_post(all->port, all->own, &odd, 1), AYRE_INVALID);
    FAILS(ayre_lock_try(all->port, &lock, AYRE_SHARED), AYRE_INVALID);
    FAILS(ayre_epoch_step(all->port, all->remote, 0, 9, &fetched), AYRE_INVALID);
    FAILS(ayre_send(all->port, 77, 0, bytes, 8), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_send(all->port, all->own, 0, bytes, 0), AYRE_FAULT_MALFORMED);
    FAILS(ayre_alloc(all->port, 64, 8, &all->region), AYRE_INVALID);
    FAILS(ayre_config_init(&config, 1), AYRE_INVALID);
    ayre_config_init(&config, sizeof config);
    config.mode = 7;
    FAILS(ayre_port_open(&config, &port), AYRE_INVALID);
    EXPECT(port == NULL);
    config.mode = AYRE_DIRECT;
    config.number = 70000;
    FAILS(ayre_port_open(&config, &port), AYRE_INVALID);
    FAILS(ayre_port_listen(all->port, "/no/such/folder/socket"), AYRE_SYSTEM);
    EXPECT(ayre_errno() != 0 && strlen(ayre_detail()) > 0);
    FAILS(ayre_port_connect_net(all->port, "nowhere"), AYRE_INVALID);
}

/* Rests that begin twice, and wakes of a port that does not rest. */
static void odd_rests(struct all *all) {
    unsigned char byte = 1;
    ayre_message message;
    EXPECT(ayre_port_fd(all->port) >= 0);
    FAILS(ayre_port_wake(all->port), AYRE_OK);
    while (ayre_port_rest(all->port) == 0) {
    }
    FAILS(ayre_port_rest(all->port), 1);
    FAILS(ayre_send(all->port, all->own, 0, &byte, 1), AYRE_OK);
    FAILS(ayre_port_rest(all->port), 0);
    FAILS(ayre_try_recv(all->port, &byte, 1, &message), 1);
    FAILS(ayre_port_wake(all->port), AYRE_OK);
}

/* Handles that were closed, even those that were closed long ago, and those of another kind. */
static void stale_handles(struct all *all) {
    ayre_region *first = NULL;
    EXPECT(ayre_alloc(all->port, 8, 0, &first) == AYRE_OK);
    EXPECT(ayre_region_close(first) == AYRE_OK);
    FAILS(ayre_region_close(first), AYRE_BAD_HANDLE);
    FAILS(ayre_region_len(first), AYRE_BAD_HANDLE);
    for (int round = 0; round < 50; round++) {
        ayre_region *other = NULL;
        EXPECT(ayre_alloc(all->port, 8, 0, &other) == AYRE_OK);
        EXPECT(other != first);
        FAILS(ayre_region_len(first), AYRE_BAD_HANDLE);
        EXPECT(ayre_region_close(other) == AYRE_OK);
    }
    FAILS(ayre_region_len((const ayre_region *)all->remote), AYRE_BAD_HANDLE);
    FAILS(ayre_progress((ayre_port *)all->queue), AYRE_BAD_HANDLE);
    FAILS(ayre_region_len((const ayre_region *)((char *)all->region + 1)), AYRE_BAD_HANDLE);
}

/* Handles of another port. */
static void foreign_handles(struct all *all, struct all *other) {
    char bytes[8] = {0};
    ayre_record record;
    FAILS(ayre_put(all->port, other->remote, 0, bytes, 8, NULL), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_get(all->port, other->remote, 0, bytes, 8, NULL), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_enqueue(all->port, other->producer, bytes, 8), AYRE_FAULT_FOREIGN_HANDLE);
    EXPECT(ayre_dequeue(all->port, other->queue, bytes, 8, &record) <= 0);
}

static void texts(void) {
    for (int code = 0; code > -128; code--) {
        EXPECT(strlen(ayre_strerror(code)) > 0);
    }
    EXPECT(strcmp(ayre_strerror(AYRE_BUSY_QUEUE), ayre_strerror(AYRE_BUSY_MESSAGES)) != 0);
    EXPECT(strcmp(ayre_strerror(12345), ayre_strerror(-1000)) == 0);
}

/* Regions that are opened and closed leave nothing behind. */
static void many_regions(struct all *all, int rounds) {
    for (int round = 0; round < rounds; round++) {
        ayre_region *region = NULL;
        if (ayre_alloc(all->port, 64, 0, &region) != AYRE_OK) {
            fprintf(stderr, "region %d: %s\n", round, ayre_detail());
            failures++;
            return;
        }
        EXPECT(ayre_deregister(all->port, region) == AYRE_OK);
        EXPECT(ayre_region_close(region) == AYRE_OK);
    }
}

int main(int count, char **arguments) {
    struct all all = open_all();
    struct all other = open_all();
    null_handles();
    null_arguments(&all);
    wrong_values(&all);
    odd_rests(&all);
    stale_handles(&all);
    foreign_handles(&all, &other);
    texts();
    messengers(&all, &other);
    many_regions(&all, count > 1 ? atoi(arguments[1]) : 1000);
    close_all(&other);
    close_all(&all);
    if (failures == 0) {
        puts("all as expected");
    }
    return failures == 0 ? 0 : 1;
}
