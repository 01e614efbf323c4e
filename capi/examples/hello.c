/* Two ranks write a greeting into each other's memory.
 *
 *   make install PREFIX=/usr/local && ldconfig
 *   cc -o hello capi/examples/hello.c $(pkg-config --cflags --libs ayre)
 *   ayre run -n 2 -- ./hello
 */
#include <ayre.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

int main(void) {
    ayre_port *port;
    check(ayre_port_join(NULL, &port), "ayre_port_join"); /* one of those that `ayre run` started */
    int rank = ayre_port_rank(port);
    ayre_peer peer = (ayre_peer)(rank ^ 1);

    ayre_region *region; /* memory that others may reach */
    check(ayre_alloc(port, 4096, 0, &region), "ayre_alloc");
    ayre_range all = {0, 4096};
    check(ayre_share(port, peer, region, all, AYRE_ALL_RIGHTS, 0, NULL), "ayre_share");
    ayre_remote_region *remote; /* and theirs */
    check(ayre_accept_region(port, peer, 0, &remote), "ayre_accept_region");

    ayre_options options = {AYRE_COMPLETER, 0, 0};
    check(ayre_put(port, remote, 0, "hello, neighbour", 17, &options), "ayre_put");
    ayre_notification note; /* their put has landed in our memory */
    check(ayre_wait_notification(port, &note, -1), "ayre_wait_notification");
    printf("rank %d: %s\n", rank, (const char *)ayre_region_address(region));

    ayre_remote_region_close(remote);
    ayre_region_close(region);
    check(ayre_port_leave(port), "ayre_port_leave");
    return 0;
}
