/* Reduces one byte onto each rank in turn, by an operation whose order matters: a call of the smallest size there is. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* A byte is the map x -> a x + b modulo 16: a in the upper half, b in the lower. */
static unsigned char compose(unsigned char left, unsigned char right)
{
    unsigned a = (left >> 4) * (right >> 4), b = (left >> 4) * (right & 15) + (left & 15);
    return (unsigned char)((a & 15) << 4 | (b & 15));
}

static void apply(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++)
        ((unsigned char *)inout)[i] = compose(((unsigned char *)in)[i], ((unsigned char *)inout)[i]);
}

static unsigned char value_of(int rank)
{
    return (unsigned char)((2 * rank + 3) << 4 | (5 * rank + 1) % 16);
}

static int check(MPI_Comm comm, MPI_Op op, int owner)
{
    int rank, size, wrong;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int *counts = calloc((size_t)size, sizeof *counts);
    counts[owner] = 1;
    unsigned char mine = value_of(rank), expected = value_of(0), result = 0;
    for (int other = 1; other < size; other++)
        expected = compose(expected, value_of(other));
    MPI_Reduce_scatter(&mine, &result, counts, MPI_UNSIGNED_CHAR, op, comm);
    wrong = rank == owner && result != expected;
    if (wrong)
        printf("wrong: reduce_scatter of one byte onto rank %d of %d\n", owner, size);
    free(counts);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Op op;
    MPI_Op_create(apply, 0, &op);
    for (int ranks = 2; ranks <= size; ranks++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, rank, &comm);
        for (int owner = 0; owner < ranks && rank < ranks; owner++)
            wrong += check(comm, op, owner);
        if (comm != MPI_COMM_NULL)
            MPI_Comm_free(&comm);
    }
    MPI_Op_free(&op);
    MPI_Finalize();
    return wrong ? 1 : 0;
}
