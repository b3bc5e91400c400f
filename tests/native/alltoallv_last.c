/* Preloaded behind libcolltune: at the end rank 0 says which algorithm its last MPI_Alltoallv on MPI_COMM_WORLD took. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int MPI_Finalize(void)
{
    int choice[4] = {0}, rank;
    int (*last)(MPI_Comm, void *);
    const char *(*name)(int);
    *(void **)&last = dlsym(RTLD_DEFAULT, "ct_alltoallv_last");
    *(void **)&name = dlsym(RTLD_DEFAULT, "ct_alltoallv_name");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && last != NULL && name != NULL && last(MPI_COMM_WORLD, choice) == MPI_SUCCESS)
        printf("last %s\n", name(choice[0]));
    return PMPI_Finalize();
}
