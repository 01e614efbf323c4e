// Two ranks or more hand a number around; each adds one.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, number = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    if (rank > 0) {
        MPI_Recv(&number, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        number++;
    }
    MPI_Send(&number, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("counted %d of %d\n", number, size);
    }
    MPI_Finalize();
    return 0;
}
