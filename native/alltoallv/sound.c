/* Whether the library would take a call, as far as this rank can tell before anything is sent. */
#include "call.h"

/* The library's own word, without an error handler of the program: a message to nobody, which reads nothing. It has one
 * element, because MPICH lets any type pass where there is none. */
static bool ct__has_type(MPI_Datatype type, MPI_Comm comm)
{
    enum { TAG = 1 };
    char nothing = 0;
    return type != MPI_DATATYPE_NULL && PMPI_Send(&nothing, 1, type, MPI_PROC_NULL, TAG, comm) == MPI_SUCCESS;
}

/* Where there is no block, its type may be anything. */
static bool ct__has_types(const ct_side *side, const MPI_Datatype *types, int size, MPI_Comm comm)
{
    MPI_Datatype last = MPI_DATATYPE_NULL;
    for (int peer = 0; peer < size; peer++) {
        if (ct_side_count(side, peer) == 0 || types[peer] == last)
            continue;
        if (!ct__has_type(types[peer], comm))
            return false;
        last = types[peer];
    }
    return true;
}

/* Not where a buffer that was forgotten would be: the library has an error for it, and copying would end the program. */
static bool ct__is_somewhere(const ct_side *side, int block, MPI_Datatype type, bool by_bytes)
{
    enum { FIRST_PAGE = 4096 };
    ct_side placed;
    if (side->base != NULL || ct_side_set(&placed, NULL, side->counts, side->displacements, type, side->wide) != MPI_SUCCESS)
        return true;
    if (by_bytes)
        placed.stride = 1;
    return !placed.plain || (uintptr_t)ct_side_at(&placed, block) >= FIRST_PAGE; /* else MPI_BOTTOM */
}

/* `types`: of MPI_Alltoallw; NULL: `type` for all. */
static bool ct__is_sound(const ct_side *side, MPI_Datatype type, const MPI_Datatype *types, int size, MPI_Comm comm)
{
    int first = size; /* that is not empty */
    if (side->counts == NULL || side->displacements == NULL)
        return false;
    for (int peer = size - 1; peer >= 0; peer--) {
        int64_t count = ct_side_count(side, peer);
        if (count < 0)
            return false;
        if (count > 0)
            first = peer;
    }
    if (!(types ? ct__has_types(side, types, size, comm) : ct__has_type(type, comm)))
        return false;
    return first == size || ct__is_somewhere(side, first, types ? types[first] : type, types != NULL);
}

bool ct_call_is_sound(const ct_a2av_call *c, int size, MPI_Comm own_comm)
{
    ct_side send = {.base = (char *)(uintptr_t)c->send, .counts = c->send_counts, .displacements = c->send_displacements, .wide = c->wide};
    ct_side receive = {.base = c->receive, .counts = c->receive_counts, .displacements = c->receive_displacements, .wide = c->wide};
    return (c->send_types == NULL) == (c->receive_types == NULL) &&
           ct__is_sound(&send, c->send_type, c->send_types, size, own_comm) &&
           ct__is_sound(&receive, c->receive_type, c->receive_types, size, own_comm);
}
