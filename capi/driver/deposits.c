/* Depots, inlets and deposit messages. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

static void say_register(ayre_depot *depot, struct words *words) {
    uint64_t value = 0;
    if (done(ayre_depot_register(depot, (uint8_t)number(words), &value))) {
        say("%llu", (unsigned long long)value);
        end_answer();
    }
}

static void store(ayre_depot *depot, struct words *words) {
    uint8_t at = (uint8_t)number(words);
    size_t count = (size_t)number(words);
    struct ayre_stored *instructions = allocate(count * sizeof *instructions);
    for (size_t i = 0; i < count; i++) {
        instructions[i].word = number(words);
        instructions[i].operand = number(words);
        instructions[i].enters = number(words) == 1;
    }
    answer(ayre_depot_store(depot, at, instructions, count));
    free(instructions);
}

static void about_frozen(struct driver *driver, const char *call, struct words *words) {
    ayre_depot *depot = kept(&driver->frozen, words);
    if (strcmp(call, "kept") == 0) {
        say_register(depot, words);
    } else if (strcmp(call, "keep") == 0) {
        uint8_t at = (uint8_t)number(words);
        answer(ayre_depot_set_frozen(depot, at, number(words)));
    } else {
        answer(ayre_depot_thaw(depot));
    }
}

static bool is_one_of(const char *call, const char *const *calls) {
    while (*calls != NULL && strcmp(call, *calls) != 0) {
        calls++;
    }
    return *calls != NULL;
}

bool about_depots(struct driver *driver, const char *call, struct words *words) {
    static const char *const of_frozen[] = {"kept", "keep", "thaw", NULL};
    static const char *const of_depots[] = {"has", "set", "protect", "store", "freeze", NULL};
    if (is_one_of(call, of_frozen)) {
        about_frozen(driver, call, words);
        return true;
    }
    if (strcmp(call, "depot") == 0) {
        ayre_depot *made = NULL;
        if (done(ayre_create_depot(driver->port, &made))) {
            say("%zu", keep(&driver->depots, made));
            end_answer();
        }
        return true;
    }
    if (!is_one_of(call, of_depots)) {
        return false;
    }
    ayre_depot *depot = kept(&driver->depots, words);
    if (strcmp(call, "has") == 0) {
        say_register(depot, words);
    } else if (strcmp(call, "set") == 0) {
        uint8_t at = (uint8_t)number(words);
        answer(ayre_depot_set_register(depot, at, number(words)));
    } else if (strcmp(call, "protect") == 0) {
        uint8_t first = (uint8_t)number(words);
        uint8_t last = (uint8_t)number(words);
        answer(ayre_depot_protect(depot, first, last, (uint8_t)number(words)));
    } else if (strcmp(call, "store") == 0) {
        store(depot, words);
    } else if (done(ayre_depot_freeze(depot))) {
        say("%zu", keep(&driver->frozen, depot));
        end_answer();
    }
    return true;
}

/* The data is freed by the caller. */
static struct ayre_deposit_message message_of(struct words *words) {
    struct ayre_deposit_message message = {0};
    message.carries = *word(words) == 'c';
    if (message.carries) {
        message.instruction = number(words);
    } else {
        message.entry = (uint16_t)number(words);
        for (int at = 0; at < 3; at++) {
            message.registers[at] = (uint8_t)number(words);
        }
    }
    message.operand = number(words);
    message.mask = number(words);
    struct bytes data = hex(word(words));
    message.data = data.at;
    message.len = data.len;
    return message;
}

static void share_inlet(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    ayre_depot *depot = kept(&driver->depots, words);
    const ayre_region *region = kept(&driver->regions, words);
    struct ayre_range range = {(size_t)number(words), 0};
    range.end = (size_t)number(words);
    struct ayre_inlet_options access = {(uint32_t)number(words), {0, 0}, {0, 0}, 0, 0};
    access.registers[0] = (uint16_t)number(words);
    access.registers[1] = (uint16_t)number(words);
    access.entries[0] = (uint16_t)number(words);
    access.entries[1] = (uint16_t)number(words);
    access.longest = (uint16_t)number(words);
    access.holds = (uint16_t)number(words);
    uint64_t name = number(words);
    ayre_inlet *inlet = NULL;
    if (done(ayre_share_inlet(driver->port, peer, depot, region, range, &access, name, &inlet))) {
        say("%zu", keep(&driver->inlets, inlet));
        end_answer();
    }
}

