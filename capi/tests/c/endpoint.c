/* Two endpoints of one process: messages, memory, event loops, and calls that no correct program
 * makes. */
#include <ayre.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (1 << 20)

static int failures = 0;

static void expect(bool holds, const char *what, int line) {
    if (!holds) {
        fprintf(stderr, "line %d: %s (%s)\n", line, what, ayre_detail());
        failures++;
    }
}
#define EXPECT(holds) expect((holds), #holds, __LINE__)
#define FAILS(call, code) expect((call) == (code), #call, __LINE__)

struct pair {
    ayre_endpoint *near, *far;
    ayre_remote to_far, to_near;
};

static const ayre_pattern any = {AYRE_ANY, 0, UINT64_MAX};

static ayre_remote introduce(ayre_endpoint *to, ayre_endpoint *other) {
    char text[AYRE_ADDRESS_TEXT];
    ayre_remote remote = 0;
    EXPECT(ayre_endpoint_address(other, text, sizeof text) == AYRE_OK);
    EXPECT(strlen(text) == AYRE_ADDRESS_TEXT - 1);
    EXPECT(ayre_endpoint_remote(to, text, &remote) == AYRE_OK && remote != 0);
    return remote;
}

static struct pair open_pair(void) {
    struct pair pair;
    memset(&pair, 0, sizeof pair);
    EXPECT(ayre_endpoint_open(AYRE_LOCAL, &pair.near) == AYRE_OK);
    EXPECT(ayre_endpoint_open(AYRE_LOCAL, &pair.far) == AYRE_OK);
    pair.to_far = introduce(pair.near, pair.far);
    pair.to_near = introduce(pair.far, pair.near);
    return pair;
}

static void send_to_far(struct pair *pair, uint64_t tag, const void *data, size_t len, void *context) {
    int code;
    do {
        code = ayre_endpoint_send(pair->near, pair->to_far, tag, data, len, context);
        EXPECT(ayre_endpoint_poll(pair->far, NULL, 0) == 0);
        EXPECT(ayre_endpoint_poll(pair->near, NULL, 0) == 0);
    } while (code == AYRE_BUSY_CONNECTING || code == AYRE_BUSY_MESSAGES);
    EXPECT(code == AYRE_OK);
}

/* The next completion of one endpoint, while the other makes progress. */
static ayre_completion next(ayre_endpoint *of, ayre_endpoint *other) {
    ayre_completion end;
    memset(&end, 0, sizeof end);
    while (ayre_endpoint_poll(of, &end, 1) == 0) {
        EXPECT(ayre_endpoint_poll(other, NULL, 0) == 0);
    }
    return end;
}

static void messages(struct pair *pair) {
    char hello[] = "hello", into[3], first, second;
    ayre_received seen;
    memset(&seen, 0, sizeof seen);
    ayre_pattern of_near = {pair->to_near, 0x70, 0x0f};
    send_to_far(pair, 0x77, hello, 5, &first);
    ayre_completion end = next(pair->near, pair->far);
    EXPECT(end.context == &first && end.kind == AYRE_SENT && end.status == AYRE_OK);
    while (ayre_endpoint_probe(pair->far, of_near, &seen) == 0) {
    }
    EXPECT(seen.source == pair->to_near && seen.tag == 0x77 && seen.len == 5);
    /* Another tag waits, and is taken back. */
    ayre_pattern other = {AYRE_ANY, 1, 0};
    EXPECT(ayre_endpoint_receive(pair->far, other, into, 3, &second) == AYRE_OK);
    EXPECT(ayre_endpoint_receive(pair->far, of_near, into, 3, &first) == AYRE_OK);
    end = next(pair->far, pair->near);
    EXPECT(end.context == &first && end.kind == AYRE_RECEIVED && end.received.tag == 0x77);
    EXPECT(end.received.len == 5 && end.received.placed == 3 && memcmp(into, "hel", 3) == 0);
    FAILS(ayre_endpoint_cancel(pair->far, &first), 0);
    FAILS(ayre_endpoint_cancel(pair->far, &second), 1);
    end = next(pair->far, pair->near);
    EXPECT(end.context == &second && end.kind == AYRE_CANCELLED);
}

