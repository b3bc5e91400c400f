/* Prints the time in ns of one MPI_Allreduce of a double on a communicator of one rank: the library's least. `world`: on all ranks
 * of the job, in shorter groups, so that some of them are not disturbed. `handler`: with an error handler of the program's own.
 * `look`: of one MPI_Comm_get_errhandler in place of the call, with the MPI_Errhandler_free that Open MPI needs. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void look(MPI_Comm comm)
{
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(comm, &handler);
#ifdef OPEN_MPI
    MPI_Errhandler_free(&handler);
#endif
}

enum { GROUPS = 25, CALLS = 20000, SHORTER = 100 };

int main(int argc, char **argv)
{
    double in = 1.0, out, least_s = 1e9;
    MPI_Init(&argc, &argv);
    const char *mode = argc > 1 ? argv[1] : "";
    int rank, world = strcmp(mode, "world") == 0, looks = strcmp(mode, "look") == 0;
    int calls = world ? CALLS / SHORTER : CALLS, groups = world ? GROUPS * SHORTER : GROUPS;
    MPI_Comm comm = world ? MPI_COMM_WORLD : MPI_COMM_SELF;
    MPI_Errhandler handler;
    if (strcmp(mode, "handler") == 0) {
        MPI_Comm_create_errhandler(handle, &handler);
        MPI_Comm_set_errhandler(comm, handler);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int group = 0; group < groups; group++) {
        double start = MPI_Wtime();
        for (int i = 0; i < calls; i++)
            if (looks)
                look(comm);
            else
                MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);
        double elapsed = MPI_Wtime() - start;
        least_s = elapsed < least_s ? elapsed : least_s;
    }
    if (rank == 0)
        printf("%.2f\n", least_s / calls * 1e9);
    MPI_Finalize();
    return 0;
}
