/* Each rank says who and where it is, what rank 0 read, and what reached it by the environment. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char *ct__variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL ? "-" : value;
}

int main(int argc, char **argv)
{
    int rank, size;
    char word[16] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && scanf("%15s", word) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    printf("%d of %d on %s [%s] [%s]\n", rank, size, ct__variable("SLURM_NODEID"), word, ct__variable("COLLTUNE_TEST"));
    MPI_Finalize();
    return 0;
}
