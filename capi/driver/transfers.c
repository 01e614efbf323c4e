/* Puts and gets. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ayre_options options(struct words *words) {
    struct ayre_options options = {(uint32_t)number(words), 0, 0};
    options.tag = (uint32_t)number(words);
    options.value = number(words);
    return options;
}

struct ayre_rows rows_of(struct words *words) {
    struct ayre_rows rows = {number(words), 0, 0, 0};
    rows.rows = number(words);
    rows.local_stride = number(words);
    rows.remote_stride = number(words);
    return rows;
}

bool part_of(const struct driver *driver, const char *word, struct ayre_part *part) {
    size_t region = 0;
    if (sscanf(word, "r%zu:%zu:%zu", &region, &part->offset, &part->len) == 3) {
        part->region = driver->regions.at[region];
        return true;
    }
    if (sscanf(word, "r*:%zu:%zu", &part->offset, &part->len) == 2) {
        part->region = driver->regions.at[0];
        return true;
    }
    return false;
}

const struct iovec *cut(struct bytes bytes) {
    static struct iovec pieces[PIECES];
    size_t first = bytes.len / 3;
    pieces[0].iov_base = bytes.at;
    pieces[0].iov_len = first;
    pieces[1].iov_base = NULL;
    pieces[1].iov_len = 0;
    pieces[2].iov_base = bytes.len == 0 ? NULL : bytes.at + first;
    pieces[2].iov_len = bytes.len - first;
    return pieces;
}

bool by_pieces(void) {
    static unsigned turn = 0;
    return turn++ % 2 == 1;
}

static void put(struct driver *driver, bool has_rows, struct words *words) {
    const ayre_remote_region *remote = kept(&driver->remotes, words);
    uint64_t offset = number(words);
    const char *source = word(words);
    struct ayre_part part = {0};
    bool is_part = part_of(driver, source, &part);
    struct bytes bytes = {NULL, 0};
    if (!is_part) {
        bytes = hex(source);
    }
    struct ayre_rows rows = {0};
    if (has_rows) {
        rows = rows_of(words);
    }
    struct ayre_options with = options(words);
    int64_t ticket;
    if (is_part && has_rows) {
        ticket = ayre_put_part_rows(driver->port, remote, offset, &part, &rows, &with);
    } else if (is_part) {
        ticket = ayre_put_part(driver->port, remote, offset, &part, &with);
    } else if (has_rows) {
        ticket = ayre_put_rows(driver->port, remote, offset, bytes.at, bytes.len, &rows,
                               &with);
    } else if (by_pieces()) {
        ticket = ayre_putv(driver->port, remote, offset, cut(bytes), PIECES, &with);
    } else {
        ticket = ayre_put(driver->port, remote, offset, bytes.at, bytes.len, &with);
    }
    free(bytes.at);
    answer_number(ticket);
}

static void get(struct driver *driver, bool has_rows, struct words *words) {
    const ayre_remote_region *remote = kept(&driver->remotes, words);
    uint64_t offset = number(words);
    const char *target = word(words);
    struct ayre_part part = {0};
    bool is_part = part_of(driver, target, &part);
    struct bytes bytes = {NULL, 0};
    if (!is_part) {
        bytes = hex(target);
    }
    struct ayre_rows rows = {0};
    if (has_rows) {
        rows = rows_of(words);
    }
    struct ayre_options with = options(words);
    int64_t ticket;
    if (is_part && has_rows) {
        ticket = ayre_get_part_rows(driver->port, remote, offset, &part, &rows, &with);
    } else if (is_part) {
        ticket = ayre_get_part(driver->port, remote, offset, &part, &with);
    } else if (has_rows) {
        ticket = ayre_get_rows(driver->port, remote, offset, bytes.at, bytes.len, &rows,
                               &with);
    } else if (by_pieces()) {
        ticket = ayre_getv(driver->port, remote, offset, cut(bytes), PIECES, &with);
    } else {
        ticket = ayre_get(driver->port, remote, offset, bytes.at, bytes.len, &with);
    }
    if (done(ticket)) {
        say("%lld ", (long long)ticket);
        if (!is_part) {
            say_hex(bytes.at, bytes.len);
        }
        end_answer();
    }
    free(bytes.at);
}

bool about_transfers(struct driver *driver, const char *call, struct words *words) {
    if (strcmp(call, "put") == 0 || strcmp(call, "puts") == 0) {
        put(driver, call[3] == 's', words);
    } else if (strcmp(call, "get") == 0 || strcmp(call, "gets") == 0) {
        get(driver, call[3] == 's', words);
    } else {
        return false;
    }
    return true;
}
