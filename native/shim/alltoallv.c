/* MPI_Alltoallv and MPI_Alltoallw of the program, by the table in force (native/alltoallv). The table's rules are proven
 * for blocking calls, so the other forms are the library's. */
#include "shim.h"

#include "call.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>

/* The same on all ranks. */
static ct_table_rules ct__rules;

static const ct_state *ct__state_of(MPI_Comm comm)
{
    const ct_comm *known = ct_comm_get(comm);
    return known == NULL ? NULL : known->data[CT_MODULE_ALLTOALLV];
}

static bool ct__start(void)
{
    const char *path = getenv("COLLTUNE_ALLTOALLV");
    char *text = ct_select_read(path), why[CT_RULES_WHY] = "it cannot be read";
    bool fine = text != NULL && ct_table_parse(text, &ct__rules, why, sizeof why);
    free(text);
    if (ct_all(ct_job.comm, fine)) {
        ct_plain_wrapped = ct__state_of;
        return true;
    }
    if (ct_job.rank == 0)
        fprintf(stderr, "colltune: %s (%s); the library's own alltoallv is used\n", fine ? "another rank lacks memory" : why, path);
    return false;
}

static bool ct__wants(ct_function function, ct_form form)
{
    return form == CT_BLOCKING && (function == CT_ALLTOALLV || function == CT_ALLTOALLW);
}

/* Ranks of another world may be without the library. */
static ct_state *ct__make(const ct_comm *known)
{
    ct_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return NULL;
    if (known->remote_size == 0 && known->nodes > 0 && known->size > 2)
        state->set_up_at = ct_table_first_call(&ct__rules, known->size, known->ppn);
    state->off = state->set_up_at == 0;
    return state;
}

/* Counts a call that all ranks make, and sets up where it is time. The calls before that go to the library, so that
 * communicators for few calls cost nothing. */
static int ct__count(ct_state *state, const ct_comm *known)
{
    if (state->ready || ++state->calls < state->set_up_at)
        return MPI_SUCCESS;
    state->set_up_at = 2 * state->calls;
    int code = ct_state_team(state, known->handle, ct_comm_leaders, known);
    if (code != MPI_SUCCESS || state->team == NULL)
        return code;
    ct_table_fill(&ct__rules, known->size, known->ppn, &state->table);
    ct_state_begin(state);
    return MPI_SUCCESS;
}

static bool ct__carry_out(ct_call *call, int *code)
{
    if (!ct__wants(call->function, call->form) || call->send == MPI_IN_PLACE)
        return false;
    if (call->function == CT_ALLTOALLW && (call->send_types == NULL || call->recv_types == NULL)) /* by these it is told apart */
        return false;
    ct_a2av_call made = {.send = call->send, .send_counts = call->send_counts, .send_displacements = call->send_displs,
                         .send_type = call->send_type, .send_types = call->send_types, .receive = call->recv,
                         .receive_counts = call->recv_counts, .receive_displacements = call->recv_displs,
                         .receive_type = call->recv_type, .receive_types = call->recv_types, .comm = call->comm,
                         .wide = call->large};
    ct_state *state = call->known->data[CT_MODULE_ALLTOALLV];
    if (state == NULL)
        call->known->data[CT_MODULE_ALLTOALLV] = state = ct__make(call->known);
    if (state != NULL && (state->off || !ct_call_is_sound(&made, call->known->size, ct_job.comm)))
        return false;
    *code = state == NULL ? MPI_ERR_NO_MEM : ct__count(state, call->known);
    if (*code == MPI_SUCCESS && (!state->ready || !ct_call_tuned(state, &made, code)))
        return false;
    return call->elsewhere = true;
}

static void ct__comm_freed(ct_comm *comm)
{
    ct_state_free(comm->data[CT_MODULE_ALLTOALLV]);
    comm->data[CT_MODULE_ALLTOALLV] = NULL;
}

static void ct__stop(void)
{
    ct_plain_wrapped = NULL;
    ct_table_forget(&ct__rules);
}

const ct_module ct_alltoallv_module = {.start = ct__start,
                                       .wants = ct__wants,
                                       .carry_out = ct__carry_out,
                                       .comm_freed = ct__comm_freed,
                                       .stop = ct__stop};
