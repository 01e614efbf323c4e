/* The driver: one port, which does what the lines of its standard input say. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t keep(struct handles *handles, void *handle) {
    void **more = realloc(handles->at, (handles->count + 1) * sizeof *more);
    if (more == NULL) {
        stop("no memory");
    }
    handles->at = more;
    handles->at[handles->count] = handle;
    return handles->count++;
}

void *kept(const struct handles *handles, struct words *words) {
    size_t number = handle(words);
    if (number >= handles->count) {
        stop("no such handle was given out");
    }
    return handles->at[number];
}

/* What another port has given out: the calls take it for what is foreign to them. */
static void hold_foreign(struct driver *driver) {
    ayre_port *port = NULL;
    ayre_region *region = NULL;
    ayre_grant *grant = NULL;
    ayre_remote_region *remote = NULL;
    ayre_queue *queue = NULL;
    ayre_remote_queue *produced = NULL;
    ayre_depot *depot = NULL;
    ayre_inlet *inlet = NULL;
    ayre_remote_inlet *entered = NULL;
    struct ayre_inlet_options access = {AYRE_ALL_RIGHTS, {0, 256}, {0, 256}, 64, 0};
    if (ayre_port_open(NULL, &port) != AYRE_OK) {
        stop("no second port");
    }
    int own = ayre_port_connect_loopback(port);
    struct ayre_range all = {0, 64};
    bool is_held =
        own >= 0 && ayre_alloc(port, 64, 0, &region) == AYRE_OK &&
        ayre_share(port, (ayre_peer)own, region, all, AYRE_ALL_RIGHTS, 1, &grant) == AYRE_OK &&
        ayre_accept_region(port, (ayre_peer)own, 1, &remote) == AYRE_OK &&
        ayre_create_queue(port, 64, &queue) == AYRE_OK &&
        ayre_share_queue(port, (ayre_peer)own, queue, 1) == AYRE_OK &&
        ayre_accept_queue(port, (ayre_peer)own, 1, &produced) == AYRE_OK &&
        ayre_create_depot(port, &depot) == AYRE_OK &&
        ayre_share_inlet(port, (ayre_peer)own, depot, region, all, &access, 1, &inlet) ==
            AYRE_OK &&
        ayre_accept_inlet(port, (ayre_peer)own, 1, &entered) == AYRE_OK;
    if (!is_held) {
        stop(ayre_detail());
    }
    keep(&driver->regions, region);
    keep(&driver->grants, grant);
    keep(&driver->remotes, remote);
    keep(&driver->queues, queue);
    keep(&driver->produced, produced);
    keep(&driver->depots, depot);
    keep(&driver->inlets, inlet);
    keep(&driver->entered, entered);
    ayre_port_close(port);
}

static void open_port(struct driver *driver, struct words *words) {
    if (strcmp(word(words), "open") != 0) {
        stop("a driver is one port, which is opened first");
    }
    struct ayre_config config;
    ayre_config_init(&config, sizeof config);
    config.number = (uint32_t)number(words);
    config.mode = number(words) == 1 ? AYRE_MEDIATED : AYRE_DIRECT;
    config.spin_polls = 8;
    config.spin_yields = 64;
    config.linger_us = 50000;
    if (ayre_port_open(&config, &driver->port) != AYRE_OK) {
        stop(ayre_detail());
    }
    hold_foreign(driver);
    answer(AYRE_OK);
}

static void make(struct driver *driver, struct words *words) {
    const char *call = word(words);
    if (strcmp(call, "leave") == 0) {
        ayre_port *port = driver->port;
        driver->port = NULL;
        answer(ayre_port_leave(port));
    } else if (strcmp(call, "close") == 0) {
        ayre_port *port = driver->port;
        driver->port = NULL;
        answer(ayre_port_close(port));
    } else if (!about_peers(driver, call, words) && !about_memory(driver, call, words) &&
               !about_transfers(driver, call, words) && !about_operations(driver, call, words) &&
               !about_locks(driver, call, words) && !about_messages(driver, call, words) &&
               !about_queues(driver, call, words) && !about_depots(driver, call, words) &&
               !about_inlets(driver, call, words) && !about_messengers(driver, call, words) &&
               !about_channels(driver, call, words) &&
               !about_groups(driver, call, words) && !about_members(driver, call, words) &&
               !about_streams(driver, call, words)) {
        stop(call);
    }
}

static void end(struct driver *driver) {
    ayre_port_close(driver->port);
    for (size_t at = 0; at < driver->grants.count; at++) {
        ayre_grant_close(driver->grants.at[at]);
    }
    for (size_t at = 0; at < driver->remotes.count; at++) {
        ayre_remote_region_close(driver->remotes.at[at]);
    }
    for (size_t at = 0; at < driver->regions.count; at++) {
        ayre_region_close(driver->regions.at[at]);
    }
    for (size_t at = 0; at < driver->queues.count; at++) {
        ayre_queue_close(driver->queues.at[at]);
    }
    for (size_t at = 0; at < driver->produced.count; at++) {
        ayre_remote_queue_close(driver->produced.at[at]);
    }
    for (size_t at = 0; at < driver->entered.count; at++) {
        ayre_remote_inlet_close(driver->entered.at[at]);
    }
    for (size_t at = 0; at < driver->inlets.count; at++) {
        ayre_inlet_close(driver->inlets.at[at]);
    }
    for (size_t at = 0; at < driver->depots.count; at++) {
        ayre_depot_close(driver->depots.at[at]);
    }
    for (size_t at = 0; at < driver->functions.count; at++) {
        free(driver->functions.at[at]);
    }
    free(driver->functions.at);
    end_started(driver);
    for (size_t at = 0; at < driver->memberships.count; at++) {
        ayre_membership_close(driver->memberships.at[at]);
    }
    free(driver->memberships.at);
    for (size_t at = 0; at < driver->streams.count; at++) {
        ayre_stream_close(driver->streams.at[at]);
    }
    free(driver->streams.at);
    for (size_t at = 0; at < driver->groups.count; at++) {
        ayre_group_close(driver->groups.at[at]);
    }
    free(driver->groups.at);
    free(driver->entered.at);
    free(driver->inlets.at);
    free(driver->depots.at);
    free(driver->frozen.at);
    free(driver->grants.at);
    free(driver->remotes.at);
    free(driver->regions.at);
    free(driver->queues.at);
    free(driver->produced.at);
    free(driver->locks.at);
}

int main(void) {
    struct driver driver = {0};
    char *line = NULL;
    size_t room = 0;
    bool is_open = false;
    while (getline(&line, &room, stdin) > 0) {
        struct words words = {line};
        if (is_open) {
            make(&driver, &words);
        } else {
            open_port(&driver, &words);
            is_open = true;
        }
    }
    free(line);
    end(&driver);
    return 0;
}