static void deposit(struct driver *driver, const char *call, struct words *words) {
    ayre_remote_inlet *to = kept(&driver->entered, words);
    struct ayre_deposit_message message = message_of(words);
    struct ayre_deposit_reply reply = {0};
    if (strcmp(call, "reply") == 0) {
        reply.inlet = kept(&driver->inlets, words);
        reply.message = message_of(words);
        reply.len = (size_t)number(words);
        reply.takes_value = number(words) == 1;
        reply.tag = (uint32_t)number(words);
        reply.value = number(words);
    }
    struct ayre_options with = options(words);
    answer_number(strcmp(call, "reply") == 0
                      ? ayre_deposit_with_reply(driver->port, to, &message, &reply, &with)
                      : ayre_deposit(driver->port, to, &message, &with));
    free((void *)message.data);
    free((void *)reply.message.data);
}

static void deposit_fetch(struct driver *driver, struct words *words) {
    ayre_remote_inlet *to = kept(&driver->entered, words);
    struct ayre_deposit_message message = message_of(words);
    struct bytes into = hex(word(words));
    uint64_t value = 0;
    int code = ayre_deposit_fetch(driver->port, to, &message, into.at, into.len, &value);
    if (done(code)) {
        say("%llu %d ", (unsigned long long)value, code == 0);
        say_hex(into.at, into.len);
        end_answer();
    }
    free((void *)message.data);
    free(into.at);
}

static void say_held(ayre_inlet *inlet) {
    unsigned char data[4096];
    struct ayre_held_message held = {0};
    int code = ayre_inlet_held(inlet, &held, data, sizeof data);
    if (code == 0) {
        say("none");
        end_answer();
        return;
    }
    if (!done(code)) {
        return;
    }
    say("%d ", AYRE_FAULT_UNKNOWN_KEY + 1 - held.cause);
    if (held.carries == 1) {
        say("c %llu ", (unsigned long long)held.instruction);
    } else if (held.carries == 2) {
        say("p ");
    } else {
        say("e %u %u %u %u ", held.entry, held.registers[0], held.registers[1],
            held.registers[2]);
    }
    say("%llu %llu %u ", (unsigned long long)held.operand, (unsigned long long)held.mask, held.len);
    say("%u %u %u %llu ", held.brings, held.is_answered, held.tag, (unsigned long long)held.value);
    say_hex(data, held.brings == 1 ? held.len : 0);
    end_answer();
}

static void accept_inlet(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    ayre_remote_inlet *entered = NULL;
    if (done(ayre_accept_inlet(driver->port, peer, number(words), &entered))) {
        say("%zu", keep(&driver->entered, entered));
        end_answer();
    }
}

bool about_inlets(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "inlet") == 0) {
        share_inlet(driver, words);
    } else if (strcmp(call, "enters") == 0) {
        accept_inlet(driver, words);
    } else if (strcmp(call, "shut") == 0) {
        size_t at = handle(words);
        ayre_inlet *inlet = driver->inlets.at[at];
        driver->inlets.at[at] = NULL;
        answer_number(ayre_revoke_inlet(driver->port, inlet));
    } else if (strcmp(call, "rejoin") == 0) {
        answer(ayre_rejoin_inlet(driver->port, kept(&driver->entered, words)));
    } else if (strcmp(call, "deposit") == 0 || strcmp(call, "reply") == 0) {
        deposit(driver, call, words);
    } else if (strcmp(call, "answer") == 0) {
        deposit_fetch(driver, words);
    } else if (strcmp(call, "stopped") == 0) {
        say_held(kept(&driver->inlets, words));
    } else if (strcmp(call, "resume") == 0) {
        answer_number(ayre_inlet_resume(kept(&driver->inlets, words)));
    } else if (strcmp(call, "skip") == 0) {
        answer(ayre_inlet_skip(kept(&driver->inlets, words)));
    } else if (strcmp(call, "reset") == 0) {
        answer(ayre_inlet_reset(kept(&driver->inlets, words)));
    } else {
        return false;
    }
    return true;
}
