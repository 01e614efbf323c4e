/* A cable between two network namespaces that loses frames and brings some late.
 *
 * usage: cable NAMESPACE NAMESPACE INTERFACE LOST LATE [udp-lost]
 *
 * Of 1000 frames of each direction LOST are lost; LATE come behind the next ones, a millisecond
 * later at most. With `udp-lost` no datagram of UDP passes. Both interfaces are taps; they are there
 * when a line has been written to standard output, and end with the process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 65536, LATE_MOST = 16, LATE_NS = 1000000 };

struct frame {
    ssize_t len;
    int64_t due;
    char bytes[FRAME];
};

static struct frame late[2][LATE_MOST];
static uint64_t random_state = 88172645463325252ull;

static unsigned permille(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 32) % 1000;
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int tap(const char *space, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", space);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    if (there < 0 || setns(there, CLONE_NEWNET) != 0) die(path);
    close(there);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) die("/dev/net/tun");
    return fd;
}

static int is_udp(const struct frame *frame) {
    const unsigned char *b = (const unsigned char *)frame->bytes;
    return frame->len > 34 && b[12] == 8 && b[13] == 0 && b[23] == 17;
}

static void pass(int to, const struct frame *frame) {
    if (write(to, frame->bytes, frame->len) < 0) return; /* as a full queue loses it */
}

static void pass_late(int to, struct frame *kept, int64_t time) {
    for (int i = 0; i < LATE_MOST; i++)
        if (kept[i].len > 0 && kept[i].due <= time) {
            pass(to, &kept[i]);
            kept[i].len = 0;
        }
}

static int keep(struct frame *kept, const struct frame *frame) {
    for (int i = 0; i < LATE_MOST; i++)
        if (kept[i].len == 0) {
            kept[i].len = frame->len;
            kept[i].due = now() + LATE_NS;
            memcpy(kept[i].bytes, frame->bytes, frame->len);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 6) return fprintf(stderr, "usage: see cable.c\n"), 2;
    unsigned lost = atoi(argv[4]), behind = atoi(argv[5]);
    int no_udp = argc > 6;
    int fds[2] = {tap(argv[1], argv[3]), tap(argv[2], argv[3])};
    puts("ready");
    fflush(stdout);
    static struct frame frame;
    for (;;) {
        struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
        int any = 0;
        for (int way = 0; way < 2; way++)
            for (int i = 0; i < LATE_MOST; i++) any |= late[way][i].len > 0;
        poll(polled, 2, any ? 1 : -1);
        for (int way = 0; way < 2; way++) {
            for (int n = 0; n < 32 && (frame.len = read(fds[way], frame.bytes, FRAME)) > 0; n++) {
                if (permille() < lost || (no_udp && is_udp(&frame))) continue;
                if (permille() < behind && keep(late[way], &frame)) continue;
                pass(fds[!way], &frame);
            }
            pass_late(fds[!way], late[way], now());
        }
    }
}
