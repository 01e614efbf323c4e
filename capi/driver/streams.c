/* Streams, their stages and entries. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static bool about_flow(void *context, const char *call, struct words *words) {
    if (strcmp(call, "emit") != 0) {
        return false;
    }
    struct bytes item = hex(word(words));
    answer(ayre_flow_emit(context, item.at, item.len));
    free(item.at);
    return true;
}

static int run_stage(void *user, ayre_flow *flow, const struct ayre_stage_input *input) {
    struct ayre_stream_name name = {0, 0};
    uint64_t arguments[4] = {0};
    ayre_flow_name(flow, &name);
    ayre_flow_arguments(flow, arguments);
    begin_run(user);
    say("%u %u ", name.peer, name.number);
    for (size_t at = 0; at < 4; at++) {
        say("%llu ", (unsigned long long)arguments[at]);
    }
    switch (input->kind) {
    case AYRE_STAGE_ITEM:
        say("item ");
        say_hex(input->item, input->len);
        break;
    case AYRE_STAGE_CLOSED:
        say("closed");
        break;
    case AYRE_STAGE_CUT:
        say("cut");
        break;
    default:
        say("failed %d %u", AYRE_STREAM_STAGE_FAILED + 2 - input->why, input->at);
    }
    return end_run(user, about_flow, flow);
}

static struct ayre_stream_name name_of(struct words *words) {
    struct ayre_stream_name name = {(ayre_peer)number(words), 0};
    name.number = (uint32_t)number(words);
    return name;
}

static void arguments_of(uint64_t *arguments, struct words *words) {
    for (size_t at = 0; at < 4; at++) {
        arguments[at] = number(words);
    }
}

static void set_entry(ayre_port *port, struct words *words) {
    ayre_peer at = (ayre_peer)number(words);
    struct ayre_stream_name name = name_of(words);
    struct ayre_entry entry = {name_of(words), NULL, {0}, 0, 0};
    struct bytes stage = hex(word(words));
    entry.stage = (char *)stage.at;
    arguments_of(entry.arguments, words);
    entry.goes_on = (int)number(words);
    answer(ayre_set_entry(port, at, name, &entry));
    free(stage.at);
}

static void register_stage(struct driver *driver, struct words *words) {
    void *user = function(driver, (size_t)number(words));
    struct bytes name = hex(word(words));
    int code = ayre_register_stage(driver->port, (char *)name.at, run_stage, user);
    /* Stages and handlers have the ids of their names. */
    answer_number(code < 0 ? code : ayre_handler_id((char *)name.at));
    free(name.at);
}

static bool about_entries(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "stage") == 0) {
        register_stage(driver, words);
    } else if (strcmp(call, "set_entry") == 0) {
        set_entry(port, words);
    } else if (strcmp(call, "clear_entry") == 0) {
        ayre_peer at = (ayre_peer)number(words);
        answer(ayre_clear_entry(port, at, name_of(words)));
    } else if (strcmp(call, "let_set_entries") == 0) {
        answer(ayre_let_peers_set_entries(port, (int)number(words)));
    } else {
        return false;
    }
    return true;
}

static void opened(struct driver *driver, int code, ayre_stream *stream) {
    if (done(code)) {
        say("%zu", keep(&driver->streams, stream));
        end_answer();
    }
}

static void lay(struct driver *driver, struct words *words) {
    size_t count = (size_t)number(words);
    struct ayre_hop *hops = allocate(count * sizeof *hops);
    struct bytes *names = allocate(count * sizeof *names);
    for (size_t at = 0; at < count; at++) {
        hops[at].peer = (ayre_peer)number(words);
        names[at] = hex(word(words));
        hops[at].stage = (char *)names[at].at;
        arguments_of(hops[at].arguments, words);
    }
    ayre_stream *stream = NULL;
    int code = ayre_stream_lay(driver->port, hops, count, &stream);
    opened(driver, code, stream);
    for (size_t at = 0; at < count; at++) {
        free(names[at].at);
    }
    free(names);
    free(hops);
}

static void push(struct driver *driver, bool waits, struct words *words) {
    ayre_stream *stream = kept(&driver->streams, words);
    struct bytes item = hex(word(words));
    answer_or_long((waits ? ayre_stream_push : ayre_stream_try_push)(driver->port, stream, item.at,
                                                             item.len));
    free(item.at);
}

/* The stream of the next word, which ends. */
static ayre_stream *ending(struct driver *driver, struct words *words) {
    size_t at = (size_t)number(words);
    ayre_stream *stream = driver->streams.at[at];
    driver->streams.at[at] = NULL;
    return stream;
}

bool about_streams(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    if (strcmp(call, "open_stream") == 0) {
        ayre_stream *stream = NULL;
        int code = ayre_stream_open(port, (uint32_t)number(words), &stream);
        opened(driver, code, stream);
    } else if (strcmp(call, "stream") == 0) {
        lay(driver, words);
    } else if (strcmp(call, "push") == 0 || strcmp(call, "try_push") == 0) {
        push(driver, *call == 'p', words);
    } else if (strcmp(call, "close_stream") == 0) {
        answer(ayre_stream_finish(port, ending(driver, words)));
    } else if (strcmp(call, "cancel") == 0) {
        answer(ayre_stream_cancel(port, ending(driver, words)));
    } else {
        return about_entries(driver, call, words);
    }
    return true;
}
