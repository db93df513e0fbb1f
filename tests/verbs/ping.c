/* Ping between the first and the last rank, then a sum over all: prints the one-way time and the sum. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, ranks, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double start_s = MPI_Wtime();
    if (rank == 0)
        MPI_Send(&one, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD);
    if (rank == 0 || rank == ranks - 1)
        MPI_Recv(&one, 1, MPI_INT, ranks - 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == ranks - 1)
        MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    double one_way_s = (MPI_Wtime() - start_s) / 2;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("one way %.0f us, sum %d of %d\n", one_way_s * 1e6, sum, ranks);
    MPI_Finalize();
    return sum != ranks;
}
