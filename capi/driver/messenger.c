/* Active messages, by channels and without, and what runs meanwhile: the suite's functions. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of the suite, by the number that travels. */
struct function {
    struct driver *driver;
    size_t number;
};

void *function(struct driver *driver, size_t number) {
    struct function *function = allocate(sizeof *function);
    function->driver = driver;
    function->number = number;
    keep(&driver->functions, function);
    return function;
}

void begin_run(void *user) {
    const struct function *function = user;
    say("run %zu ", function->number);
}

int end_run(void *user, bool (*make)(void *context, const char *call, struct words *words),
            void *context) {
    struct driver *driver = ((const struct function *)user)->driver;
    char *line = NULL;
    size_t room = 0;
    int panicked = -1;
    end_answer();
    while (panicked < 0) {
        if (getline(&line, &room, stdin) <= 0) {
            stop("the suite ends what it runs");
        }
        struct words words = {line};
        const char *call = word(&words);
        if (strcmp(call, "ran") == 0 || strcmp(call, "panicked") == 0) {
            panicked = *call == 'p';
        } else if (!about_memory(driver, call, &words) &&
                   (make == NULL || !make(context, call, &words))) {
            stop(call);
        }
    }
    free(line);
    return panicked;
}

struct message message(struct words *words) {
    struct message message = {0};
    message.count = (size_t)number(words);
    for (size_t at = 0; at < message.count; at++) {
        message.arguments[at] = number(words);
    }
    message.payload = hex(word(words));
    return message;
}

/* A handler that runs. */
struct running {
    struct driver *driver;
    ayre_token *token;
};

static bool about_token(void *context, const char *call, struct words *words) {
    const struct running *running = context;
    ayre_token *token = running->token;
    if (strcmp(call, "cast") == 0) {
        cast(running->driver, token, words);
        return true;
    }
    if (strcmp(call, "post") != 0) {
        return false;
    }
    ayre_peer to = (ayre_peer)number(words);
    uint8_t by = (uint8_t)number(words);
    uint32_t handler = (uint32_t)number(words);
    struct message sent = message(words);
    const unsigned char *payload = sent.payload.at;
    size_t len = sent.payload.len;
    if (by != 0) {
        answer(ayre_token_send_by(token, by, to, handler, sent.arguments, sent.count, payload,
                                  len));
    } else if (to == ayre_token_source(token)) {
        answer(ayre_token_reply(token, handler, sent.arguments, sent.count, payload, len));
    } else {
        answer(ayre_token_send(token, to, handler, sent.arguments, sent.count, payload, len));
    }
    free(sent.payload.at);
    return true;
}

static int run_handler(void *user, ayre_token *token, const uint64_t *arguments, size_t count,
                       const void *payload, size_t len) {
    begin_run(user);
    say("%d %zu ", ayre_token_source(token), count);
    for (size_t at = 0; at < count; at++) {
        say("%llu ", (unsigned long long)arguments[at]);
    }
    say_hex(payload, len);
    struct running running = {((const struct function *)user)->driver, token};
    return end_run(user, about_token, &running);
}

static void start(ayre_port *port, struct words *words) {
    struct ayre_messenger_options options;
    options.overflow = limit(words, 0);
    options.landing = limit(words, 0);
    options.longest = limit(words, 0);
    answer(ayre_messenger_start(port, &options));
}

static void register_handler(struct driver *driver, struct words *words) {
    void *user = function(driver, (size_t)number(words));
    size_t arguments = (size_t)number(words);
    char *name = word(words);
    if (*name != 'x') {
        uint32_t id = (uint32_t)strtoull(name, NULL, 10);
        int code = ayre_register_static_handler(driver->port, id, arguments, run_handler, user);
        answer_number(code < 0 ? code : (int64_t)id);
        return;
    }
    struct bytes text = hex(name);
    answer_number(ayre_register_handler(driver->port, (char *)text.at, arguments, run_handler,
                                        user));
    free(text.at);
}

static void call_handler(ayre_port *port, bool waits, struct words *words) {
    ayre_peer to = (ayre_peer)number(words);
    uint8_t by = (uint8_t)number(words);
    uint32_t handler = (uint32_t)number(words);
    struct message sent = message(words);
    const unsigned char *payload = sent.payload.at;
    size_t len = sent.payload.len;
    if (by == 0) {
        answer((waits ? ayre_call : ayre_try_call)(port, to, handler, sent.arguments, sent.count,
                                                   payload, len));
    } else {
        answer((waits ? ayre_channel_call : ayre_channel_try_call)(
            port, by, to, handler, sent.arguments, sent.count, payload, len));
    }
    free(sent.payload.at);
}

static void say_failures(ayre_port *port) {
    struct ayre_dropped_call failures[7];
    int count = 0;
    done(AYRE_OK);
    do {
        count = ayre_failures(port, failures, 7);
        for (int at = 0; at < count; at++) {
            const struct ayre_dropped_call *one = &failures[at];
            say("%u %u %d %d ", one->peer, one->handler, one->cause, one->is_ours);
        }
    } while (count == 7);
    end_answer();
}

static bool about_handlers(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "messenger") == 0) {
        start(port, words);
    } else if (strcmp(call, "into_port") == 0) {
        answer(ayre_messenger_stop(port));
    } else if (strcmp(call, "handler") == 0) {
        register_handler(driver, words);
    } else if (strcmp(call, "announced") == 0) {
        ayre_peer peer = (ayre_peer)number(words);
        uint32_t handler = (uint32_t)number(words);
        answer_number(ayre_is_announced(port, peer, handler, (size_t)number(words)));
    } else if (strcmp(call, "forget") == 0) {
        answer(ayre_port_disconnect(port, (ayre_peer)number(words)));
    } else {
        return false;
    }
    return true;
}

bool about_messengers(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "call") == 0 || strcmp(call, "try_call") == 0) {
        call_handler(port, *call == 'c', words);
    } else if (strcmp(call, "poll") == 0) {
        answer_number(ayre_poll(port));
    } else if (strcmp(call, "serve") == 0) {
        answer_number(ayre_wait(port, microseconds(words)));
    } else if (strcmp(call, "drain") == 0) {
        answer(ayre_messenger_flush(port));
    } else if (strcmp(call, "sync") == 0) {
        answer(ayre_sync(port));
    } else if (strcmp(call, "failures") == 0) {
        say_failures(port);
    } else {
        return about_handlers(driver, call, words);
    }
    return true;
}

static void open_channel(ayre_port *port, struct words *words) {
    uint8_t channel = (uint8_t)number(words);
    struct ayre_channel_options options;
    options.priority = (uint8_t)limit(words, 0);
    options.weight = (uint8_t)limit(words, 1);
    options.room = limit(words, 1 << 20);
    answer(ayre_channel_open(port, channel, &options));
}

bool about_channels(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "channel") == 0) {
        open_channel(port, words);
    } else if (strcmp(call, "hold_channel") == 0) {
        answer(ayre_channel_hold(port, (uint8_t)number(words)));
    } else if (strcmp(call, "release_channel") == 0) {
        answer(ayre_channel_release(port, (uint8_t)number(words)));
    } else if (strcmp(call, "poll_only") == 0) {
        answer_number(ayre_channel_poll(port, (uint8_t)number(words)));
    } else if (strcmp(call, "backlog") == 0) {
        ayre_peer peer = (ayre_peer)number(words);
        answer_number(ayre_channel_backlog(port, (uint8_t)number(words), peer));
    } else {
        return false;
    }
    return true;
}
