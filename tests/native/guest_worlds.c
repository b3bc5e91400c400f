/* Collectives with ranks that do not have what this one has preloaded: `guest_worlds spawn|plain|many [COMMUNICATORS]`. */
#include "guest_cases.h"

static int ct__exchange(MPI_Comm comm)
{
    int wrong = 0;
    for (int round = 0; round < 4; round++)
        wrong += wrong_results(comm, 40 + round);
    return wrong;
}

/* With two more ranks, without the library. */
static int ct__exchange_with_spawned(char *self)
{
    MPI_Comm children, merged;
    char *arguments[] = {"-u", "LD_PRELOAD", self, "child", NULL};
    MPI_Comm_spawn("/usr/bin/env", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(children, 0, &merged);
    int wrong = ct__exchange(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&children);
    return wrong;
}

/* The first rank has many communicators of its own, the others none. */
static void ct__keep(int count, int rank)
{
    for (int i = 0; i < count && rank == 0; i++) {
        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        MPI_Barrier(own);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent, merged;
    int rank, wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Intercomm_merge(parent, 1, &merged);
        wrong = ct__exchange(merged);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return wrong;
    }
    if (strcmp(argv[1], "spawn") == 0)
        wrong = ct__exchange_with_spawned(argv[0]);
    else {
        ct__keep(argc > 2 ? atoi(argv[2]) : 0, rank);
        wrong = ct__exchange(MPI_COMM_WORLD);
    }
    printf("rank=%d wrong=%d\n", rank, wrong);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
