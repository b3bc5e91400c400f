/* Prints which algorithms of Open MPI run in one call of each collective, per size. Run it with algorithm_names.c
 * preloaded.
 *
 * Arguments: sizes in bytes, as colltune names them: a block for allgather(v), alltoall, gather and scatter, the whole vector
 * for the others, rounded up to a multiple of the ranks for reduce_scatter_block. Lines: collective, size, names.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern const char *ct_algorithms(void) __attribute__((weak));

static const char *const names[] = { "allgather", "allreduce", "alltoall", "barrier", "bcast", "gather",
                                     "reduce", "reduce_scatter", "reduce_scatter_block", "exscan", "scan", "scatter",
                                     "allgatherv" };
enum { COLLECTIVES = sizeof names / sizeof *names };

static void call(int collective, const char *in, char *out, int bytes, int ranks, int rank)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int *counts = calloc((size_t) ranks, 3 * sizeof *counts), *whole = counts + ranks, *at = whole + ranks;
    if (counts == NULL)
        MPI_Abort(comm, 2);
    for (int i = 0; i < ranks; i++)
        counts[i] = bytes / ranks + (i < bytes % ranks), whole[i] = bytes, at[i] = i * bytes;
    switch (collective) {
        case 0: MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm); break;
        case 1: MPI_Allreduce(in, out, bytes, MPI_BYTE, MPI_BOR, comm); break;
        case 2: MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm); break;
        case 3: MPI_Barrier(comm); break;
        case 4: MPI_Bcast(out, bytes, MPI_BYTE, 0, comm); break;
        case 5: MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, 0, comm); break;
        case 6: MPI_Reduce(in, out, bytes, MPI_BYTE, MPI_BOR, 0, comm); break;
        case 7: MPI_Reduce_scatter(in, out, counts, MPI_BYTE, MPI_BOR, comm); break;
        case 8: MPI_Reduce_scatter_block(in, out, (bytes + ranks - 1) / ranks, MPI_BYTE, MPI_BOR, comm); break;
        case 9: MPI_Exscan(in, out, bytes, MPI_BYTE, MPI_BOR, comm); break;
        case 10: MPI_Scan(in, out, bytes, MPI_BYTE, MPI_BOR, comm); break;
        case 12: MPI_Allgatherv(in, bytes, MPI_BYTE, out, whole, at, MPI_BYTE, comm); break;
        /* What is of no significance off the root is not given, as an application may do. */
        default: MPI_Scatter(rank ? NULL : in, rank ? 0 : bytes, rank ? MPI_DATATYPE_NULL : MPI_BYTE, out, bytes,
                             MPI_BYTE, 0, comm);
    }
    free(counts);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ct_algorithms == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *in = calloc((size_t) (bytes + 1) * (size_t) ranks + 1, 1), *out = calloc((size_t) (bytes + 1) * (size_t) ranks + 1, 1);
        if (in == NULL || out == NULL)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int c = 0; c < COLLECTIVES; c++) {
            ct_algorithms();
            call(c, in, out, bytes, ranks, rank);
            if (rank == 0)
                printf("%s %d %s\n", names[c], bytes, ct_algorithms());
        }
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
