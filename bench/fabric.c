/* What a program of libfabric sees of a provider: tagged messages between two processes, a line for
 * each measure: name, value, unit. bench/fabric.sh runs rounds over several providers by turns and
 * compares them. The provider `raw` is no provider but the machine's own limit: a line of memory
 * that goes there and back, and blocks copied into a ring of shared memory and out of it.
 *
 * usage: fabric PROVIDER */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, WINDOW = 64, BATCHES = 15, LINE = 64, SLOT = 16 << 10, SLOTS = 128 };

/* What the two processes share besides the provider. */
struct line {
    _Alignas(LINE) volatile unsigned long turn;
};
struct shared {
    struct line there, back;
    char names[2][256];
    size_t lengths[2];
    struct line named[2];
    struct slot {
        _Alignas(LINE) volatile unsigned long filled;
        _Alignas(LINE) volatile unsigned long emptied;
        _Alignas(LINE) char bytes[SLOT];
    } slots[SLOTS];
};

static struct shared *shared;
static int rank;
static char *out, *in;

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t peer;

static void fail(const char *what, long code) {
    fprintf(stderr, "fabric: %s: %s\n", what, fi_strerror((int)-code));
    _exit(1);
}

static void check(const char *what, long code) {
    if (code < 0)
        fail(what, code);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one of `count` calls of `once`: the median of batches. */
static double seconds(void (*once)(size_t), size_t argument, int count) {
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (int i = 0; i < count; i++)
            once(argument);
        batches[batch] = (now() - start) / count;
    }
    qsort(batches, BATCHES, sizeof *batches, by_value);
    return batches[BATCHES / 2];
}

static void report(const char *name, size_t bytes, double value, const char *unit) {
    if (rank == 0)
        printf("%s-%zu %.4g %s\n", name, bytes, value, unit);
}

/* Until so many operations have ended. */
static void ended(size_t count) {
    struct fi_cq_tagged_entry entries[16];
    while (count > 0) {
        long read = fi_cq_read(cq, entries, count < 16 ? count : 16);
        if (read > 0)
            count -= (size_t)read;
        else if (read != -FI_EAGAIN)
            fail("fi_cq_read", read);
    }
}

static struct fi_context2 contexts[2 * WINDOW];

static void send(size_t bytes, size_t i) {
    long code;
    while ((code = fi_tsend(ep, out, bytes, NULL, peer, 7, &contexts[i])) == -FI_EAGAIN)
        fi_cq_read(cq, NULL, 0);
    check("fi_tsend", code);
}

static void receive(size_t bytes, size_t i) {
    check("fi_trecv", fi_trecv(ep, in, bytes, NULL, peer, 7, 0, &contexts[WINDOW + i]));
}

/* One message there, and one back: each side waits for its own, and for its send's end. */
static void there_and_back(size_t bytes) {
    receive(bytes, 0);
    if (rank == 0) {
        send(bytes, 0);
        ended(2);
    } else {
        ended(1);
        send(bytes, 0);
        ended(1);
    }
}

/* The first rank sends a window of messages, the second says that all have come. */
static void many(size_t bytes) {
    for (size_t i = 0; i < WINDOW; i++) {
        if (rank == 0)
            send(bytes, i);
        else
            receive(bytes, i);
    }
    ended(WINDOW);
    if (rank == 0)
        receive(1, 0);
    else
        send(1, 0);
    ended(1);
}

static void raw_line(size_t unused) {
    (void)unused;
    if (rank == 0) {
        unsigned long turn = ++shared->there.turn;
        while (shared->back.turn != turn)
            ;
    } else {
        static unsigned long turn;
        turn++;
        while (shared->there.turn != turn)
            ;
        shared->back.turn = turn;
    }
}

static unsigned long moved;

/* One way through a ring of blocks: the sender copies in, the receiver out. */
static void raw_part(int sends, char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; moved++) {
        struct slot *slot = &shared->slots[moved % SLOTS];
        size_t part = bytes - at < SLOT ? bytes - at : SLOT;
        if (sends) {
            while (slot->emptied + SLOTS < moved + 1)
                ;
            memcpy(slot->bytes, block + at, part);
            __atomic_store_n(&slot->filled, moved + 1, __ATOMIC_RELEASE);
        } else {
            while (__atomic_load_n(&slot->filled, __ATOMIC_ACQUIRE) != moved + 1)
                ;
            memcpy(block + at, slot->bytes, part);
            __atomic_store_n(&slot->emptied, moved + 1, __ATOMIC_RELEASE);
        }
        at += part;
    }
}

static void raw_blocks(size_t bytes) {
    raw_part(rank == 0, rank == 0 ? out : in, bytes);
    raw_part(rank == 1, rank == 1 ? out : in, bytes);
}

static void raw_stream(size_t bytes) {
    for (size_t i = 0; i < WINDOW; i++)
        raw_part(rank == 0, rank == 0 ? out : in, bytes);
    raw_part(rank == 1, rank == 1 ? out : in, 1);
}

/* Opens an endpoint of the provider and learns the other one's name. */
static void open_endpoint(const char *provider) {
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 1024};
    struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    size_t length = sizeof shared->names[0];
    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED | FI_MSG;
    hints->mode = ~0ULL;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
    check("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
    check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    check("fi_enable", fi_enable(ep));
    check("fi_getname", fi_getname(&ep->fid, shared->names[rank], &length));
    __atomic_store_n(&shared->named[rank].turn, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&shared->named[!rank].turn, __ATOMIC_ACQUIRE))
        sched_yield();
    check("fi_av_insert", fi_av_insert(av, shared->names[!rank], 1, &peer, 0, NULL) - 1);
}

/* Each with its processor. */
static void measure(const char *provider) {
    static const size_t sizes[] = {8, 64, 512, 4096, 16384, 65536, LONGEST};
    int is_raw = strcmp(provider, "raw") == 0;
    void (*turns)(size_t) = is_raw ? raw_blocks : there_and_back;
    void (*stream)(size_t) = is_raw ? raw_stream : many;
    if (!is_raw)
        open_endpoint(provider);
    seconds(turns, 8, 1000);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int count = sizes[i] < 2048 ? 10000 : 20 + (1 << 25) / (int)(sizes[i] + 16384);
        void (*once)(size_t) = is_raw && sizes[i] < LINE ? raw_line : turns;
        report("one-way", sizes[i], seconds(once, sizes[i], count) / 2 * 1e9, "ns");
    }
    for (size_t bytes = 8; !is_raw && bytes <= 64; bytes *= 8)
        report("rate", bytes, WINDOW / seconds(stream, bytes, 300) / 1e6, "M/s");
    for (size_t bytes = 4096; bytes <= LONGEST; bytes *= 16) {
        int count = 2 + (int)((1 << 21) / bytes);
        double each = seconds(stream, bytes, count) / WINDOW;
        report("stream", bytes, (double)bytes / each / 1e9, "GB/s");
    }
}

int main(int argc, char **argv) {
    cpu_set_t processor;
    int status = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: fabric PROVIDER\n");
        return 2;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    rank = child == 0;
    CPU_ZERO(&processor);
    CPU_SET(rank, &processor);
    sched_setaffinity(0, sizeof processor, &processor);
    out = aligned_alloc(4096, LONGEST);
    in = aligned_alloc(4096, LONGEST);
    memset(out, 1, LONGEST);
    memset(in, 2, LONGEST);
    measure(argv[1]);
    fflush(stdout);
    if (rank == 1)
        _exit(0);
    waitpid(child, &status, 0);
    return status != 0;
}
