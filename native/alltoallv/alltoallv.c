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

/* The library calls the error handler by itself. */
static int ct__run(ct_state *state, const ct_a2av_call *c, const ct_exchange *x, int choice, ct_statistic *statistic)
{
    state->last = state->table.choices[choice];
    return choice == CT_POLICY_LIBRARY ? ct_call_library(c)
                                       : ct_state_raise(c->comm, ct_run(state->team, x, &state->last, statistic));
}

/* The statistic of this call for the calls after it, in the messages of an algorithm that has room for it. An exchange that
 * failed has told it all the same, and every rank has to come to the same choice. */
static int ct__run_telling(ct_state *state, const ct_a2av_call *c, const ct_exchange *x, int choice)
{
    ct_statistic agreed = ct_exchange_statistic(x, state->team->rank, state->team->size);
    int code = ct__run(state, c, x, choice, &agreed);
    ct_policy_agreed(&state->policy, ct_table_find(&state->table, &agreed, state->team->size));
    return code;
}

static int ct__run_agreeing(ct_state *state, const ct_a2av_call *c, const ct_exchange *x)
{
    ct_statistic agreed = ct_exchange_statistic(x, state->team->rank, state->team->size);
    state->agreements++;
    CT_TRY(ct_state_raise(c->comm, ct__agree(state->team->comm, &agreed)));
    int choice = ct_table_find(&state->table, &agreed, state->team->size);
    ct_policy_agreed(&state->policy, choice);
    return ct__run(state, c, x, choice, &agreed);
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
    ct_statistic none = {0};
    int code = ct_state_raise(c->comm, ct_call_exchange(c, state->team->size, &x));
    /* Where the algorithm tells everybody the statistic anyway, no reduction is needed, and it is used in every call. */
    bool told = choice != CT_POLICY_LIBRARY && ct_choice_agrees(&state->table.choices[choice]);
    if (code == MPI_SUCCESS && told)
        code = ct__run_telling(state, c, &x, choice);
    else if (code == MPI_SUCCESS)
        code = agreement != CT_AGREE_NOT ? ct__run_agreeing(state, c, &x) : ct__run(state, c, &x, choice, &none);
    ct_exchange_free(&x);
    return code;
}

/* The state for a call that may be ours: not in place or between two groups, which is equal on all ranks; and not one that the
 * library will refuse, which may be this rank's alone. Such a call is made by the library, which reports it, and is
 * counted nowhere: where the program goes on and makes it again as it should be, it meets the others' call. */
static int ct__look_at(const ct_a2av_call *c, bool by_table, ct_state **state)
{
    *state = NULL;
    if (c->send == MPI_IN_PLACE || c->comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    CT_TRY(ct_state_need(c->comm, state));
    bool ours = !(*state)->inter && !(by_table && (*state)->off);
    if (!ours || !ct_call_is_sound(c, (*state)->size, ct_state_own_comm()))
        *state = NULL;
    return MPI_SUCCESS;
}

int ct_call_tuned(const ct_a2av_call *c)
{
    ct_state *state;
    CT_TRY(ct__look_at(c, true, &state));
    if (state == NULL)
        return ct_call_library(c);
    CT_TRY(ct_state_count(state, c->ppn));
    return state->ready ? ct__run_chosen(state, c) : ct_call_library(c);
}

static int ct__call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *c, ct_state *state)
{
    ct_team *team;
    ct_exchange x;
    CT_TRY(ct_state_team(state, &team));
    ct_alltoallv_choice normal = ct_choice_normal(choice, team->size);
    int code = ct_call_exchange(c, team->size, &x);
    if (code == MPI_SUCCESS) {
        ct_statistic statistic = ct_choice_agrees(&normal) ? ct_exchange_statistic(&x, team->rank, team->size) : (ct_statistic){0};
        code = ct_run(team, &x, &normal, &statistic);
    }
    ct_exchange_free(&x);
    return ct_state_raise(c->comm, code);
}

int ct_call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *c)
{
    ct_state *state;
    CT_TRY(ct__look_at(c, false, &state));
    return state == NULL || choice->algorithm == CT_ALLTOALLV_LIBRARY ? ct_call_library(c) : ct__call_by(choice, c, state);
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
