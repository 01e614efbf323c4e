/* Runs one hot path many times, for counting its instructions: `instructions CASE COUNT`. The cases
 * are those of engine/measurements/instructions.rs, by the functions of ayre.h. */
#include <ayre.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
    ayre_port *near, *far;
    ayre_peer to, from;
    ayre_region *region;
    ayre_remote_region *remote;
};

static char path[64];

static int64_t check(int64_t code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", ayre_detail());
        exit(1);
    }
    return code;
}

static ayre_port *open_port(uint32_t number) {
    ayre_port *port;
    ayre_config config;
    check(ayre_config_init(&config, sizeof config));
    config.number = number;
    check(ayre_port_open(&config, &port));
    return port;
}

static void *connect_near(void *near) {
    check(ayre_port_connect((ayre_port *)near, path));
    return NULL;
}

static struct pair open_pair(void) {
    struct pair pair;
    pthread_t connecting;
    ayre_range all = {0, 4096};
    snprintf(path, sizeof path, "/tmp/ayre-instructions-%d", (int)getpid());
    pair.near = open_port(0);
    pair.far = open_port(1);
    check(ayre_port_listen(pair.far, path));
    check(-pthread_create(&connecting, NULL, connect_near, pair.near));
    pair.from = (ayre_peer)check(ayre_port_accept(pair.far));
    check(-pthread_join(connecting, NULL));
    pair.to = 1;
    check(ayre_alloc(pair.far, 4096, 0, &pair.region));
    check(ayre_share(pair.far, pair.from, pair.region, all, AYRE_ALL_RIGHTS, 0, NULL));
    check(ayre_accept_region(pair.near, pair.to, 0, &pair.remote));
    return pair;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: instructions CASE COUNT\n");
        return 2;
    }
    struct pair pair = open_pair();
    const char *what = arguments[1];
    uint64_t operations = strtoull(arguments[2], NULL, 10), word = 7, old = 0;
    ayre_message message;
    if (strcmp(what, "c-put-8") == 0) {
        for (uint64_t i = 0; i < operations; i++) {
            check(ayre_put(pair.near, pair.remote, 0, &word, 8, NULL));
        }
    } else if (strcmp(what, "c-message-8") == 0) {
        for (uint64_t i = 0; i < operations; i++) {
            check(ayre_send(pair.near, pair.to, 1, &word, 8));
            if (ayre_try_recv(pair.far, &old, 8, &message) != 1) {
                return 1;
            }
        }
    } else if (strcmp(what, "c-fetch-add-8") == 0) {
        for (uint64_t i = 0; i < operations; i++) {
            check(ayre_fetch_add(pair.near, pair.remote, 8, 1, &old));
        }
    } else {
        fprintf(stderr, "no case %s\n", what);
        return 2;
    }
    ayre_port_close(pair.near);
    ayre_port_close(pair.far);
    return 0;
}
