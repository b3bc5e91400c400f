/* What a program's error handlers meet when the live selector chooses. The handler is changed after the first call. Prints on rank
 * 0, of sums over all ranks: calls of the present handler, of the former one, on another communicator, results that were wrong. */
#include <mpi.h>
#include <stdio.h>

enum { MOST = 64 };

static MPI_Comm comm;
static int former, present, elsewhere;

static void note(MPI_Comm *where)
{
    int same;
    MPI_Comm_compare(*where, comm, &same);
    elsewhere += same != MPI_IDENT;
}

static void handle_first(MPI_Comm *where, int *code, ...) { (void)code, former++, note(where); }
static void handle(MPI_Comm *where, int *code, ...) { (void)code, present++, note(where); }

int main(int argc, char **argv)
{
    int rank, size, bad = 0, mine[MOST], all[MOST], one = 1, sum[4];
    MPI_Errhandler handlers[2];
    MPI_Datatype uncommitted;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_create_errhandler(handle_first, &handlers[0]);
    MPI_Comm_create_errhandler(handle, &handlers[1]);
    MPI_Comm_set_errhandler(comm, handlers[0]);
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    for (int call = 0; call < 3; call++) {
        mine[0] = 10 * rank + call;
        MPI_Allgather(mine, 1, MPI_INT, all, 1, MPI_INT, comm);
        for (int i = 0; i < size; i++)
            bad += all[i] != 10 * i + call;
        if (call == 0)
            MPI_Comm_set_errhandler(comm, handlers[1]);
        MPI_Allgather(mine, 1, uncommitted, all, 1, uncommitted, comm);
        MPI_Allgather(mine, -1, MPI_INT, all, -1, MPI_INT, comm);
        MPI_Allgather(mine, 1, MPI_DATATYPE_NULL, all, 1, MPI_DATATYPE_NULL, comm);
        MPI_Allreduce(&one, all, 1, MPI_INT, MPI_OP_NULL, comm);
    }
    int figures[] = {present, former, elsewhere, bad};
    MPI_Reduce(figures, sum, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d %d %d %d\n", sum[0], sum[1], sum[2], sum[3]);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
    MPI_Type_free(&uncommitted);
    MPI_Finalize();
    return 0;
}
