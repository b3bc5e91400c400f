/* States as attributes, freed with their communicators, and at the latest in MPI_Finalize. */
#include "state.h"
#include "algorithms.h"
#include "private_comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CT__WHY = 512 }; /* bytes of a reason, with the path of a file */

static struct {
    pthread_mutex_t lock;
    atomic_int keyval; /* of states; made under the lock, read without it */
    int self_keyval;   /* of the mark on MPI_COMM_SELF, whose deletion begins MPI_Finalize */
    MPI_Comm own_comm; /* of this rank alone */
    ct_state *states;
} ct__all = {.lock = PTHREAD_MUTEX_INITIALIZER, .keyval = MPI_KEYVAL_INVALID, .self_keyval = MPI_KEYVAL_INVALID,
            .own_comm = MPI_COMM_NULL};

static void ct__link(ct_state *state)
{
    pthread_mutex_lock(&ct__all.lock);
    state->next = ct__all.states;
    if (state->next)
        state->next->previous = state;
    ct__all.states = state;
    pthread_mutex_unlock(&ct__all.lock);
}

static void ct__unlink(ct_state *state)
{
    pthread_mutex_lock(&ct__all.lock);
    if (state->previous)
        state->previous->next = state->next;
    else
        ct__all.states = state->next;
    if (state->next)
        state->next->previous = state->previous;
    pthread_mutex_unlock(&ct__all.lock);
}

static int ct__delete_state(MPI_Comm comm, int keyval, void *value, void *extra)
{
    ct_state *state = value;
    (void)comm, (void)keyval, (void)extra;
    ct__unlink(state);
    int code = state->team ? ct_team_free(state->team) : MPI_SUCCESS;
    free(state);
    return code;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF while MPI still works; those of others it need not delete. */
static int ct__finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    int states = atomic_load(&ct__all.keyval);
    while (ct__all.states != NULL)
        CT_TRY(PMPI_Comm_delete_attr(ct__all.states->comm, states));
    atomic_store(&ct__all.keyval, MPI_KEYVAL_INVALID);
    CT_TRY(PMPI_Comm_free(&ct__all.own_comm));
    CT_TRY(PMPI_Comm_free_keyval(&states));
    return PMPI_Comm_free_keyval(&ct__all.self_keyval);
}

static int ct__make_keyvals(void)
{
    int keyval;
    if (atomic_load(&ct__all.keyval) != MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    CT_TRY(ct_private_comm(MPI_COMM_SELF, &ct__all.own_comm));
    CT_TRY(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__finalize, &ct__all.self_keyval, NULL));
    CT_TRY(PMPI_Comm_set_attr(MPI_COMM_SELF, ct__all.self_keyval, &ct__all));
    CT_TRY(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_state, &keyval, NULL));
    atomic_store(&ct__all.keyval, keyval);
    return MPI_SUCCESS;
}

MPI_Comm ct_state_own_comm(void) { return ct__all.own_comm; }

