/* A tool as profilers are: counts a program's calls by their MPI_ names, with the communicators that it was told of, and makes
 * them by their PMPI_ names. In MPI_Finalize the first rank prints the sums over the ranks. */
#include "collectives.h"
#include <mpi.h>
#include <stdio.h>

enum { MOST = 4096 };
static MPI_Comm known[MOST];
static int known_count;
static long calls[6], strange; /* strange: on a communicator that no call has made */

static void note(int which, MPI_Comm comm)
{
    int found = comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF;
    for (int i = 0; i < MOST && i < known_count; i++)
        found = found || known[i] == comm;
    calls[which]++;
    strange += !found;
}

int MPI_Comm_dup(MPI_Comm from, MPI_Comm *made)
{
    int code = PMPI_Comm_dup(from, made);
    known[known_count++ % MOST] = *made;
    return code;
}

int MPI_Comm_split(MPI_Comm from, int color, int key, MPI_Comm *made)
{
    int code = PMPI_Comm_split(from, color, key, made);
    known[known_count++ % MOST] = *made;
    return code;
}

#define COUNTED(WHICH, NAME, SIGNATURE)                        \
    int MPI_##NAME CT_PARAMETERS(SIGNATURE, BLOCKING, int, int) \
    {                                                          \
        note(WHICH, comm);                                     \
        return PMPI_##NAME CT_ARGUMENTS(SIGNATURE, BLOCKING);  \
    }
COUNTED(0, Bcast, BCAST)
COUNTED(1, Allreduce, ALLREDUCE)
COUNTED(2, Allgather, ALLTOALL)
COUNTED(3, Barrier, BARRIER)

int MPI_Start(MPI_Request *request)
{
    calls[4]++;
    return PMPI_Start(request);
}

int MPI_Request_free(MPI_Request *request)
{
    calls[5]++;
    return PMPI_Request_free(request);
}

int MPI_Finalize(void)
{
    long sums[7], own[7];
    int rank;
    for (int i = 0; i < 6; i++)
        own[i] = calls[i];
    own[6] = strange;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(own, sums, 7, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("tool bcast=%ld allreduce=%ld allgather=%ld barrier=%ld start=%ld free=%ld strange=%ld\n", sums[0], sums[1],
               sums[2], sums[3], sums[4], sums[5], sums[6]);
    return PMPI_Finalize();
}
