/* Words, atomics, notifications, batches, epochs and locks. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct ayre_atomic_op atomic_of(struct words *words) {
    struct ayre_atomic_op what = {(uint8_t)number(words), 0, 0, 0};
    what.op = (uint8_t)number(words);
    what.operand = number(words);
    what.compare = number(words);
    return what;
}

void say_fetched(struct ayre_fetched fetched) {
    say("%llu %d", (unsigned long long)fetched.value, fetched.success);
    end_answer();
}

/* An operation of a batch. The bytes of a put are kept in it. */
static struct ayre_operation operation_of(struct driver *driver, struct words *words) {
    struct ayre_operation operation = {0};
    const char *call = word(words);
    if (strcmp(call, "notify") == 0) {
        operation.kind = AYRE_NOTIFY;
        operation.options = options(words);
        return operation;
    }
    operation.remote = kept(&driver->remotes, words);
    operation.offset = number(words);
    if (strcmp(call, "put") == 0) {
        operation.kind = AYRE_PUT;
        const char *source = word(words);
        if (!part_of(driver, source, &operation.part)) {
            struct bytes bytes = hex(source);
            operation.from = bytes.at;
            operation.len = bytes.len;
        }
    } else if (strcmp(call, "word") == 0) {
        operation.kind = AYRE_PUT_WORD;
        operation.word = number(words);
    } else {
        operation.kind = AYRE_ATOMIC;
        operation.atomic = atomic_of(words);
    }
    operation.options = options(words);
    return operation;
}

static void batch(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    size_t count = (size_t)number(words);
    struct ayre_operation *operations = allocate(count * sizeof *operations);
    for (size_t at = 0; at < count; at++) {
        operations[at] = operation_of(driver, words);
    }
    int64_t ticket = ayre_post(driver->port, peer, operations, count);
    if (done(ticket)) {
        if (count > 0) {
            say("%lld", (long long)ticket);
        }
        end_answer();
    }
    for (size_t at = 0; at < count; at++) {
        free((void *)operations[at].from);
    }
    free(operations);
}

static void on_word(struct driver *driver, const char *call, struct words *words) {
    const ayre_remote_region *remote = kept(&driver->remotes, words);
    uint64_t offset = number(words);
    struct ayre_fetched fetched = {0};
    if (strcmp(call, "word") == 0) {
        uint64_t value = number(words);
        struct ayre_options with = options(words);
        answer_number(ayre_put_word(driver->port, remote, offset, value, &with));
        return;
    }
    if (strcmp(call, "epoch") == 0) {
        int step = (int)number(words);
        if (done(ayre_epoch_step(driver->port, remote, offset, step, &fetched))) {
            say_fetched(fetched);
        }
        return;
    }
    struct ayre_atomic_op what = atomic_of(words);
    struct ayre_options with = options(words);
    if (strcmp(call, "atomic") == 0) {
        answer_number(ayre_update(driver->port, remote, offset, &what, &with));
    } else if (done(ayre_fetch(driver->port, remote, offset, &what, &with, &fetched))) {
        say_fetched(fetched);
    }
}

bool about_operations(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "batch") == 0) {
        batch(driver, words);
    } else if (strcmp(call, "notify") == 0) {
        ayre_peer peer = (ayre_peer)number(words);
        struct ayre_options with = options(words);
        answer_number(ayre_notify(driver->port, peer, &with));
    } else if (strcmp(call, "flush") == 0) {
        answer(ayre_flush(driver->port, (ayre_peer)number(words)));
    } else if (strcmp(call, "flushed") == 0) {
        answer_number(ayre_is_flushed(driver->port, (ayre_peer)number(words)));
    } else if (strcmp(call, "barrier") == 0) {
        answer(ayre_barrier(driver->port));
    } else if (strcmp(call, "word") == 0 || strcmp(call, "epoch") == 0 ||
               strcmp(call, "atomic") == 0 || strcmp(call, "fetch") == 0) {
        on_word(driver, call, words);
    } else {
        return false;
    }
    return true;
}

static void make_lock(struct driver *driver, struct words *words) {
    struct locks *locks = &driver->locks;
    struct ayre_lock lock = {kept(&driver->remotes, words), 0, 0, AYRE_FREE};
    lock.offset = number(words);
    lock.processes = (uint32_t)number(words);
    struct ayre_lock *more = realloc(locks->at, (locks->count + 1) * sizeof *more);
    if (more == NULL) {
        stop("no memory");
    }
    locks->at = more;
    locks->at[locks->count] = lock;
    done(AYRE_OK);
    say("%zu", locks->count++);
    end_answer();
}

bool about_locks(struct driver *driver, const char *call, struct words *words) {
    bool is_about = strcmp(call, "held") == 0 || strcmp(call, "try") == 0 ||
                    strcmp(call, "hold") == 0 || strcmp(call, "unlock") == 0;
    if (strcmp(call, "lock") == 0) {
        make_lock(driver, words);
        return true;
    }
    if (!is_about) {
        return false;
    }
    struct ayre_lock *lock = &driver->locks.at[number(words)];
    if (strcmp(call, "held") == 0) {
        if (lock->held == AYRE_FREE) {
            say("none");
            end_answer();
        } else {
            answer_number(lock->held - AYRE_SHARED);
        }
    } else if (strcmp(call, "try") == 0) {
        answer_number(ayre_lock_try(driver->port, lock, AYRE_SHARED + (int)number(words)));
    } else if (strcmp(call, "hold") == 0) {
        answer(ayre_lock_take(driver->port, lock, AYRE_SHARED + (int)number(words)));
    } else {
        answer(ayre_lock_release(driver->port, lock));
    }
    return true;
}
