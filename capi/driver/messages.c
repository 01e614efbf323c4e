/* Notifications, messages and queues. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* The answer to a call that takes something, if it has taken nothing. */
static bool took(int code, size_t len, ayre_peer peer) {
    switch (code) {
    case 1:
        return done(code);
    case 0:
        say("none");
        break;
    case AYRE_TOO_LONG:
        say("long %zu", len);
        break;
    case AYRE_PEER_DIED:
        say("died %u", peer);
        break;
    case AYRE_TIMED_OUT:
        say("late");
        break;
    default:
        return done(code);
    }
    end_answer();
    return false;
}

static void note(ayre_port *port, bool waits, struct words *words) {
    struct ayre_notification note = {0};
    int code = waits ? ayre_wait_notification(port, &note, microseconds(words))
                     : ayre_poll_notification(port, &note);
    if (!took(code, 0, note.source)) {
        return;
    }
    int fault = note.status < 0 ? AYRE_FAULT_UNKNOWN_KEY + 1 - note.status : note.status;
    uint64_t record = (uint64_t)note.source | (uint64_t)note.class_ << 16 |
                      (uint64_t)fault << 20 | (uint64_t)note.operation << 24 |
                      (uint64_t)note.tag << 32;
    say("%u %llu %llu", note.source, (unsigned long long)record, (unsigned long long)note.value);
    end_answer();
}

static void send_message(ayre_port *port, bool waits, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    uint32_t tag = (uint32_t)number(words);
    struct bytes bytes = hex(word(words));
    if (waits) {
        answer(ayre_send_wait(port, peer, tag, bytes.at, bytes.len));
    } else if (by_pieces()) {
        answer(ayre_sendv(port, peer, tag, cut(bytes), PIECES));
    } else {
        answer(ayre_send(port, peer, tag, bytes.at, bytes.len));
    }
    free(bytes.at);
}

static void receive(ayre_port *port, bool waits, struct words *words) {
    size_t room = (size_t)number(words);
    void *into = allocate(room);
    struct ayre_message message = {0};
    int code = waits ? ayre_recv(port, into, room, &message, microseconds(words))
                     : ayre_try_recv(port, into, room, &message);
    if (took(code, message.len, message.source)) {
        say("%u %u %zu ", message.source, message.tag, message.len);
        say_hex(into, message.len);
        end_answer();
    }
    free(into);
}

bool about_messages(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "note") == 0 || strcmp(call, "wait") == 0) {
        note(driver->port, *call == 'w', words);
    } else if (strcmp(call, "send") == 0 || strcmp(call, "post") == 0) {
        send_message(driver->port, *call == 'p', words);
    } else if (strcmp(call, "look") == 0 || strcmp(call, "receive") == 0) {
        receive(driver->port, *call == 'r', words);
    } else {
        return false;
    }
    return true;
}

static void make_queue(struct driver *driver, struct words *words) {
    ayre_queue *queue = NULL;
    if (done(ayre_create_queue(driver->port, (size_t)number(words), &queue))) {
        say("%zu %lld", keep(&driver->queues, queue), (long long)ayre_queue_record_max(queue));
        end_answer();
    }
}

static void accept_queue(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    ayre_remote_queue *queue = NULL;
    if (done(ayre_accept_queue(driver->port, peer, number(words), &queue))) {
        long long longest = ayre_remote_queue_record_max(queue);
        say("%zu %lld", keep(&driver->produced, queue), longest);
        end_answer();
    }
}

static void list_producers(ayre_queue *queue) {
    ayre_peer peers[1024];
    int64_t count = ayre_queue_producers(queue, peers, sizeof peers / sizeof *peers);
    if (!done(count)) {
        return;
    }
    for (int64_t at = 0; at < count; at++) {
        say("%u ", peers[at]);
    }
    end_answer();
}

static void take(struct driver *driver, bool waits, struct words *words) {
    ayre_queue *queue = kept(&driver->queues, words);
    size_t room = (size_t)number(words);
    void *into = allocate(room);
    struct ayre_record record = {0};
    int code = waits ? ayre_dequeue_wait(driver->port, queue, into, room, &record,
                                         microseconds(words))
                     : ayre_dequeue(driver->port, queue, into, room, &record);
    if (took(code, record.len, record.source)) {
        say("%u %zu ", record.source, record.len);
        say_hex(into, record.len);
        end_answer();
    }
    free(into);
}

bool about_queues(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "queue") == 0) {
        make_queue(driver, words);
    } else if (strcmp(call, "producer") == 0) {
        ayre_peer peer = (ayre_peer)number(words);
        ayre_queue *queue = kept(&driver->queues, words);
        answer(ayre_share_queue(driver->port, peer, queue, number(words)));
    } else if (strcmp(call, "produces") == 0) {
        accept_queue(driver, words);
    } else if (strcmp(call, "producers") == 0) {
        list_producers(kept(&driver->queues, words));
    } else if (strcmp(call, "remove") == 0) {
        ayre_queue *queue = kept(&driver->queues, words);
        answer(ayre_remove_producer(driver->port, queue, (ayre_peer)number(words)));
    } else if (strcmp(call, "enqueue") == 0) {
        ayre_remote_queue *queue = kept(&driver->produced, words);
        struct bytes bytes = hex(word(words));
        answer(ayre_enqueue(driver->port, queue, bytes.at, bytes.len));
        free(bytes.at);
    } else if (strcmp(call, "dequeue") == 0 || strcmp(call, "take") == 0) {
        take(driver, *call == 't', words);
    } else {
        return false;
    }
    return true;
}
