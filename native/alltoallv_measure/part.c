#include "part.h"

#include <stdlib.h>

enum { CT__PARTS = 64 };

static struct {
    int nodes, ppn; /* 0: not used */
    MPI_Comm comm;
} ct__parts[CT__PARTS];
static int ct__next;

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

static int ct__make(const int *members, int count, int tag, MPI_Comm *comm)
{
    MPI_Group everyone, chosen;
    int place;
    CT_TRY(MPI_Comm_group(MPI_COMM_WORLD, &everyone));
    CT_TRY(MPI_Group_incl(everyone, count, members, &chosen));
    CT_TRY(MPI_Group_rank(chosen, &place));
    *comm = MPI_COMM_NULL;
    if (place != MPI_UNDEFINED) /* the others may be asleep */
        CT_TRY(MPI_Comm_create_group(MPI_COMM_WORLD, chosen, tag, comm));
    CT_TRY(MPI_Group_free(&chosen));
    return MPI_Group_free(&everyone);
}

static int ct__release(int slot)
{
    ct__parts[slot].nodes = 0;
    return ct__parts[slot].comm == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(&ct__parts[slot].comm);
}

int ct_part_get(const ct_team *world, int nodes, int ppn, MPI_Comm *comm)
{
    *comm = MPI_COMM_WORLD;
    if (nodes == world->nodes.count && nodes * ppn == world->size && ppn == world->nodes.widest)
        return MPI_SUCCESS;
    for (int slot = 0; slot < CT__PARTS; slot++)
        if (ct__parts[slot].nodes == nodes && ct__parts[slot].ppn == ppn) {
            *comm = ct__parts[slot].comm;
            return MPI_SUCCESS;
        }
    int slot = ct__next++ % CT__PARTS, *members = malloc(sizeof(int) * (size_t)world->size);
    if (members == NULL)
        return MPI_ERR_NO_MEM;
    int count = ct__members(world, nodes, ppn, members), code = count > 0 ? MPI_SUCCESS : MPI_ERR_ARG;
    if (code == MPI_SUCCESS && ct__parts[slot].nodes > 0)
        code = ct__release(slot);
    if (code == MPI_SUCCESS)
        code = ct__make(members, count, slot, &ct__parts[slot].comm);
    free(members);
    if (code == MPI_SUCCESS)
        ct__parts[slot].nodes = nodes, ct__parts[slot].ppn = ppn, *comm = ct__parts[slot].comm;
    return code;
}

int ct_part_forget(void)
{
    for (int slot = 0; slot < CT__PARTS; slot++)
        if (ct__parts[slot].nodes > 0)
            CT_TRY(ct__release(slot));
    return MPI_SUCCESS;
}
