/* Counts the primes below two million. The first half of the ranks produce tasks, the others take
 * them: a task goes to the next worker whose queue has room, so that all have work.
 *
 *   make install PREFIX=/usr/local && ldconfig
 *   cc -o work_queue capi/examples/work_queue.c $(pkg-config --cflags --libs ayre)
 *   ayre run -n 4 -- ./work_queue
 */
#include <ayre.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT 2000000u
#define NUMBERS_OF_A_TASK 1000u
#define RANKS_MAX 1024
#define RESULTS 1 /* the name of the region with the counts, and that of the workers' queues */
#define TASKS 2

struct task { /* an empty one ends its producer's tasks */
    uint32_t first, end;
};

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

static uint64_t primes(struct task task) {
    uint64_t found = 0;
    for (uint32_t number = task.first; number < task.end; number++) {
        uint32_t divisor = 2;
        while (divisor * divisor <= number && number % divisor != 0) {
            divisor++;
        }
        found += number >= 2 && divisor * divisor > number;
    }
    return found;
}

/* Whether a task has found room in a queue. */
static int has_room(ayre_port *port, ayre_remote_queue *queue, struct task task) {
    int code = ayre_enqueue(port, queue, &task, sizeof task);
    if (code == AYRE_BUSY_QUEUE) {
        check(ayre_progress(port), "ayre_progress");
        return 0;
    }
    check(code, "ayre_enqueue");
    return 1;
}

/* Enqueues each task of this producer, and then the end of its tasks to all workers. */
static void produce(ayre_port *port, int producers, int ranks) {
    static ayre_remote_queue *queues[RANKS_MAX];
    int rank = ayre_port_rank(port), worker = producers;
    for (int other = producers; other < ranks; other++) {
        check(ayre_accept_queue(port, (ayre_peer)other, TASKS, &queues[other]),
              "ayre_accept_queue");
    }
    uint32_t all = (uint32_t)producers * NUMBERS_OF_A_TASK;
    for (uint32_t first = (uint32_t)rank * NUMBERS_OF_A_TASK; first < LIMIT; first += all) {
        uint32_t end = first + NUMBERS_OF_A_TASK;
        struct task task = {first, end < LIMIT ? end : LIMIT};
        do {
            worker = worker + 1 < ranks ? worker + 1 : producers;
        } while (!has_room(port, queues[worker], task));
    }
    for (int other = producers; other < ranks; other++) {
        struct task last = {0, 0};
        while (!has_room(port, queues[other], last)) {
        }
        check(ayre_remote_queue_close(queues[other]), "ayre_remote_queue_close");
    }
}

/* Takes tasks until all producers have ended, and adds what it finds to a word of rank 0. */
static void work(ayre_port *port, int producers) {
    ayre_queue *queue;
    ayre_remote_region *counts;
    check(ayre_create_queue(port, 1024, &queue), "ayre_create_queue");
    for (int producer = 0; producer < producers; producer++) {
        check(ayre_share_queue(port, (ayre_peer)producer, queue, TASKS), "ayre_share_queue");
    }
    check(ayre_accept_region(port, 0, RESULTS, &counts), "ayre_accept_region");
    uint64_t offset = 8 * (uint64_t)ayre_port_rank(port);
    while (producers > 0) {
        struct task task;
        ayre_record record;
        check(ayre_dequeue_wait(port, queue, &task, sizeof task, &record, -1),
              "ayre_dequeue_wait");
        if (task.end == 0) {
            producers--;
        } else {
            check(ayre_fetch_add(port, counts, offset, primes(task), NULL), "ayre_fetch_add");
        }
    }
    check(ayre_remote_region_close(counts), "ayre_remote_region_close");
    check(ayre_queue_close(queue), "ayre_queue_close");
}

int main(void) {
    ayre_port *port;
    check(ayre_port_join(NULL, &port), "ayre_port_join");
    int rank = ayre_port_rank(port), ranks = ayre_port_size(port), producers = ranks / 2;
    if (producers == 0) {
        fprintf(stderr, "start two ranks or more\n");
        return 1;
    }
    ayre_region *region = NULL; /* of rank 0: a word for each worker */
    if (rank == 0) {
        ayre_range words = {0, 8 * (size_t)ranks};
        check(ayre_alloc(port, words.end, 0, &region), "ayre_alloc");
        for (int worker = producers; worker < ranks; worker++) {
            check(ayre_share(port, (ayre_peer)worker, region, words, AYRE_UPDATE, RESULTS, NULL),
                  "ayre_share");
        }
    }
    if (rank < producers) {
        produce(port, producers, ranks);
    } else {
        work(port, producers);
    }
    check(ayre_barrier(port), "ayre_barrier");
    if (rank == 0) {
        uint64_t all = 0;
        const uint64_t *found = (const uint64_t *)ayre_region_address(region);
        for (int worker = producers; worker < ranks; worker++) {
            printf("worker %d found %llu\n", worker, (unsigned long long)found[worker]);
            all += found[worker];
        }
        printf("%llu primes below %u\n", (unsigned long long)all, LIMIT);
        ayre_region_close(region);
    }
    check(ayre_port_leave(port), "ayre_port_leave");
    return 0;
}