static void long_messages(struct pair *pair) {
    unsigned char *data = (unsigned char *)malloc(LONG), *into = (unsigned char *)malloc(LONG);
    ayre_completion ends[4];
    for (int i = 0; i < LONG; i++) {
        data[i] = (unsigned char)(i % 251);
    }
    EXPECT(ayre_endpoint_receive(pair->far, any, into, LONG, into) == AYRE_OK);
    send_to_far(pair, 5, data, LONG, data);
    ayre_completion end = next(pair->far, pair->near);
    EXPECT(end.context == into && end.received.placed == LONG && memcmp(data, into, LONG) == 0);
    end = next(pair->near, pair->far);
    EXPECT(end.context == data && end.kind == AYRE_SENT);
    /* Several at once, and fewer than have ended. */
    for (int i = 0; i < 4; i++) {
        send_to_far(pair, 6, data, 1, &ends[i]);
        FAILS(ayre_endpoint_receive(pair->far, any, &into[i], 1, &ends[i]), AYRE_OK);
    }
    FAILS(ayre_endpoint_poll(pair->near, ends, 3), 3);
    FAILS(ayre_endpoint_wait(pair->near, &ends[3], 1, -1), 1);
    EXPECT(ends[0].context == &ends[0] && ends[3].context == &ends[3]);
    for (int i = 0; i < 4; i++) {
        end = next(pair->far, pair->near);
        EXPECT(end.context == &ends[i] && end.received.tag == 6);
    }
    FAILS(ayre_endpoint_wait(pair->far, ends, 4, 1000), 0);
    free(data);
    free(into);
}

static void memory(struct pair *pair) {
    char window[64] = "here", read[64] = {0}, write[] = "there";
    ayre_remote_address at = {pair->to_far, 9, 0}, wrong = {pair->to_far, 8, 0};
    EXPECT(ayre_endpoint_expose(pair->far, 9, window, 64, AYRE_READ | AYRE_WRITE) == AYRE_OK);
    FAILS(ayre_endpoint_expose(pair->far, 9, window, 64, AYRE_READ), AYRE_INVALID);
    FAILS(ayre_endpoint_expose(pair->far, 10, window, 64, AYRE_UPDATE), AYRE_INVALID);
    EXPECT(ayre_endpoint_read(pair->near, at, read, 64, read) == AYRE_OK);
    ayre_completion end = next(pair->near, pair->far);
    EXPECT(end.context == read && end.kind == AYRE_READ_DONE && strcmp(read, "here") == 0);
    at.offset = 8;
    EXPECT(ayre_endpoint_write(pair->near, at, write, 6, write) == AYRE_OK);
    end = next(pair->near, pair->far);
    EXPECT(end.context == write && end.kind == AYRE_WRITTEN && end.status == AYRE_OK);
    EXPECT(strcmp(&window[8], "there") == 0);
    EXPECT(ayre_endpoint_write(pair->near, wrong, write, 6, write) == AYRE_OK);
    end = next(pair->near, pair->far);
    EXPECT(end.kind == AYRE_WRITTEN && end.status == AYRE_FAULT_UNKNOWN_KEY);
    at.offset = 60;
    EXPECT(ayre_endpoint_read(pair->near, at, read, 8, read) == AYRE_OK);
    end = next(pair->near, pair->far);
    EXPECT(end.status == AYRE_FAULT_BOUNDS);
    FAILS(ayre_endpoint_withdraw(pair->far, 9), 1);
    FAILS(ayre_endpoint_withdraw(pair->far, 9), 0);
}

