/* What an MPI's collectives take: a line each, name and bytes, value, unit, with the names of
 * engine/examples/collectives.rs, which measures the same over Ayre. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 1 << 20, BLOCK = 64 << 10, BATCHES = 9 };

static int rank, ranks;
static double *vector, *out, *in;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of batches of calls, in microseconds. */
static void measure(const char *name, int bytes, void (*once)(int)) {
    double batches[BATCHES];
    int count = bytes < 2048 ? 400 : 2 + (1 << 20) / bytes;
    for (int batch = 0; batch < BATCHES; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < count; i++)
            once(bytes / 8);
        batches[batch] = (MPI_Wtime() - start) * 1e6 / count;
    }
    qsort(batches, BATCHES, sizeof *batches, by_value);
    if (rank == 0)
        printf("%s-%d %.3f us\n", name, bytes, batches[BATCHES / 2]);
}

static void barrier(int unused) {
    (void)unused;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(int count) {
    MPI_Allreduce(MPI_IN_PLACE, vector, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void broadcast(int count) {
    MPI_Bcast(vector, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allgather(int count) {
    MPI_Allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void alltoall(int count) {
    MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    static const int sizes[] = {8, 1024, 16 << 10, 64 << 10, 1 << 20};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    vector = calloc(LONGEST, 1);
    out = calloc((size_t)ranks, BLOCK);
    in = calloc((size_t)ranks, BLOCK);
    measure("barrier", 0, barrier);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        measure("allreduce", sizes[i], allreduce);
        measure("broadcast", sizes[i], broadcast);
        if (sizes[i] <= BLOCK) {
            measure("allgather", sizes[i], allgather);
            measure("alltoall", sizes[i], alltoall);
        }
    }
    MPI_Finalize();
    return 0;
}
