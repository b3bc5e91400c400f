/* rows_columns WIDTH STEPS BYTES: ranks in rows of WIDTH, as an FFT of a field that is cut along two of its axes has them.
 * In each step all rows exchange BYTES between any two of their ranks at once, and then all columns do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, width = argc > 1 ? atoi(argv[1]) : 2, steps = argc > 2 ? atoi(argv[2]) : 100;
    int bytes = argc > 3 ? atoi(argv[3]) : 1024;
    MPI_Comm row, column;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % width, rank, &column);
    char *send = calloc((size_t)size, (size_t)bytes), *receive = calloc((size_t)size, (size_t)bytes);
    for (int step = 0; step < steps; step++) {
        MPI_Alltoall(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, row);
        MPI_Alltoall(receive, bytes, MPI_CHAR, send, bytes, MPI_CHAR, column);
    }
    if (rank == 0)
        printf("done\n");
    free(send);
    free(receive);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    return MPI_Finalize();
}
