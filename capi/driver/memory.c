/* Calls about memory: regions, grants, remote regions. */
#include "driver.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void alloc(struct driver *driver, struct words *words) {
    size_t len = (size_t)number(words);
    ayre_region *region = NULL;
    if (done(ayre_alloc(driver->port, len, number(words) == 1 ? AYRE_SEALED : 0, &region))) {
        say("%zu", keep(&driver->regions, region));
        end_answer();
    }
}

static void register_bytes(struct driver *driver, struct words *words) {
    struct bytes bytes = hex(word(words));
    ayre_region *region = NULL;
    /* The library keeps the memory; it ends with the driver. */
    if (done(ayre_register(driver->port, bytes.at, bytes.len, &region))) {
        say("%zu", keep(&driver->regions, region));
        end_answer();
    }
}

static void share(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    const ayre_region *region = kept(&driver->regions, words);
    struct ayre_range range = {(size_t)number(words), 0};
    range.end = (size_t)number(words);
    uint32_t rights = (uint32_t)number(words);
    ayre_grant *grant = NULL;
    struct ayre_key key;
    if (done(ayre_share(driver->port, peer, region, range, rights, number(words), &grant))) {
        ayre_grant_key(grant, &key);
        say("%zu %u %u", keep(&driver->grants, grant), key.slot, key.generation);
        end_answer();
    }
}

static void say_remote(struct driver *driver, ayre_remote_region *remote) {
    struct ayre_key key;
    ayre_remote_region_key(remote, &key);
    say("%zu %lld ", keep(&driver->remotes, remote), (long long)ayre_remote_region_len(remote));
    say("%d %u %u", ayre_remote_region_rights(remote), key.slot, key.generation);
    end_answer();
}

static void accept_remote(struct driver *driver, struct words *words) {
    ayre_peer peer = (ayre_peer)number(words);
    ayre_remote_region *remote = NULL;
    if (done(ayre_accept_region(driver->port, peer, number(words), &remote))) {
        say_remote(driver, remote);
    }
}

static void narrow(struct driver *driver, struct words *words) {
    const ayre_remote_region *from = kept(&driver->remotes, words);
    struct ayre_range range = {(size_t)number(words), 0};
    range.end = (size_t)number(words);
    ayre_remote_region *remote = NULL;
    if (done(ayre_narrow(from, range, (uint32_t)number(words), &remote))) {
        say_remote(driver, remote);
    }
}

static void revoke(struct driver *driver, struct words *words) {
    size_t at = handle(words);
    ayre_grant *grant = driver->grants.at[at];
    driver->grants.at[at] = NULL;
    answer_number(ayre_revoke(driver->port, grant));
}

/* Peers write meanwhile: a word is read at once. */
static void copy_out(unsigned char *to, const unsigned char *from, size_t len) {
    if (len == sizeof(uint64_t) && (uintptr_t)from % len == 0) {
        uint64_t read = atomic_load((const _Atomic uint64_t *)(const void *)from);
        memcpy(to, &read, len);
    } else {
        memcpy(to, from, len);
    }
}

/* Reads and writes own memory, which has an address. */
static void access_own(struct driver *driver, const char *call, struct words *words) {
    ayre_region *region = kept(&driver->regions, words);
    size_t offset = (size_t)number(words);
    unsigned char *at = (unsigned char *)ayre_region_address(region) + offset;
    if (strcmp(call, "read") == 0) {
        size_t len = (size_t)number(words);
        unsigned char *bytes = allocate(len);
        copy_out(bytes, at, len);
        done(AYRE_OK);
        say_hex(bytes, len);
        end_answer();
        free(bytes);
    } else if (strcmp(call, "write") == 0) {
        struct bytes bytes = hex(word(words));
        memcpy(at, bytes.at, bytes.len);
        free(bytes.at);
        answer(AYRE_OK);
    } else {
        struct ayre_atomic_op what = atomic_of(words);
        struct ayre_fetched fetched = {0};
        if (done(ayre_region_atomic(region, offset, &what, &fetched))) {
            say_fetched(fetched);
        }
    }
}

bool about_memory(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "read") == 0 || strcmp(call, "write") == 0 || strcmp(call, "own") == 0) {
        access_own(driver, call, words);
    } else if (strcmp(call, "alloc") == 0) {
        alloc(driver, words);
    } else if (strcmp(call, "register") == 0) {
        register_bytes(driver, words);
    } else if (strcmp(call, "deregister") == 0) {
        answer(ayre_deregister(driver->port, kept(&driver->regions, words)));
    } else if (strcmp(call, "share") == 0) {
        share(driver, words);
    } else if (strcmp(call, "remote") == 0) {
        accept_remote(driver, words);
    } else if (strcmp(call, "narrow") == 0) {
        narrow(driver, words);
    } else if (strcmp(call, "revoke") == 0) {
        revoke(driver, words);
    } else {
        return false;
    }
    return true;
}
