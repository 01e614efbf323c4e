/* Groups and their collectives. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a value of each type, by its number. */
static const size_t SIZES[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

/* A request as it has come, and the memory that it is about. */
struct asked {
    struct ayre_collective what;
    struct bytes read;
    struct bytes changed;
};

static struct asked asked(struct words *words) {
    struct asked asked;
    memset(&asked, 0, sizeof asked);
    asked.what.collective = (uint32_t)number(words);
    asked.what.root = (uint32_t)number(words);
    asked.what.number = (uint32_t)number(words);
    asked.what.combine = (uint32_t)number(words);
    size_t size = SIZES[asked.what.number];
    asked.read = hex(word(words));
    asked.changed = hex(word(words));
    asked.what.from = asked.read.at;
    asked.what.from_count = asked.read.len / size;
    asked.what.into = asked.changed.at;
    asked.what.into_count = asked.changed.len / size;
    return asked;
}

static void say_changed(const struct asked *asked) {
    say_hex(asked->changed.at, asked->changed.len);
    end_answer();
}

static void forget(struct asked *asked) {
    free(asked->read.at);
    free(asked->changed.at);
}

/* Lengths of each member, if they differ. */
static size_t *lens(struct words *words) {
    size_t count = limit(words, SIZE_MAX);
    if (count == SIZE_MAX) {
        return NULL;
    }
    size_t *lens = allocate(count * sizeof *lens);
    for (size_t at = 0; at < count; at++) {
        lens[at] = (size_t)number(words);
    }
    return lens;
}

/* Makes the call that a program would make for it. */
static int collect(ayre_port *port, ayre_group *group, const struct ayre_collective *what) {
    size_t members = (size_t)ayre_group_members(port, group, NULL, 0);
    bool is_plain = what->lens == NULL && what->out_lens == NULL && what->in_lens == NULL;
    if (!is_plain) {
        return ayre_collective_do(port, group, what);
    }
    switch (what->collective) {
    case AYRE_BARRIER:
        return ayre_group_barrier(port, group);
    case AYRE_BROADCAST:
        return ayre_broadcast(port, group, what->root, what->into, what->into_count, what->number);
    case AYRE_REDUCE:
        return ayre_reduce(port, group, what->root, what->into, what->into_count, what->number,
                           what->combine);
    case AYRE_ALLREDUCE:
        return ayre_allreduce(port, group, what->into, what->into_count, what->number,
                              what->combine);
    case AYRE_SCAN:
        return ayre_scan(port, group, what->into, what->into_count, what->number, what->combine);
    case AYRE_REDUCE_SCATTER:
        return ayre_reduce_scatter(port, group, what->into, what->into_count, what->number,
                                   what->combine);
    default:
        break;
    }
    /* These take equal parts: what is not equal is for the other call. */
    size_t part = what->from_count < what->into_count ? what->from_count : what->into_count;
    size_t most = what->from_count < what->into_count ? what->into_count : what->from_count;
    if (what->collective == AYRE_ALLGATHER && most == part * members) {
        return ayre_allgather(port, group, what->from, part, what->into, what->number);
    }
    if (what->collective == AYRE_ALLTOALL && most == part && part % members == 0) {
        return ayre_alltoall(port, group, what->from, what->into, part / members, what->number);
    }
    if (what->collective == AYRE_GATHER && (most == part * members || what->into_count == 0)) {
        return ayre_gather(port, group, what->root, what->from, what->from_count, what->into,
                           what->number);
    }
    if (what->collective == AYRE_SCATTER && (most == part * members || what->from_count == 0)) {
        return ayre_scatter(port, group, what->root, what->from, what->into, what->into_count,
                            what->number);
    }
    return ayre_collective_do(port, group, what);
}

static void do_collective(ayre_port *port, ayre_group *group, struct words *words) {
    size_t *each = lens(words);
    size_t *out = lens(words);
    size_t *in = lens(words);
    struct asked asked_for = asked(words);
    asked_for.what.lens = each;
    asked_for.what.out_lens = out;
    asked_for.what.in_lens = in;
    if (done(collect(port, group, &asked_for.what))) {
        say_changed(&asked_for);
    }
    forget(&asked_for);
    free(each);
    free(out);
    free(in);
}

/* A collective that was started. */
struct started {
    ayre_request *request;
    struct asked asked;
};

static void start(struct driver *driver, ayre_group *group, struct words *words) {
    struct started *started = allocate(sizeof *started);
    started->asked = asked(words);
    if (done(ayre_collective_start(driver->port, group, &started->asked.what,
                                   &started->request))) {
        say("%zu", keep(&driver->started, started));
        end_answer();
    } else {
        forget(&started->asked);
        free(started);
    }
}

static void finish(struct driver *driver, struct words *words) {
    size_t at = (size_t)number(words);
    struct started *started = driver->started.at[at];
    driver->started.at[at] = NULL;
    if (done(ayre_request_wait(driver->port, started->request))) {
        say_changed(&started->asked);
    }
    forget(&started->asked);
    free(started);
}

void end_started(struct driver *driver) {
    for (size_t at = 0; at < driver->started.count; at++) {
        struct started *started = driver->started.at[at];
        if (started != NULL) {
            ayre_request_close(started->request);
            forget(&started->asked);
            free(started);
        }
    }
    free(driver->started.at);
}

static void make_group(struct driver *driver, bool is_of_all, struct words *words) {
    struct bytes name = hex(word(words));
    ayre_group *group = NULL;
    ayre_peer members[1024];
    size_t count = is_of_all ? 0 : peers(words, members);
    int code = is_of_all ? ayre_group_of_all(driver->port, (char *)name.at, &group)
                         : ayre_group_of(driver->port, (char *)name.at, members, count, &group);
    if (done(code)) {
        say("%zu", keep(&driver->groups, group));
        end_answer();
    }
    free(name.at);
}

static void say_recorded(ayre_port *port, ayre_group *group) {
    int64_t count = ayre_group_recorded(port, group, NULL, NULL, 0);
    size_t members = (size_t)ayre_group_members(port, group, NULL, 0);
    struct ayre_recorded_call *calls = allocate((size_t)count * sizeof *calls);
    struct ayre_link_use *links = allocate((size_t)count * members * sizeof *links);
    ayre_group_recorded(port, group, calls, links, (size_t)count);
    done(AYRE_OK);
    say("%lld ", (long long)count);
    for (size_t at = 0; at < (size_t)count; at++) {
        const struct ayre_recorded_call *call = &calls[at];
        say("%u %llu %llu ", call->number, (unsigned long long)call->begin_ns,
            (unsigned long long)call->time_ns);
        say("%u %u %zu %zu ", call->collective, call->schedule, call->bytes, members);
        for (size_t member = 0; member < members; member++) {
            const struct ayre_link_use *link = &links[at * members + member];
            say("%llu %u %llu ", (unsigned long long)link->sent, link->waiting,
                (unsigned long long)link->round_trip_ns);
        }
    }
    end_answer();
    free(links);
    free(calls);
}

static void say_recording(ayre_port *port, ayre_group *group) {
    int64_t len = ayre_group_recording(port, group, NULL, 0);
    if (!done(len)) {
        return;
    }
    char *text = allocate((size_t)len + 1);
    ayre_group_recording(port, group, text, (size_t)len + 1);
    say_hex(text, (size_t)len);
    end_answer();
    free(text);
}

static bool about_group(struct driver *driver, const char *call, struct words *words) {
    ayre_port *port = driver->port;
    const char *const calls[] = {"fix_schedule", "collect",   "start",         "adapt",
                                 "record",       "recording", "recording_text"};
    size_t at = 0;
    while (at < sizeof calls / sizeof *calls && strcmp(call, calls[at]) != 0) {
        at++;
    }
    if (at == sizeof calls / sizeof *calls) {
        return false;
    }
    ayre_group *group = kept(&driver->groups, words);
    if (strcmp(call, "fix_schedule") == 0) {
        uint32_t collective = (uint32_t)number(words);
        answer(ayre_group_fix_schedule(port, group, collective, (uint32_t)number(words)));
    } else if (strcmp(call, "collect") == 0) {
        do_collective(port, group, words);
    } else if (strcmp(call, "start") == 0) {
        start(driver, group, words);
    } else if (strcmp(call, "adapt") == 0) {
        answer(ayre_group_adapt(port, group, (uint32_t)limit(words, 0)));
    } else if (strcmp(call, "record") == 0) {
        answer(ayre_group_record(port, group, (size_t)number(words)));
    } else if (strcmp(call, "recording") == 0) {
        say_recorded(port, group);
    } else {
        say_recording(port, group);
    }
    return true;
}

bool about_groups(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "group") == 0 || strcmp(call, "group_of_all") == 0) {
        make_group(driver, strcmp(call, "group_of_all") == 0, words);
    } else if (strcmp(call, "finished") == 0) {
        const struct started *started = driver->started.at[number(words)];
        answer_number(ayre_request_test(driver->port, started->request));
    } else if (strcmp(call, "finish") == 0) {
        finish(driver, words);
    } else {
        return about_group(driver, call, words);
    }
    return true;
}
