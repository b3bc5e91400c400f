/* Calls for a tool to count: broadcasts, reductions, gathers on two communicators, and a persistent request. */
#include <mpi.h>
#include <stdio.h>

enum { CALLS = 60 };

int main(int argc, char **argv)
{
    MPI_Comm comms[2];
    MPI_Request request;
    int rank, size, word, sum, all[64], wrong = 0, other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[1]);
    for (int i = 0; i < CALLS; i++) {
        MPI_Comm comm = comms[i % 2];
        word = rank == i % size ? i : -1;
        MPI_Bcast(&word, 1, MPI_INT, i % size, comm);
        MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, comm);
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
        wrong += word != i || sum != i * size || all[size - 1] != size - 1;
    }
    MPI_Recv_init(&other, 1, MPI_INT, rank, 5, comms[0], &request);
    MPI_Start(&request);
    MPI_Send(&rank, 1, MPI_INT, rank, 5, comms[0]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    printf("rank=%d wrong=%d\n", rank, wrong + (other != rank));
    fflush(stdout);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    MPI_Finalize();
    return 0;
}
