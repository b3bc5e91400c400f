/* The tuned call: the choice, the exchange. */
#include "algorithms.h"
#include "call.h"
#include "private_comm.h"

#include <stdlib.h>

#define CT__BY(NAME, TYPE)                                                                                             \
    PMPI_##NAME(c->send, c->send_counts, c->send_displacements, c->send_##TYPE, c->receive, c->receive_counts,         \
                c->receive_displacements, c->receive_##TYPE, c->comm)

int ct_call_library(const ct_a2av_call *c)
{
#if MPI_VERSION >= 4
    if (c->wide)
        return c->send_types ? CT__BY(Alltoallw_c, types) : CT__BY(Alltoallv_c, type);
#endif
    return c->send_types ? CT__BY(Alltoallw, types) : CT__BY(Alltoallv, type);
}

int ct_call_exchange(const ct_a2av_call *c, int size, ct_exchange *x)
{
    void *send = (void *)(uintptr_t)c->send; /* read only; MPI's own prototypes drop the const nowhere else */
    *x = (ct_exchange){0};
    if (c->send_types) {
        CT_TRY(ct_side_set_types(&x->send, send, c->send_counts, c->send_displacements, c->send_types, c->wide, size));
        return ct_side_set_types(&x->receive, c->receive, c->receive_counts, c->receive_displacements, c->receive_types,
                                 c->wide, size);
    }
    CT_TRY(ct_side_set(&x->send, send, c->send_counts, c->send_displacements, c->send_type, c->wide));
    return ct_side_set(&x->receive, c->receive, c->receive_counts, c->receive_displacements, c->receive_type, c->wide);
}

void ct_exchange_free(ct_exchange *x)
{
    ct_side_free(&x->send);
    ct_side_free(&x->receive);
}

static int ct__agree(MPI_Comm comm, ct_statistic *statistic)
{
    ct_statistic mine = *statistic;
    return PMPI_Allreduce(&mine, statistic, 2, MPI_INT64_T, MPI_MAX, comm);
}

bool ct_call_tuned(ct_state *state, const ct_a2av_call *c, int *code)
{
    ct_team *team = state->team;
    int choice = CT_POLICY_LIBRARY;
    ct_agreement agreement = ct_policy_begin(&state->policy, &choice);
    ct_exchange x = {0};
    ct_statistic statistic = {0};
    /* Where the algorithm tells everybody the statistic anyway, no reduction is needed, and it is used in every call. */
    bool agrees = choice != CT_POLICY_LIBRARY && ct_choice_agrees(&state->table.choices[choice]);
    *code = MPI_SUCCESS;
    if (agreement != CT_AGREE_NOT || choice != CT_POLICY_LIBRARY)
        *code = ct_call_exchange(c, team->size, &x);
    if (*code == MPI_SUCCESS && (agrees || agreement != CT_AGREE_NOT))
        statistic = ct_exchange_statistic(&x, team->rank, team->size);
    if (*code == MPI_SUCCESS && !agrees && agreement != CT_AGREE_NOT) {
        *code = ct__agree(team->comm, &statistic);
        choice = ct_table_find(&state->table, &statistic, team->size);
        ct_policy_agreed(&state->policy, choice);
    }
    state->last = state->table.choices[choice];
    if (*code == MPI_SUCCESS && choice != CT_POLICY_LIBRARY)
        *code = ct_run(team, &x, &state->last, &statistic);
    /* An exchange that failed has told it all the same, and every rank has to come to the same choice. */
    if (agrees)
        ct_policy_agreed(&state->policy, ct_table_find(&state->table, &statistic, team->size));
    ct_exchange_free(&x);
    return *code != MPI_SUCCESS || choice != CT_POLICY_LIBRARY;
}

int ct_state_team(ct_state *state, MPI_Comm comm, ct_team_nodes *leaders, const void *of)
{
    MPI_Comm private_comm;
    if (state->team != NULL || ct_private_comm(comm, true, &private_comm) != MPI_SUCCESS)
        return MPI_SUCCESS;
    int code = ct_team_make(private_comm, leaders, of, &state->team);
    if (code != MPI_SUCCESS)
        ct_private_comm_free(&private_comm);
    return code == MPI_ERR_NO_MEM ? MPI_SUCCESS : code;
}

void ct_state_begin(ct_state *state)
{
    state->ready = state->table.choice_count > 1;
    state->off = !state->ready;
    ct_policy_start(&state->policy);
}

void ct_state_free(ct_state *state)
{
    if (state != NULL && state->team != NULL) {
        ct_private_comm_free(&state->team->comm);
        ct_team_free(state->team);
    }
    free(state);
}
