/* MPI_Alltoallv and MPI_Alltoallw of the program, by the table in force (native/alltoallv), and their persistent forms
 * (native/alltoallv_plan). */
#include "shim.h"

#include "call.h"
#include "persistent.h"

/* The table is read when a communicator is first used for it, by one rank of it for all. */
static bool ct__start(void) { return true; }

static bool ct__carry_out(ct_call *call, int *code)
{
    bool ours = call->form != CT_NONBLOCKING && (call->function == CT_ALLTOALLV || call->function == CT_ALLTOALLW);
    if (!ours)
        return false;
    ct_a2av_call made = {.send = call->send, .send_counts = call->send_counts, .send_displacements = call->send_displs,
                         .send_type = call->send_type, .send_types = call->send_types, .receive = call->recv,
                         .receive_counts = call->recv_counts, .receive_displacements = call->recv_displs,
                         .receive_type = call->recv_type, .receive_types = call->recv_types, .comm = call->comm,
                         .wide = call->large};
    if (call->form == CT_PERSISTENT) {
        *code = ct_persistent_init(&made, call->request, &ours);
        if (*code != MPI_SUCCESS)
            PMPI_Comm_call_errhandler(call->comm, *code);
        return ours || *code != MPI_SUCCESS;
    }
    *code = ct_call_tuned(&made);
    return true;
}

const ct_module ct_alltoallv_module = {
    .name = "alltoallv", .variable = "COLLTUNE_ALLTOALLV", .start = ct__start, .carry_out = ct__carry_out,
    .request_started = ct_persistent_started, .request_freed = ct_persistent_freed};
