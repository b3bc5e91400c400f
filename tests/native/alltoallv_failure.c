/* A persistent exchange whose blocks cannot be packed: PMPI_Pack of libcolltune comes here, and fails. Prints the error class
 * that MPI_Wait returns on the first rank. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int PMPI_Pack(const void *in, int n, MPI_Datatype type, void *out, int bytes, int *at, MPI_Comm comm)
{
    (void)in, (void)n, (void)type, (void)out, (void)bytes, (void)at, (void)comm;
    return MPI_ERR_OTHER;
}

int main(int argc, char **argv)
{
    enum { MOST = 64 };
    int rank, size, class = MPI_SUCCESS, counts[MOST], places[MOST], sent[2 * MOST] = {0}, received[2 * MOST];
    MPI_Datatype spaced;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Type_create_resized(MPI_INT, 0, 2 * (int)sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < size; i++)
        counts[i] = 1, places[i] = i;
    MPI_Alltoallv_init(sent, counts, places, spaced, received, counts, places, spaced, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    if (rank == 0)
        printf("%s\n", class == MPI_ERR_TRUNCATE ? "truncated" : class == MPI_SUCCESS ? "success" : "other");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0); /* messages that never come are waited for: no way to end well */
}
