/* How misuse is told, and what it is tried on. */
#ifndef AYRE_TESTS_MISUSE_H
#define AYRE_TESTS_MISUSE_H

#include <ayre.h>
#include <stdbool.h>

void expect(bool holds, const char *what, const char *file, int line);
#define EXPECT(holds) expect((holds), #holds, __FILE__, __LINE__)
#define FAILS(call, code) expect((call) == (code), #call, __FILE__, __LINE__)

/* A port with a loopback, and one thing of each kind. */
struct all {
    ayre_port *port;
    ayre_peer own;
    ayre_region *region;
    ayre_grant *grant;
    ayre_remote_region *remote;
    ayre_queue *queue;
    ayre_remote_queue *producer;
};

/* Messengers, and all that is built on them. Both are ports again afterwards. */
void messengers(struct all *all, struct all *other);

#endif
