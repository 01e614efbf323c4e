/* A server with many clients in an event loop: its port and its signals are descriptors in an
 * epoll.
 *
 *   make install PREFIX=/usr/local && ldconfig
 *   cc -o server capi/examples/server.c $(pkg-config --cflags --libs ayre)
 *   ./server 1000
 *
 * The clients are ports of child processes, each of which has its ports in an epoll, too. A client
 * asks the server to add to one of its counters, and gets the sum.
 */
#include <ayre.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLIENTS_OF_A_PROCESS 50
#define REQUESTS 20
#define COUNTERS 16

struct request {
    uint32_t counter, add;
};

struct client {
    ayre_port *port;
    ayre_peer server;
    uint32_t left; /* requests that were not answered */
};

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

static void check_system(int64_t result, const char *call) {
    if (result < 0) {
        perror(call);
        exit(1);
    }
}

static void watch(int loop, int fd, uint32_t number) {
    struct epoll_event event;
    event.events = EPOLLIN;
    event.data.u32 = number;
    check_system(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static ayre_port *open_port(uint32_t number) {
    ayre_port *port;
    ayre_config config;
    check(ayre_config_init(&config, sizeof config), "ayre_config_init");
    config.number = number;
    config.spin_polls = 0; /* there are more ports than processors: waits sleep at once */
    config.spin_yields = 0;
    check(ayre_port_open(&config, &port), "ayre_port_open");
    return port;
}

/* Takes the next message, if there is one. */
static int take(ayre_port *port, void *into, size_t room) {
    ayre_message message;
    int taken = ayre_try_recv(port, into, room, &message);
    if (taken == 0) {
        taken = ayre_recv(port, into, room, &message, 0); /* looks at all peers */
    }
    if (taken == AYRE_TIMED_OUT || taken == AYRE_PEER_DIED) {
        return -1;
    }
    check(taken, "ayre_recv");
    return message.source;
}

static void ask(struct client *client) {
    struct request request = {(uint32_t)ayre_port_rank(client->port) % COUNTERS, client->left};
    check(ayre_send(client->port, client->server, 0, &request, sizeof request), "ayre_send");
}

/* Takes the answers of a client until its port rests. Returns 0 once it has no more questions. */
static int go_on(struct client *client) {
    for (;;) {
        uint64_t sum;
        while (take(client->port, &sum, sizeof sum) >= 0) {
            if (--client->left == 0) {
                check(ayre_port_leave(client->port), "ayre_port_leave");
                return 0;
            }
            ask(client);
        }
        if (ayre_port_rest(client->port) == 1) {
            return 1;
        }
    }
}

/* A process with the clients from number `first` to before `end`. */
static void be_clients(const char *path, uint32_t first, uint32_t end) {
    struct client clients[CLIENTS_OF_A_PROCESS];
    struct epoll_event events[16];
    uint32_t at_work = 0;
    int loop = epoll_create1(EPOLL_CLOEXEC);
    check_system(loop, "epoll_create1");
    for (uint32_t number = first; number < end; number++) {
        struct client *client = &clients[number - first];
        client->port = open_port(number);
        client->left = REQUESTS;
        int server = ayre_port_connect(client->port, path);
        check(server, "ayre_port_connect");
        client->server = (ayre_peer)server;
        watch(loop, ayre_port_fd(client->port), number - first);
        ask(client);
        at_work += (uint32_t)go_on(client);
    }
    while (at_work > 0) {
        int count = epoll_wait(loop, events, 16, -1);
        check_system(count, "epoll_wait");
        for (int i = 0; i < count; i++) {
            struct client *client = &clients[events[i].data.u32];
            check(ayre_port_wake(client->port), "ayre_port_wake");
            at_work -= go_on(client) == 0;
        }
    }
}

/* Starts the processes of all clients. They wait until the other end of the pipe is closed. */
static int start_clients(const char *path, uint32_t clients, int pipe_[2]) {
    int processes = 0;
    for (uint32_t first = 1; first <= clients; first += CLIENTS_OF_A_PROCESS) {
        uint32_t end = first + CLIENTS_OF_A_PROCESS;
        pid_t child = fork();
        check_system(child, "fork");
        if (child == 0) {
            char byte;
            close(pipe_[1]);
            check_system(read(pipe_[0], &byte, 1), "read");
            be_clients(path, first, end <= clients ? end : clients + 1);
            exit(0);
        }
        processes++;
    }
    return processes;
}

/* Answers all requests that have come, until the port rests. Returns how many. */
static uint64_t answer(ayre_port *port, uint64_t *counters) {
    uint64_t answered = 0;
    do {
        struct request request;
        int client;
        while ((client = take(port, &request, sizeof request)) >= 0) {
            uint64_t *counter = &counters[request.counter % COUNTERS];
            *counter += request.add;
            check(ayre_send(port, (ayre_peer)client, 0, counter, sizeof *counter), "ayre_send");
            answered++;
        }
    } while (ayre_port_rest(port) == 0);
    return answered;
}

/* The clients that have ended. Returns how many; a failure of one is ours. */
static int ended_processes(int signals) {
    struct signalfd_siginfo signal;
    check_system(read(signals, &signal, sizeof signal), "read");
    int ended = 0, status;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        if (status != 0) {
            fprintf(stderr, "a process of clients has failed\n");
            exit(1);
        }
        ended++;
    }
    return ended;
}

int main(int argc, char **argv) {
    uint32_t clients = argc > 1 ? (uint32_t)atoi(argv[1]) : 1000;
    uint64_t counters[COUNTERS] = {0}, answered = 0, sum = 0;
    char path[64];
    int pipe_[2];
    sigset_t ends;
    snprintf(path, sizeof path, "/tmp/ayre-server-%d", (int)getpid());
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    check_system(sigprocmask(SIG_BLOCK, &ends, NULL), "sigprocmask");
    check_system(pipe(pipe_), "pipe");
    int processes = start_clients(path, clients, pipe_);

    ayre_port *port = open_port(0);
    check(ayre_port_listen(port, path), "ayre_port_listen");
    close(pipe_[1]);
    for (uint32_t i = 0; i < clients; i++) {
        check(ayre_port_accept(port), "ayre_port_accept");
    }

    enum { PORT, SIGNALS };
    int loop = epoll_create1(EPOLL_CLOEXEC), signals = signalfd(-1, &ends, SFD_CLOEXEC);
    check_system(loop, "epoll_create1");
    check_system(signals, "signalfd");
    watch(loop, ayre_port_fd(port), PORT);
    watch(loop, signals, SIGNALS);
    while (processes > 0) {
        struct epoll_event events[2];
        answered += answer(port, counters);
        int count = epoll_wait(loop, events, 2, -1);
        check_system(count, "epoll_wait");
        check(ayre_port_wake(port), "ayre_port_wake");
        for (int i = 0; i < count; i++) {
            processes -= events[i].data.u32 == SIGNALS ? ended_processes(signals) : 0;
        }
    }
    for (int i = 0; i < COUNTERS; i++) {
        sum += counters[i];
    }
    printf("%u clients, %llu requests, sum %llu\n", clients, (unsigned long long)answered,
           (unsigned long long)sum);
    ayre_port_close(port);
    return sum == (uint64_t)clients * REQUESTS * (REQUESTS + 1) / 2 ? 0 : 1;
}
