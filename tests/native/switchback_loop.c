/* switchback_loop CALLS BYTES [CODE]: broadcasts, one after the other with a little work between them. Ends with CODE. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, calls = argc > 1 ? atoi(argv[1]) : 1000, bytes = argc > 2 ? atoi(argv[2]) : 64;
    volatile double work = 0.0;
    char *buffer = calloc((size_t)bytes, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < calls; i++) {
        for (int j = 0; j < 2000; j++)
            work = work + j;
        MPI_Bcast(buffer, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    free(buffer);
    return argc > 3 ? atoi(argv[3]) : 0;
}
