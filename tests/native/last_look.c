/* Prints for how long at least each rank is held that tells at once what ran beside its launch. */
#include "watch.h"

#include <stdio.h>

int main(void)
{
    MPI_Init(NULL, NULL);
    ct_watch watch;
    char text[256];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (ct_watch_make(MPI_COMM_WORLD, &watch) != MPI_SUCCESS)
        return 1;
    ct_watch_start(&watch);
    MPI_Barrier(MPI_COMM_WORLD);
    double began_s = MPI_Wtime(), held_s, least_s;
    ct_watch_tell_whole(&watch, 0, MPI_COMM_WORLD, text, sizeof text);
    held_s = MPI_Wtime() - began_s;
    MPI_Reduce(&held_s, &least_s, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%g\n", least_s);
    ct_watch_free(&watch);
    MPI_Finalize();
    return 0;
}
