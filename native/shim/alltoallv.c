/* MPI_Alltoallv and MPI_Alltoallw of the program, by the table in force (native/alltoallv). The table's rules are proven
 * for blocking calls, so the other forms are the library's. */
#include "shim.h"

#include "call.h"

/* The table is read when a communicator is first used for it, by one rank of it for all. */
static bool ct__start(void) { return true; }

static bool ct__carry_out(ct_call *call, int *code)
{
    if (call->form != CT_BLOCKING || (call->function != CT_ALLTOALLV && call->function != CT_ALLTOALLW))
        return false;
    if (call->function == CT_ALLTOALLW && (call->send_types == NULL || call->recv_types == NULL)) /* by these it is told apart */
        return false;
    if (call->known == NULL || call->known->nodes == 0) /* ranks of another world may be without the library */
        return false;
    ct_a2av_call made = {.send = call->send, .send_counts = call->send_counts, .send_displacements = call->send_displs,
                         .send_type = call->send_type, .send_types = call->send_types, .receive = call->recv,
                         .receive_counts = call->recv_counts, .receive_displacements = call->recv_displs,
                         .receive_type = call->recv_type, .receive_types = call->recv_types, .comm = call->comm,
                         .ppn = call->known->ppn, .wide = call->large};
    *code = ct_call_tuned(&made);
    return true;
}

const ct_module ct_alltoallv_module = {
    .name = "alltoallv", .variable = "COLLTUNE_ALLTOALLV", .start = ct__start, .carry_out = ct__carry_out};
