/* Prints how many messages all ranks together send in one call of each collective, per size.
 *
 * Arguments: sizes in bytes, multiples of 4, as colltune names them: the block per rank for allgather and alltoall,
 * the whole vector for the others. Lines: collective, size, messages. Run it with send_count.c preloaded.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern long ct_sends(void) __attribute__((weak));

enum {
    ALLGATHER, ALLREDUCE, ALLTOALL, BARRIER, BCAST, REDUCE, IALLGATHER, IALLREDUCE, IALLTOALL, IBCAST, N_COLLECTIVES
};
static const char *const names[] = {
    "allgather", "allreduce", "alltoall", "barrier", "bcast", "reduce", "iallgather", "iallreduce", "ialltoall", "ibcast"
};

static void call(int collective, const char *in, char *out, int bytes)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (collective) {
        case IALLGATHER:
            MPI_Iallgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
            break;
        case IALLREDUCE:
            MPI_Iallreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
            break;
        case IALLTOALL:
            MPI_Ialltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
            break;
        case IBCAST:
            MPI_Ibcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
            break;
        case ALLGATHER:
            MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
            break;
        case ALLREDUCE:
            MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            break;
        case ALLTOALL:
            MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
            break;
        case BARRIER:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case BCAST:
            MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
            break;
        default:
            MPI_Reduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
            break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (ct_sends == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *in = calloc((size_t) bytes * size + 1, 1), *out = calloc((size_t) bytes * size + 1, 1);
        if (in == NULL || out == NULL)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int c = 0; c < N_COLLECTIVES; c++) {
            long sent, total;
            MPI_Barrier(MPI_COMM_WORLD);
            sent = ct_sends();
            call(c, in, out, bytes);
            sent = ct_sends() - sent;
            MPI_Reduce(&sent, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
            if (rank == 0)
                printf("%s %d %ld\n", names[c], bytes, total);
        }
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