int ct_state_raise(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

int ct_state_find(MPI_Comm comm, ct_state **state)
{
    int found = 0, keyval = atomic_load(&ct__all.keyval);
    *state = NULL;
    if (keyval == MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Comm_get_attr(comm, keyval, state, &found));
    if (!found)
        *state = NULL;
    return MPI_SUCCESS;
}

/* What needs no word of another rank: the same on all of them. */
static int ct__describe(ct_state *state)
{
    int inter;
    CT_TRY(PMPI_Comm_test_inter(state->comm, &inter));
    CT_TRY(PMPI_Comm_size(state->comm, &state->size));
    state->inter = inter;
    state->off = inter || state->size < 3;
    return MPI_SUCCESS;
}

static int ct__make(MPI_Comm comm, ct_state **made)
{
    pthread_mutex_lock(&ct__all.lock);
    int code = ct__make_keyvals();
    pthread_mutex_unlock(&ct__all.lock);
    CT_TRY(code);
    ct_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return ct_state_raise(comm, MPI_ERR_NO_MEM);
    state->comm = comm;
    code = ct__describe(state);
    if (code == MPI_SUCCESS)
        code = PMPI_Comm_set_attr(comm, atomic_load(&ct__all.keyval), state);
    if (code != MPI_SUCCESS) {
        free(state);
        return code;
    }
    ct__link(state);
    *made = state;
    return MPI_SUCCESS;
}

int ct_state_need(MPI_Comm comm, ct_state **state)
{
    CT_TRY(ct_state_find(comm, state));
    return *state == NULL ? ct__make(comm, state) : MPI_SUCCESS;
}

/* Pretended nodes of so many ranks, for tests: the first rank's word counts. */
static int ct__pretended(MPI_Comm comm, int *every)
{
    const char *text = getenv("COLLTUNE_ALLTOALLV_NODE");
    *every = text ? atoi(text) : 0;
    return PMPI_Bcast(every, 1, MPI_INT, 0, comm);
}

/* MPI_ERR_NO_MEM is known to all ranks, and not raised: all may go on without a team. */
static int ct__need_team(ct_state *state)
{
    int every;
    MPI_Comm private_comm;
    if (state->team != NULL)
        return MPI_SUCCESS;
    CT_TRY(ct__pretended(state->comm, &every));
    CT_TRY(ct_private_comm(state->comm, &private_comm));
    int code = ct_team_adopt(private_comm, every, &state->team);
    if (code != MPI_SUCCESS)
        PMPI_Comm_free(&private_comm);
    return code == MPI_ERR_NO_MEM ? code : ct_state_raise(state->comm, code);
}

int ct_state_team(ct_state *state, ct_team **team)
{
    int code = ct__need_team(state);
    *team = state->team;
    return code == MPI_ERR_NO_MEM ? ct_state_raise(state->comm, code) : code;
}

/* Says once, not for every communicator, that the table is of no use. */
static void ct__report(const char *why)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&reported))
        fprintf(stderr, "colltune: %s; the library's own alltoallv is used\n", why);
}

/* The first rank reads the file and tells all: none can differ. */
static int ct__share_table(ct_state *state, const char *path)
{
    char why[CT__WHY];
    const ct_team *team = state->team;
    if (team->rank == 0 && !ct_table_load(path, team->size, team->nodes.widest, &state->table, why, sizeof why))
        ct__report(why);
    CT_TRY(ct_state_raise(state->comm, PMPI_Bcast(&state->table, (int)sizeof state->table, MPI_BYTE, 0, team->comm)));
    for (int i = 1; i < state->table.choice_count; i++)
        state->table.choices[i] = ct_choice_normal(&state->table.choices[i], team->size);
    state->ready = state->table.choice_count > 1;
    state->off = !state->ready;
    ct_policy_start(&state->policy);
    return MPI_SUCCESS;
}

/* Whether the table has something for this communicator, and from which call on: the first rank's word counts. */
static int ct__look(ct_state *state)
{
    int rank;
    char why[CT__WHY];
    state->off = true;
    CT_TRY(PMPI_Comm_rank(state->comm, &rank));
    const char *path = getenv("COLLTUNE_ALLTOALLV");
    if (rank == 0)
        state->first_call = path != NULL ? ct_table_first_call(path, state->size, state->ppn, why, sizeof why) : 0;
    if (state->first_call < 0) {
        state->first_call = 0;
        ct__report(why);
    }
    CT_TRY(PMPI_Bcast(&state->first_call, 1, MPI_INT, 0, state->comm));
    state->off = state->first_call == 0;
    return MPI_SUCCESS;
}

static int ct__set_up(ct_state *state)
{
    state->off = true;
    int code = ct__need_team(state);
    if (code == MPI_ERR_NO_MEM) /* all ranks know: all stay with the library */
        return MPI_SUCCESS;
    CT_TRY(code);
    return ct__share_table(state, getenv("COLLTUNE_ALLTOALLV"));
}

int ct_state_count(ct_state *state, int ppn)
{
    state->ppn = ppn;
    if (state->ready || state->off || ++state->calls == 1)
        return MPI_SUCCESS;
    if (state->first_call == 0)
        CT_TRY(ct__look(state));
    return !state->off && state->calls >= state->first_call ? ct__set_up(state) : MPI_SUCCESS;
}
