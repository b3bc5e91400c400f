/* Ten calls of each communicator, of which not all ranks leave a profile: `lost_ranks spawn|kill|_exit [CODE]`. The last
 * rank is killed, or leaves by _exit; or another rank is spawned. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 10 };

static void ct__sums(MPI_Comm comm)
{
    double in = 1, out;
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comm);
}

static void ct__with_spawned(char *self, MPI_Comm parent)
{
    MPI_Comm others = parent, merged;
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
    ct__sums(others);
    MPI_Intercomm_merge(others, parent != MPI_COMM_NULL, &merged);
    ct__sums(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&others);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, pair;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    ct__sums(MPI_COMM_WORLD);
    if (parent != MPI_COMM_NULL || (argc > 1 && strcmp(argv[1], "spawn") == 0))
        ct__with_spawned(argv[0], parent);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    ct__sums(pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1 && argc > 1 && strcmp(argv[1], "kill") == 0)
        raise(SIGKILL);
    if (rank == size - 1 && argc > 1 && strcmp(argv[1], "_exit") == 0)
        _exit(argc > 2 ? atoi(argv[2]) : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
