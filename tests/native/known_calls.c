/* Makes known numbers of collective calls of every kind, on the world, its halves, and a communicator made anew. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void blocking(MPI_Comm comm)
{
    int n, me;
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &me);
    double *in = calloc((size_t)(64 * n), sizeof *in), *out = calloc((size_t)(64 * n), sizeof *out);
    int *counts = calloc((size_t)n, sizeof *counts), *displs = calloc((size_t)n, sizeof *displs);
    for (int i = 0; i < n; i++) {
        counts[i] = i % 2 == 0 ? 4 : 0;
        displs[i] = 8 * i;
    }
    for (int i = 0; i < 3; i++)
        MPI_Barrier(comm);
    for (int i = 0; i < 5; i++)
        MPI_Bcast(in, 16, MPI_DOUBLE, i % n, comm);
    for (int i = 0; i < 7; i++)
        MPI_Allreduce(in, out, 8, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Allreduce(MPI_IN_PLACE, out, 8, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Reduce(me == 0 ? MPI_IN_PLACE : in, out, 3, MPI_DOUBLE, MPI_MAX, 0, comm);
    MPI_Gather(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, 0, comm);
    MPI_Gatherv(in, counts[me], MPI_DOUBLE, out, counts, displs, MPI_DOUBLE, 0, comm);
    MPI_Scatter(in, 2, MPI_DOUBLE, out, 2, MPI_DOUBLE, 0, comm);
    MPI_Scatterv(in, counts, displs, MPI_DOUBLE, out, counts[me], MPI_DOUBLE, 0, comm);
    MPI_Allgather(in, 4, MPI_FLOAT, out, 4, MPI_FLOAT, comm);
    MPI_Allgatherv(in, counts[me], MPI_DOUBLE, out, counts, displs, MPI_DOUBLE, comm);
    for (int i = 0; i < 2; i++)
        MPI_Alltoall(in, 8, MPI_DOUBLE, out, 8, MPI_DOUBLE, comm);
    for (int i = 0; i < n; i++)
        counts[i] = i == me ? 2 : (i + me) % 2; /* symmetric: what one sends the other receives */
    MPI_Alltoallv(in, counts, displs, MPI_DOUBLE, out, counts, displs, MPI_DOUBLE, comm);
    for (int i = 0; i < n; i++)
        counts[i] = 1;
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, comm);
    MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, comm);
    MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, comm);
    free(in), free(out), free(counts), free(displs);
}

static void other_forms(void)
{
    int in[64] = {0}, out[64] = {0};
    MPI_Request requests[2];
    for (int i = 0; i < 4; i++) {
        MPI_Ibcast(in, 5, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Iallreduce(in + 8, out, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    int *counts = calloc(2 * (size_t)size, sizeof *counts), *displs = counts + size;
    for (int i = 0; i < size; i++)
        counts[i] = (i + rank) % 2, displs[i] = i; /* symmetric */
    MPI_Ialltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    free(counts);
#ifdef PERSISTENT
    MPI_Allreduce_init(in, out, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(in + 32, 7, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
#endif
    int periods = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periods, 0, &ring);
    MPI_Neighbor_allgather(in, 3, MPI_INT, out, 3, MPI_INT, ring);
    MPI_Neighbor_alltoall(in, 3, MPI_INT, out, 3, MPI_INT, ring);
    int beside[2] = {2, 2}, at[2] = {0, 8};
    MPI_Neighbor_alltoallv(in, beside, at, MPI_INT, out, beside, at, MPI_INT, ring);
    MPI_Ineighbor_alltoallv(in, beside, at, MPI_INT, out, beside, at, MPI_INT, ring, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocking(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        for (int j = 0; j < 10; j++)
            MPI_Allreduce(MPI_IN_PLACE, &(int){1}, 1, MPI_INT, MPI_SUM, half);
        MPI_Comm_free(&half);
    }
    other_forms();
    if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == size - 1)
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (argc > 1 && strcmp(argv[1], "crash") == 0 && rank == size - 1)
        abort();
    if (argc > 1)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
