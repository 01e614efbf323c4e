/* Groups whose members come and go. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static void say_peers(const ayre_peer *peers, size_t count) {
    say(" %zu", count);
    for (size_t at = 0; at < count; at++) {
        say(" %u", peers[at]);
    }
}

static void watch(void *user, const struct ayre_change *change) {
    begin_run(user);
    if (change->is_ended) {
        say("ended");
    } else {
        say("view %llu %llu", (unsigned long long)change->number,
            (unsigned long long)change->ticket);
        say_peers(change->members, change->members_count);
        say_peers(change->joined, change->joined_count);
    }
    end_run(user, NULL, NULL);
}

static void become_member(struct driver *driver, bool founds, struct words *words) {
    void *user = function(driver, (size_t)number(words));
    struct bytes text = hex(word(words));
    const char *name = (char *)text.at;
    ayre_peer door = founds ? 0 : (ayre_peer)number(words);
    struct ayre_multicast_options bounds;
    bounds.window = (uint16_t)limit(words, 64);
    bounds.requests = (uint16_t)limit(words, 8);
    ayre_membership *made = NULL;
    int code =
        founds ? ayre_multicast_found(driver->port, name, &bounds, watch, user, &made)
               : ayre_multicast_join(driver->port, name, door, &bounds, watch, user, &made);
    if (done(code)) {
        say("%zu", keep(&driver->memberships, made));
        end_answer();
    }
    free(text.at);
}

static void send_to_group(struct driver *driver, bool waits, struct words *words) {
    ayre_membership *to = kept(&driver->memberships, words);
    uint32_t handler = (uint32_t)number(words);
    struct message sent = message(words);
    answer_or_long((waits ? ayre_multicast_send : ayre_multicast_try_send)(
        driver->port, to, handler, sent.arguments, sent.count, sent.payload.at,
        sent.payload.len));
    free(sent.payload.at);
}

static void send_through(struct driver *driver, struct words *words) {
    struct bytes name = hex(word(words));
    ayre_peer door = (ayre_peer)number(words);
    uint32_t handler = (uint32_t)number(words);
    struct message sent = message(words);
    answer_or_long(ayre_multicast_send_through(driver->port, (char *)name.at, door, handler,
                                       sent.arguments, sent.count, sent.payload.at,
                                       sent.payload.len));
    free(sent.payload.at);
    free(name.at);
}

static void list_members(struct driver *driver, struct words *words) {
    ayre_peer members[1024];
    ayre_membership *of = kept(&driver->memberships, words);
    int64_t count = ayre_multicast_members(driver->port, of, members, 1024);
    if (!done(count)) {
        return;
    }
    for (int64_t at = 0; at < count; at++) {
        say("%u ", members[at]);
    }
    end_answer();
}

void cast(struct driver *driver, ayre_token *token, struct words *words) {
    ayre_membership *to = kept(&driver->memberships, words);
    uint32_t handler = (uint32_t)number(words);
    struct message sent = message(words);
    answer_or_long(ayre_token_multicast(token, to, handler, sent.arguments, sent.count, sent.payload.at,
                                sent.payload.len));
    free(sent.payload.at);
}

bool about_members(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "found") == 0 || strcmp(call, "join") == 0) {
        become_member(driver, *call == 'f', words);
    } else if (strcmp(call, "multicast") == 0 || strcmp(call, "try_multicast") == 0) {
        send_to_group(driver, *call == 'm', words);
    } else if (strcmp(call, "multicast_through") == 0) {
        send_through(driver, words);
    } else if (strcmp(call, "leave_group") == 0) {
        answer(ayre_multicast_leave(driver->port, kept(&driver->memberships, words)));
    } else if (strcmp(call, "members") == 0) {
        list_members(driver, words);
    } else {
        return false;
    }
    return true;
}
