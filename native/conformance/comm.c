#include "comm.h"
#include "codes.h"

#define CT__TAG_GROUP 31003
#define CT__TAG_INTER 31004
#define CT__SIDE_STRIDE 0x100000u

const char *ct_comm_kind_name(enum ct_comm_kind kind)
{
    static const char *const names[CT_COMM_COUNT] = {"direct", "dup", "reversed", "odd_even", "inter", "inter_one"};
    return names[kind];
}

bool ct_comm_is_possible(enum ct_comm_kind kind, int ranks)
{
    switch (kind) {
    case CT_COMM_ODD_EVEN:
    case CT_COMM_INTER:
        return ranks >= 2;
    case CT_COMM_INTER_ONE:
        return ranks >= 3; /* with two it is the same as halves */
    default:
        return true;
    }
}

unsigned ct_comm_identity(int side, int rank) { return (unsigned)side * CT__SIDE_STRIDE + (unsigned)rank; }

static int ct__make_group(int ranks, MPI_Comm *handle)
{
    MPI_Group world, group;
    int range[1][3] = {{0, ranks - 1, 1}};
    CT_TRY(MPI_Comm_group(MPI_COMM_WORLD, &world));
    CT_TRY(MPI_Group_range_incl(world, 1, range, &group));
    CT_TRY(MPI_Comm_create_group(MPI_COMM_WORLD, group, CT__TAG_GROUP, handle));
    CT_TRY(MPI_Group_free(&group));
    return MPI_Group_free(&world);
}

static int ct__make_inter(MPI_Comm base, int rank, int low, MPI_Comm *handle)
{
    MPI_Comm local;
    int is_high = rank >= low;
    CT_TRY(MPI_Comm_split(base, is_high, rank, &local));
    CT_TRY(MPI_Intercomm_create(local, 0, base, is_high ? 0 : low, CT__TAG_INTER, handle));
    return MPI_Comm_free(&local);
}

static int ct__make_handle(enum ct_comm_kind kind, int ranks, int rank, MPI_Comm base, MPI_Comm *handle)
{
    int world;
    switch (kind) {
    case CT_COMM_DIRECT:
        MPI_Comm_size(MPI_COMM_WORLD, &world);
        *handle = MPI_COMM_WORLD;
        return ranks == world ? MPI_SUCCESS : ct__make_group(ranks, handle);
    case CT_COMM_DUP:
        return MPI_Comm_dup(base, handle);
    case CT_COMM_REVERSED:
        return MPI_Comm_split(base, 0, -rank, handle);
    case CT_COMM_ODD_EVEN:
        return MPI_Comm_split(base, rank % 2, rank, handle);
    default:
        return ct__make_inter(base, rank, kind == CT_COMM_INTER ? (ranks + 1) / 2 : 1, handle);
    }
}

int ct_comm_make(enum ct_comm_kind kind, int ranks, MPI_Comm base, struct ct_case_comm *comm)
{
    int rank, low = (ranks + 1) / 2;
    MPI_Comm_rank(kind == CT_COMM_DIRECT ? MPI_COMM_WORLD : base, &rank);
    *comm = (struct ct_case_comm){.handle = MPI_COMM_NULL, .name = ct_comm_kind_name(kind), .plan_ranks = ranks};
    CT_TRY(ct__make_handle(kind, ranks, rank, base, &comm->handle));
    if (kind == CT_COMM_DIRECT)
        comm->name = comm->handle == MPI_COMM_WORLD ? "world" : "group";
    MPI_Comm_set_errhandler(comm->handle, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm->handle, &comm->rank);
    MPI_Comm_size(comm->handle, &comm->size);
    comm->peers = comm->size;
    if (kind == CT_COMM_ODD_EVEN)
        comm->plan_ranks = low;
    if (kind == CT_COMM_INTER || kind == CT_COMM_INTER_ONE) {
        low = kind == CT_COMM_INTER ? low : 1;
        comm->inter = true;
        MPI_Comm_remote_size(comm->handle, &comm->peers);
        comm->side = rank >= low;
        comm->peer_side = !comm->side;
        comm->plan_ranks = low > ranks - low ? low : ranks - low;
    }
    return MPI_SUCCESS;
}

void ct_comm_free(struct ct_case_comm *comm)
{
    if (comm->handle != MPI_COMM_NULL && comm->handle != MPI_COMM_WORLD)
        MPI_Comm_free(&comm->handle);
}
