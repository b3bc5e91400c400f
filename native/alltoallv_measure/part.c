#include "part.h"

#include <stdlib.h>

/* That which was asked for last. */
static struct {
    int nodes, ppn;
    MPI_Comm comm;
} ct__part = {.comm = MPI_COMM_NULL};

/* The members, ascending as in the job; their number, or 0 if there is no such part. */
static int ct__members(const ct_team *world, int nodes, int ppn, int *members)
{
    int count = 0;
    if (nodes < 1 || ppn < 1 || nodes > world->nodes.count)
        return 0;
    for (int node = 0; node < nodes; node++)
        if (ct_nodes_ranks(&world->nodes, node) < ppn)
            return 0;
    for (int rank = 0; rank < world->size; rank++)
        if (world->nodes.node_of[rank] < nodes && world->nodes.local_of[rank] < ppn)
            members[count++] = rank;
    return count;
}

static int ct__make(const int *members, int count, MPI_Comm *comm)
{
    MPI_Group everyone, chosen;
    int place;
    CT_TRY(MPI_Comm_group(MPI_COMM_WORLD, &everyone));
    CT_TRY(MPI_Group_incl(everyone, count, members, &chosen));
    CT_TRY(MPI_Group_rank(chosen, &place));
    if (place != MPI_UNDEFINED) /* the others may be asleep */
        CT_TRY(MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 0, comm));
    CT_TRY(MPI_Group_free(&chosen));
    return MPI_Group_free(&everyone);
}

int ct_part_forget(void)
{
    ct__part.nodes = 0;
    return ct__part.comm == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(&ct__part.comm);
}

int ct_part_get(const ct_team *world, int nodes, int ppn, MPI_Comm *comm)
{
    *comm = MPI_COMM_WORLD;
    if (nodes == world->nodes.count && nodes * ppn == world->size && ppn == world->nodes.widest)
        return MPI_SUCCESS;
    if (ct__part.nodes != nodes || ct__part.ppn != ppn) {
        int *members = malloc(sizeof(int) * (size_t)world->size);
        if (members == NULL)
            return MPI_ERR_NO_MEM;
        int count = ct__members(world, nodes, ppn, members), code = count > 0 ? ct_part_forget() : MPI_ERR_ARG;
        if (code == MPI_SUCCESS)
            code = ct__make(members, count, &ct__part.comm);
        free(members);
        CT_TRY(code);
        ct__part.nodes = nodes, ct__part.ppn = ppn;
    }
    *comm = ct__part.comm;
    return MPI_SUCCESS;
}
