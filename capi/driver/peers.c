/* Calls about peers. */
#include "driver.h"

#include <string.h>

size_t peers(struct words *words, ayre_peer *peers) {
    size_t count = (size_t)number(words);
    for (size_t at = 0; at < count; at++) {
        peers[at] = (ayre_peer)number(words);
    }
    return count;
}

static void list_peers(ayre_port *port) {
    ayre_peer peers[1024];
    int64_t count = ayre_port_peers(port, peers, sizeof peers / sizeof *peers);
    if (!done(count)) {
        return;
    }
    for (int64_t at = 0; at < count; at++) {
        say("%u ", peers[at]);
    }
    end_answer();
}

static void count(ayre_port *port, struct words *words) {
    const char *what = word(words);
    if (strcmp(what, "busy") == 0) {
        answer_number(ayre_port_count(port, AYRE_BUSY_MESSAGES - (int)number(words)));
    } else if (strcmp(what, "fault") == 0) {
        answer_number(ayre_port_count(port, AYRE_FAULT_UNKNOWN_KEY + 1 - (int)number(words)));
    } else {
        answer_number(ayre_port_count(port, AYRE_PROTOCOL));
    }
}

bool about_peers(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "listen") == 0) {
        answer(ayre_port_listen(port, word(words)));
    } else if (strcmp(call, "connect") == 0) {
        answer_number(ayre_port_connect(port, word(words)));
    } else if (strcmp(call, "accept") == 0) {
        answer_number(ayre_port_accept(port));
    } else if (strcmp(call, "loopback") == 0) {
        answer_number(ayre_port_connect_loopback(port));
    } else if (strcmp(call, "peers") == 0) {
        list_peers(port);
    } else if (strcmp(call, "mode") == 0) {
        answer_number(ayre_port_mode(port, (ayre_peer)number(words)));
    } else if (strcmp(call, "alive") == 0) {
        answer_number(ayre_port_is_alive(port, (ayre_peer)number(words)));
    } else if (strcmp(call, "disconnect") == 0) {
        answer(ayre_port_disconnect(port, (ayre_peer)number(words)));
    } else if (strcmp(call, "progress") == 0) {
        answer(ayre_progress(port));
    } else if (strcmp(call, "count") == 0) {
        count(port, words);
    } else {
        return false;
    }
    return true;
}
