/* Prints how often a reduction calls its operation on each rank, and for how many bytes: which algorithm ran.
 *
 * Arguments: allreduce, reduce or reduce_scatter, then sizes of the vector in bytes. Lines: size, then calls/bytes of
 * each rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int calls, bytes;

static void join(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    calls++;
    bytes += *count;
    for (int i = 0; i < *count; i++)
        ((unsigned char *)inout)[i] |= ((unsigned char *)in)[i];
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op_create(join, 1, &op);
    int *all = calloc(2 * (size_t)ranks, sizeof *all), *counts = calloc((size_t)ranks, sizeof *counts);
    for (int i = 2; i < argc; i++) {
        int size = atoi(argv[i]), own[2];
        unsigned char *in = calloc((size_t)size + 1, 1), *out = calloc((size_t)size + 1, 1);
        if (in == NULL || out == NULL || all == NULL || counts == NULL)
            MPI_Abort(MPI_COMM_WORLD, 2);
        memset(in, 1 << rank % 8, (size_t)size);
        for (int r = 0; r < ranks; r++)
            counts[r] = size / ranks + (r < size % ranks);
        calls = bytes = 0;
        if (strcmp(argv[1], "allreduce") == 0)
            MPI_Allreduce(in, out, size, MPI_BYTE, op, MPI_COMM_WORLD);
        else if (strcmp(argv[1], "reduce") == 0)
            MPI_Reduce(in, out, size, MPI_BYTE, op, 0, MPI_COMM_WORLD);
        else
            MPI_Reduce_scatter(in, out, counts, MPI_BYTE, op, MPI_COMM_WORLD);
        own[0] = calls;
        own[1] = bytes;
        MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
        for (int r = 0; r < ranks && rank == 0; r++)
            printf("%s%s%d/%d%s", r == 0 ? argv[i] : "", r == 0 ? " " : "", all[2 * r], all[2 * r + 1], r == ranks - 1 ? "\n" : " ");
        free(in);
        free(out);
    }
    MPI_Op_free(&op);
    MPI_Finalize();
    return 0;
}
