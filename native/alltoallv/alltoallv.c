/* The tuned call: the state of a communicator, the choice, the exchange. */
#include "algorithms.h"
#include "call.h"
#include "state.h"

#include <stdlib.h>

int ct_call_library(const ct_a2av_call *c)
{
#if MPI_VERSION >= 4
    if (c->wide && c->send_types)
        return PMPI_Alltoallw_c(c->send, c->send_counts, c->send_displacements, c->send_types, c->receive,
                                c->receive_counts, c->receive_displacements, c->receive_types, c->comm);
    if (c->wide)
        return PMPI_Alltoallv_c(c->send, c->send_counts, c->send_displacements, c->send_type, c->receive,
                                c->receive_counts, c->receive_displacements, c->receive_type, c->comm);
#endif
    if (c->send_types)
        return PMPI_Alltoallw(c->send, c->send_counts, c->send_displacements, c->send_types, c->receive,
                              c->receive_counts, c->receive_displacements, c->receive_types, c->comm);
    return PMPI_Alltoallv(c->send, c->send_counts, c->send_displacements, c->send_type, c->receive, c->receive_counts,
                          c->receive_displacements, c->receive_type, c->comm);
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

static int ct__run(ct_state *state, const ct_a2av_call *c, const ct_exchange *x, int choice, ct_statistic *statistic)
{
    state->last = state->table.choices[choice];
    return choice == CT_POLICY_LIBRARY ? ct_call_library(c) : ct_run(state->team, x, &state->last, statistic);
}

/* The statistic of this call for the calls after it, in the messages of an algorithm that has room for it. */
static int ct__run_telling(ct_state *state, const ct_a2av_call *c, const ct_exchange *x, int choice)
{
    ct_statistic agreed = ct_exchange_statistic(x, state->team->rank, state->team->size);
    CT_TRY(ct__run(state, c, x, choice, &agreed));
    ct_policy_agreed(&state->policy, ct_table_find(&state->table, &agreed, state->team->size));
    return MPI_SUCCESS;
}

static int ct__run_chosen(ct_state *state, const ct_a2av_call *c)
{
    int choice = CT_POLICY_LIBRARY;
    ct_agreement agreement = ct_policy_begin(&state->policy, &choice);
    if (agreement == CT_AGREE_NOT && choice == CT_POLICY_LIBRARY) {
        state->last = state->table.choices[CT_POLICY_LIBRARY];
        return ct_call_library(c);
    }
    ct_exchange x;
    int code = ct_call_exchange(c, state->team->size, &x);
    /* Where the algorithm tells everybody the statistic anyway, no reduction is needed, and it is used in every call. */
    bool told = choice != CT_POLICY_LIBRARY && ct_choice_agrees(&state->table.choices[choice]);
    if (code == MPI_SUCCESS && !told && agreement != CT_AGREE_NOT) {
        ct_statistic agreed = ct_exchange_statistic(&x, state->team->rank, state->team->size);
        code = ct__agree(state->team->comm, &agreed);
        state->agreements++;
        if (code == MPI_SUCCESS) {
            choice = ct_table_find(&state->table, &agreed, state->team->size);
            ct_policy_agreed(&state->policy, choice);
            code = ct__run(state, c, &x, choice, &agreed);
        }
    } else if (code == MPI_SUCCESS) {
        ct_statistic none = {0};
        code = told ? ct__run_telling(state, c, &x, choice) : ct__run(state, c, &x, choice, &none);
    }
    ct_exchange_free(&x);
    return code;
}

/* In place, or between two groups: equal on all ranks, so all go to the library. */
static int ct__is_plain_call(const ct_a2av_call *c, bool *plain)
{
    int inter;
    *plain = false;
    if (c->send == MPI_IN_PLACE)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Comm_test_inter(c->comm, &inter));
    *plain = !inter;
    return MPI_SUCCESS;
}

static int ct__reported(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

int ct_call_tuned(const ct_a2av_call *c)
{
    ct_state *state;
    if (c->send == MPI_IN_PLACE)
        return ct_call_library(c);
    int code = ct_state_for_table(c->comm, &state);
    if (code != MPI_SUCCESS)
        return ct__reported(c->comm, code);
    if (state == NULL) /* nothing to choose on this communicator */
        return ct_call_library(c);
    code = ct__run_chosen(state, c);
    return state->last.algorithm == CT_ALLTOALLV_LIBRARY ? code : ct__reported(c->comm, code); /* the library reports its own */
}

static int ct__call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *c)
{
    ct_team *team;
    ct_exchange x;
    CT_TRY(ct_state_team(c->comm, &team));
    ct_alltoallv_choice normal = ct_choice_normal(choice, team->size);
    int code = ct_call_exchange(c, team->size, &x);
    if (code == MPI_SUCCESS) {
        ct_statistic statistic = ct_choice_agrees(&normal) ? ct_exchange_statistic(&x, team->rank, team->size) : (ct_statistic){0};
        code = ct_run(team, &x, &normal, &statistic);
    }
    ct_exchange_free(&x);
    return code;
}

int ct_call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *c)
{
    bool plain;
    int code = ct__is_plain_call(c, &plain);
    if (code == MPI_SUCCESS && (!plain || choice->algorithm == CT_ALLTOALLV_LIBRARY))
        return ct_call_library(c);
    return ct__reported(c->comm, code == MPI_SUCCESS ? ct__call_by(choice, c) : code);
}

#define CT__CALL                                                                                              \
    (ct_a2av_call){.send = sendbuf, .send_counts = sendcounts, .send_displacements = sdispls, .send_type = sendtype, \
              .receive = recvbuf, .receive_counts = recvcounts, .receive_displacements = rdispls,               \
              .receive_type = recvtype, .comm = comm}

int ct_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                 const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    ct_a2av_call call = CT__CALL;
    return ct_call_tuned(&call);
}

int ct_alltoallv_by(const ct_alltoallv_choice *choice, const void *sendbuf, const int sendcounts[], const int sdispls[],
                    MPI_Datatype sendtype, void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,
                    MPI_Comm comm)
{
    ct_a2av_call call = CT__CALL;
    return ct_call_by(choice, &call);
}

int ct_alltoallv_last(MPI_Comm comm, ct_alltoallv_choice *choice)
{
    ct_state *state;
    *choice = (ct_alltoallv_choice){0};
    CT_TRY(ct_state_find(comm, &state));
    if (state != NULL)
        *choice = state->last;
    return MPI_SUCCESS;
}
