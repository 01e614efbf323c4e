/* A driver over ayre.h: a port, and what it has given out. */
#ifndef AYRE_DRIVER_DRIVER_H
#define AYRE_DRIVER_DRIVER_H

#include "ayre.h"
#include "words.h"

/* Handles of one kind, by their numbers. */
struct handles {
    void **at;
    size_t count;
};

struct locks {
    struct ayre_lock *at;
    size_t count;
};

struct driver {
    /* NULL after it has left. */
    ayre_port *port;
    /* The first one of each kind is of another port, for calls with a foreign handle. */
    struct handles regions;
    struct handles remotes;
    struct handles grants;
    struct handles queues;
    struct handles produced;
    struct locks locks;
    struct handles depots;
    struct handles inlets;
    struct handles entered;
    /* Depots that were frozen: a number for each time. */
    struct handles frozen;
    struct handles groups;
    struct handles started;
    struct handles memberships;
    struct handles streams;
    /* What the library gives back to the functions below. */
    struct handles functions;
};

/* An active message. */
struct message {
    uint64_t arguments[AYRE_ARGUMENTS_MAX];
    size_t count;
    struct bytes payload;
};

/* Keeps a handle. Its number. */
size_t keep(struct handles *handles, void *handle);
/* The handle that the next word names. */
void *kept(const struct handles *handles, struct words *words);

/* The number of pieces into which bytes are cut. */
#define PIECES 3
/* Bytes in pieces, one of them empty, until the next call. */
const struct iovec *cut(struct bytes bytes);
/* Whether this call is made with its bytes in pieces: every other one is. */
bool by_pieces(void);

/* Calls, each kind in a file. False for a call of another kind. */
bool about_peers(struct driver *driver, const char *call, struct words *words);
bool about_memory(struct driver *driver, const char *call, struct words *words);
bool about_transfers(struct driver *driver, const char *call, struct words *words);
bool about_operations(struct driver *driver, const char *call, struct words *words);
bool about_locks(struct driver *driver, const char *call, struct words *words);
bool about_messages(struct driver *driver, const char *call, struct words *words);
bool about_queues(struct driver *driver, const char *call, struct words *words);
bool about_depots(struct driver *driver, const char *call, struct words *words);
bool about_inlets(struct driver *driver, const char *call, struct words *words);
bool about_messengers(struct driver *driver, const char *call, struct words *words);

bool about_groups(struct driver *driver, const char *call, struct words *words);
bool about_members(struct driver *driver, const char *call, struct words *words);
bool about_streams(struct driver *driver, const char *call, struct words *words);
bool about_channels(struct driver *driver, const char *call, struct words *words);
/* Sends a message to a group, out of a handler. */
void cast(struct driver *driver, ayre_token *token, struct words *words);
/* Frees the collectives that nobody has waited for. */
void end_started(struct driver *driver);

/* Peers behind their number: how many there are. */
size_t peers(struct words *words, ayre_peer *peers);

/* A function of the suite that the library is to run: its pointer for the user. */
void *function(struct driver *driver, size_t number);
/* Has the suite run one: what is said between the two tells with what. Until it has run, `make`
 * makes the calls that only it can make. Returns 1 if the suite's function has panicked. */
void begin_run(void *user);
int end_run(void *user, bool (*make)(void *context, const char *call, struct words *words),
            void *context);
/* The message that the next words are; its payload is freed by the caller. */
struct message message(struct words *words);

/* What operations are described by. */
struct ayre_options options(struct words *words);
struct ayre_atomic_op atomic_of(struct words *words);
struct ayre_rows rows_of(struct words *words);
/* A part of a region, if the word is one. */
bool part_of(const struct driver *driver, const char *word, struct ayre_part *part);
void say_fetched(struct ayre_fetched fetched);

#endif