/* Messages and memory in pieces. */
static void pieces(struct pair *pair) {
    char window[16] = {0}, one[] = "one", three[] = "three", first[2], second[8] = {0}, other = 0;
    struct iovec from[] = {{one, 3}, {NULL, 0}, {three, 5}}, into[] = {{first, 2}, {second, 8}};
    struct iovec many[5];
    ayre_remote_address at = {pair->to_far, 9, 4};
    EXPECT(ayre_endpoint_receivev(pair->far, any, into, 2, into) == AYRE_OK);
    EXPECT(ayre_endpoint_sendv(pair->near, pair->to_far, 1, from, 3, from) == AYRE_OK);
    ayre_completion end = next(pair->far, pair->near);
    EXPECT(end.context == into && end.received.placed == 8);
    EXPECT(memcmp(first, "on", 2) == 0 && memcmp(second, "ethree", 6) == 0);
    end = next(pair->near, pair->far);
    EXPECT(end.context == from && end.kind == AYRE_SENT);
    EXPECT(ayre_endpoint_expose(pair->far, 9, window, 16, AYRE_READ | AYRE_WRITE) == AYRE_OK);
    EXPECT(ayre_endpoint_writev(pair->near, at, from, 3, NULL) == AYRE_OK);
    end = next(pair->near, pair->far);
    EXPECT(end.kind == AYRE_WRITTEN && memcmp(&window[4], "onethree", 8) == 0);
    memset(second, 0, sizeof second);
    EXPECT(ayre_endpoint_readv(pair->near, at, into, 2, NULL) == AYRE_OK);
    end = next(pair->near, pair->far);
    EXPECT(end.kind == AYRE_READ_DONE && memcmp(second, "ethree", 6) == 0);
    FAILS(ayre_endpoint_withdraw(pair->far, 9), 1);
    for (int i = 0; i < 5; i++) {
        many[i].iov_base = &other;
        many[i].iov_len = 1;
    }
    FAILS(ayre_endpoint_sendv(pair->near, pair->to_far, 1, many, 5, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_writev(pair->near, at, NULL, 1, NULL), AYRE_INVALID);
    many[0].iov_base = NULL;
    FAILS(ayre_endpoint_receivev(pair->near, any, many, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_readv(pair->near, at, many, 1, NULL), AYRE_INVALID);
}

static void update(struct pair *pair, ayre_endpoint_atomic what, int status) {
    ayre_remote_address at = {pair->to_far, 9, 4};
    EXPECT(ayre_endpoint_update(pair->near, at, &what, pair) == AYRE_OK);
    ayre_completion end = next(pair->near, pair->far);
    EXPECT(end.context == pair && end.kind == AYRE_UPDATED && end.status == status);
}

static void atomics(struct pair *pair) {
    char window[32] = {0};
    double sums[2] = {1.5, 2}, before[2] = {0}, swap[2] = {9, 9}, is[2] = {1.5, 7}, now[2];
    ayre_endpoint_atomic what = {AYRE_COMBINE_SUM, AYRE_F64, 2, sums, NULL, before};
    ayre_remote_address at = {pair->to_far, 9, 4};
    EXPECT(ayre_endpoint_expose(pair->far, 9, window, 32, AYRE_READ | AYRE_WRITE) == AYRE_OK);
    update(pair, what, AYRE_OK);
    EXPECT(before[0] == 0);
    memcpy(now, &window[4], sizeof now);
    EXPECT(now[0] == 1.5 && now[1] == 2);
    what.combine = AYRE_COMBINE_CSWAP;
    what.operands = swap;
    what.comparands = is;
    update(pair, what, AYRE_OK);
    EXPECT(before[0] == 1.5 && before[1] == 2);
    what.combine = AYRE_COMBINE_READ;
    update(pair, what, AYRE_OK);
    EXPECT(before[0] == 9 && before[1] == 2);
    what.before = NULL;
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_FAULT_MALFORMED);
    what.combine = AYRE_COMBINE_BOR; /* Not of doubles. */
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_FAULT_MALFORMED);
    what.combine = AYRE_COMBINE_SUM;
    what.count = 1000;
    what.operands = window; /* Not read: it is too long. */
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_FAULT_TOO_LONG);
    what.count = SIZE_MAX;
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_INVALID);
    what.count = 1;
    what.operands = NULL;
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_INVALID);
    what.number = 99;
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_INVALID);
    what.combine = 999;
    FAILS(ayre_endpoint_update(pair->near, at, &what, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_update(pair->near, at, NULL, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_update(NULL, at, &what, NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_endpoint_withdraw(pair->far, 9), 1);
    ayre_endpoint_atomic gone = {AYRE_COMBINE_MAX, AYRE_F64, 2, sums, NULL, NULL};
    update(pair, gone, AYRE_FAULT_UNKNOWN_KEY);
}

static bool is_readable(ayre_endpoint *endpoint, int timeout) {
    struct pollfd fd = {ayre_endpoint_fd(endpoint), POLLIN, 0};
    return poll(&fd, 1, timeout) == 1;
}

static void event_loop(struct pair *pair) {
    char byte = 7, into = 0;
    ayre_completion end;
    EXPECT(ayre_endpoint_receive(pair->far, any, &into, 1, &into) == AYRE_OK);
    while (ayre_endpoint_rest(pair->far) == 0) {
        EXPECT(ayre_endpoint_poll(pair->far, &end, 1) == 0);
    }
    FAILS(ayre_endpoint_rest(pair->far), 1);
    EXPECT(!is_readable(pair->far, 0));
    EXPECT(ayre_endpoint_send(pair->near, pair->to_far, 1, &byte, 1, NULL) == AYRE_OK);
    EXPECT(is_readable(pair->far, -1));
    FAILS(ayre_endpoint_wake(pair->far), AYRE_OK);
    end = next(pair->far, pair->near);
    EXPECT(end.context == &into && into == 7);
    end = next(pair->near, pair->far);
    EXPECT(end.context == NULL && end.kind == AYRE_SENT);
    /* What has ended and was not taken keeps it awake. */
    EXPECT(ayre_endpoint_send(pair->near, pair->to_far, 1, &byte, 1, NULL) == AYRE_OK);
    FAILS(ayre_endpoint_rest(pair->near), 0);
    FAILS(ayre_endpoint_poll(pair->near, &end, 1), 1);
    EXPECT(ayre_endpoint_receive(pair->far, any, &into, 1, &into) == AYRE_OK);
    end = next(pair->far, pair->near);
}

static void wrong_calls(struct pair *pair) {
    char text[AYRE_ADDRESS_TEXT] = "no address", byte = 0;
    ayre_remote remote;
    ayre_port *port = NULL;
    ayre_completion end;
    ayre_pattern odd = {77, 0, 0};
    ayre_remote_address nowhere = {77, 0, 0};
    FAILS(ayre_endpoint_open(8, &pair->near), AYRE_INVALID);
    FAILS(ayre_endpoint_open(0, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_poll(NULL, &end, 1), AYRE_BAD_HANDLE);
    FAILS(ayre_endpoint_fd(NULL), AYRE_BAD_HANDLE);
    FAILS(ayre_endpoint_close(NULL), AYRE_OK);
    FAILS(ayre_endpoint_address(pair->far, text, 128), AYRE_INVALID);
    FAILS(ayre_endpoint_remote(pair->far, text, &remote), AYRE_INVALID);
    FAILS(ayre_endpoint_remote(pair->far, NULL, &remote), AYRE_INVALID);
    FAILS(ayre_endpoint_remote(pair->far, text, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_send(pair->far, 0, 0, &byte, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_send(pair->far, UINT64_MAX, 0, &byte, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_send(pair->far, 9999 << 16, 0, &byte, 1, NULL), AYRE_FAULT_FOREIGN_HANDLE);
    FAILS(ayre_endpoint_send(pair->far, pair->to_near, 0, NULL, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_send(pair->far, pair->to_near, 0, &byte, SIZE_MAX, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_receive(pair->far, any, NULL, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_receive(pair->far, odd, &byte, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_write(pair->far, nowhere, &byte, 1, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_read(pair->far, nowhere, NULL, 0, NULL), AYRE_INVALID);
    FAILS(ayre_endpoint_wait(pair->far, &end, 0, 0), AYRE_INVALID);
    FAILS(ayre_endpoint_expose(pair->far, 1, NULL, 8, AYRE_READ), AYRE_INVALID);
    EXPECT(ayre_port_open(NULL, &port) == AYRE_OK);
    FAILS(ayre_endpoint_poll((ayre_endpoint *)port, &end, 1), AYRE_BAD_HANDLE);
    EXPECT(ayre_port_close(port) == AYRE_OK);
}

/* Operations under way end with a fault when the other endpoint has gone. */
static void a_death(struct pair *pair) {
    static unsigned char data[LONG];
    ayre_completion end;
    ayre_endpoint *gone = pair->far;
    send_to_far(pair, 1, data, LONG, data);
    EXPECT(ayre_endpoint_close(pair->far) == AYRE_OK);
    FAILS(ayre_endpoint_poll(gone, &end, 1), AYRE_BAD_HANDLE);
    FAILS(ayre_endpoint_wait(pair->near, &end, 1, -1), 1);
    EXPECT(end.context == data && end.status == AYRE_FAULT_PEER_DEAD);
    /* A buffer that is posted when its endpoint closes. */
    EXPECT(ayre_endpoint_receive(pair->near, any, data, LONG, NULL) == AYRE_OK);
    EXPECT(ayre_endpoint_close(pair->near) == AYRE_OK);
}

int main(void) {
    struct pair pair = open_pair();
    ayre_endpoint *near = pair.near;
    messages(&pair);
    long_messages(&pair);
    memory(&pair);
    pieces(&pair);
    atomics(&pair);
    event_loop(&pair);
    wrong_calls(&pair);
    EXPECT(pair.near == NULL); /* no endpoint where opening has failed */
    pair.near = near;
    a_death(&pair);
    if (failures == 0) {
        puts("all as expected");
    }
    return failures == 0 ? 0 : 1;
}
