/* some_sums multiple|single CODE: ten sums of 4 B, five of 64 KiB, two that do not block, three broadcasts. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char from[65536], to[65536];

int main(int argc, char **argv)
{
    int provided, rank, level = argc > 1 && strcmp(argv[1], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 5; i++)
        MPI_Allreduce(from, to, 16384, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 2; i++) {
        MPI_Request request;
        MPI_Iallreduce(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 3; i++)
        MPI_Bcast(from, 8, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    return argc > 2 ? atoi(argv[2]) : 0;
}
