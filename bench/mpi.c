/* What an MPI program sees of its transport: one round of each measure, a line each: name, value,
 * unit. bench/mpi.sh runs rounds over several transports by turns and compares them.
 *
 * With `sizes N...` two ranks exchange messages of these sizes only, as `ayre perf --report` has it.
 *
 * Two ranks:  messages there and back, the shortest also in multiples of what a line of memory takes,
 *             if the ranks share any; messages in windows; puts, gets and fetch-and-ops on a window.
 * More ranks: barrier and allreduce. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 22, WINDOW = 64, BATCHES = 9 };

static int rank, ranks;
static char *out, *in;
static MPI_Win window;
static char *memory;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one of `count` calls of `once`: the median of batches. */
static double seconds(void (*once)(size_t), size_t argument, int count) {
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < count; i++)
            once(argument);
        batches[batch] = (MPI_Wtime() - start) / count;
    }
    qsort(batches, BATCHES, sizeof *batches, by_value);
    return batches[BATCHES / 2];
}

static void report(const char *name, size_t bytes, double value, const char *unit) {
    if (rank == 0 && bytes > 0)
        printf("%s-%zu %.4g %s\n", name, bytes, value, unit);
    else if (rank == 0)
        printf("%s %.4g %s\n", name, value, unit);
}

static void there_and_back(size_t bytes) {
    if (rank == 0)
        MPI_Send(out, (int)bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, (int)bytes, MPI_CHAR, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(out, (int)bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

/* Rank 0 sends a window of messages, rank 1 says that all have come. */
static void many(size_t bytes) {
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0)
            MPI_Isend(out, (int)bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(in, (int)bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(in, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static void put(size_t bytes) {
    if (rank == 0) {
        MPI_Put(out, (int)bytes, MPI_CHAR, 1, 0, (int)bytes, MPI_CHAR, window);
        MPI_Win_flush(1, window);
    }
}

static void get(size_t bytes) {
    if (rank == 0) {
        MPI_Get(out, (int)bytes, MPI_CHAR, 1, 0, (int)bytes, MPI_CHAR, window);
        MPI_Win_flush(1, window);
    }
}

static void fetch_and_op(size_t unused) {
    long one = 1, old;
    (void)unused;
    if (rank == 0) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window);
        MPI_Win_flush(1, window);
    }
}

static void barrier(size_t unused) {
    (void)unused;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(size_t unused) {
    double one = 1, sum;
    (void)unused;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* A line of memory that goes there and back: below that no message can be. */
struct line {
    _Alignas(64) volatile long turn;
};
static struct line *lines;

static void line_there_and_back(size_t unused) {
    static long turn;
    (void)unused;
    turn++;
    if (rank == 0)
        lines[0].turn = turn;
    while (lines[!rank].turn != turn)
        ;
    if (rank == 1)
        lines[1].turn = turn;
}

/* Seconds that a line takes one way; 0 where the ranks share no memory. */
static double line_seconds(void) {
    MPI_Comm host;
    MPI_Win shared;
    MPI_Aint bytes;
    int unit, here;
    double taken = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    if (here == ranks) {
        bytes = rank == 0 ? 4096 : 0;
        MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host, &lines, &shared);
        MPI_Win_shared_query(shared, 0, &bytes, &unit, &lines);
        if (rank == 0)
            lines[0].turn = lines[1].turn = 0;
        taken = seconds(line_there_and_back, 0, 10000) / 2;
        MPI_Win_free(&shared);
    }
    MPI_Comm_free(&host);
    return taken;
}

static void messages(void) {
    double line = line_seconds();
    static const size_t sizes[] = {8, 64, 512, 4096, 16384, 65536, 1 << 20, LONGEST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int count = sizes[i] < 2048 ? 10000 : 20 + (1 << 25) / (int)(sizes[i] + 16384);
        double taken = seconds(there_and_back, sizes[i], count) / 2;
        report("one-way", sizes[i], taken * 1e6, "us");
        if (sizes[i] == 8 && line > 0)
            report("one-way-of-line", 8, taken / line, "x");
    }
    if (line > 0)
        report("line", 0, line * 1e6, "us");
    for (size_t bytes = 8; bytes <= 64; bytes *= 8)
        report("rate", bytes, WINDOW / seconds(many, bytes, 500) / 1e6, "M/s");
    for (size_t bytes = 4096; bytes <= 1 << 20; bytes *= 16) {
        int count = 2 + (int)((1 << 22) / bytes);
        report("stream", bytes, (double)(WINDOW * bytes) / seconds(many, bytes, count) / 1e9, "GB/s");
    }
}

/* Messages of these sizes there and back, and in windows; few of the long ones. */
static void each_of(int count, char **sizes) {
    for (int i = 0; i < count; i++) {
        size_t bytes = strtoul(sizes[i], NULL, 10);
        if (bytes == 0 || bytes > LONGEST)
            continue;
        int often = bytes < 2048 ? 1000 : 5 + (1 << 22) / (int)(bytes + 16384);
        report("one-way", bytes, seconds(there_and_back, bytes, often) / 2 * 1e6, "us");
        double taken = seconds(many, bytes, 1 + often / WINDOW);
        report("stream", bytes, (double)(WINDOW * bytes) / taken / 1e9, "GB/s");
    }
}

/* Of memory that Open MPI has allocated, which ranks of one host may share, and of the program's. */
static void one_sided(const char *const names[3], int is_own) {
    if (is_own)
        MPI_Win_create(in, LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else
        MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    report(names[0], 8, seconds(put, 8, 5000) * 1e9, "ns");
    report(names[1], 8, seconds(get, 8, 5000) * 1e9, "ns");
    report(names[2], 8, seconds(fetch_and_op, 0, 5000) * 1e9, "ns");
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
}

static void collectives(void) {
    int count = ranks == 2 ? 5000 : 20;
    report("barrier", 0, seconds(barrier, 0, count) * 1e6, "us");
    report("allreduce", 8, seconds(allreduce, 0, count) * 1e6, "us");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    memset(out, 1, LONGEST);
    memset(in, 1, LONGEST);
    if (argc > 1 && strcmp(argv[1], "sizes") == 0) {
        if (ranks == 2)
            each_of(argc - 2, argv + 2);
    } else if (argc > 1 && strcmp(argv[1], "one-sided") == 0) {
        one_sided((const char *const[]){"put", "get", "fetch-and-op"}, 0);
        one_sided((const char *const[]){"own-put", "own-get", "own-fetch-and-op"}, 1);
    } else {
        if (ranks == 2)
            messages();
        collectives();
    }
    MPI_Finalize();
    return 0;
}
