/* Sums into memory that it has just allocated, and frees it: with the thresholds of a fresh program each MPI_Allreduce meets
 * page faults. The argument: how often. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    enum { COUNT = 1 << 18 };
    MPI_Init(&argc, &argv);
    int times = argc > 1 ? atoi(argv[1]) : 100;
    for (int i = 0; i < times; i++) {
        float *from = malloc(COUNT * sizeof *from), *to = malloc(COUNT * sizeof *to), *more = malloc(COUNT * sizeof *more);
        memset(from, 0, COUNT * sizeof *from);
        more[i] = 1.0f;
        MPI_Allreduce(from, to, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        free(from);
        free(to);
        free(more);
    }
    MPI_Finalize();
    return 0;
}
