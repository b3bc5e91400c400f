/* Walks the sizes of -m FIRST:LAST as the OSU Micro-Benchmarks do, and prints the mean time of a broadcast over ranks.
 * Rank 0 notes each start in the file OSU_STARTS names. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    long first = 1, last = 1 << 10;
    int calls = 20, rank, size;
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "-m") == 0)
            sscanf(argv[i + 1], "%ld:%ld", &first, &last);
        else if (strcmp(argv[i], "-i") == 0)
            calls = atoi(argv[i + 1]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *buffer = calloc((size_t)last, 1);
    FILE *starts = rank == 0 && getenv("OSU_STARTS") != NULL ? fopen(getenv("OSU_STARTS"), "a") : NULL;
    if (starts != NULL) {
        fprintf(starts, "%d ranks, %ld:%ld, %d calls\n", size, first, last, calls);
        fclose(starts);
    }
    if (rank == 0)
        printf("# OSU MPI Broadcast Latency Test\n# Size       Avg Latency(us)\n");
    for (long bytes = first; bytes <= last; bytes *= 2) {
        double own = 0.0, sum = 0.0;
        for (int i = 0; i < calls; i++) {
            double start = MPI_Wtime();
            MPI_Bcast(buffer, (int)bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
            own += (MPI_Wtime() - start) / calls;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Reduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%-10ld %18.2f\n", bytes, 1e6 * sum / size);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
