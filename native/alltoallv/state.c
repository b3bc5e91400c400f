/* States as attributes, freed with their communicators, and at the latest in MPI_Finalize. */
#include "state.h"
#include "algorithms.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    int keyval;      /* of states */
    int self_keyval; /* of the mark on MPI_COMM_SELF, whose deletion begins MPI_Finalize */
    ct_state *states;
} ct__all = {.lock = PTHREAD_MUTEX_INITIALIZER, .keyval = MPI_KEYVAL_INVALID, .self_keyval = MPI_KEYVAL_INVALID};

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
    while (ct__all.states != NULL)
        CT_TRY(PMPI_Comm_delete_attr(ct__all.states->comm, ct__all.keyval));
    CT_TRY(PMPI_Comm_free_keyval(&ct__all.keyval));
    return PMPI_Comm_free_keyval(&ct__all.self_keyval);
}

static int ct__make_keyvals(void)
{
    if (ct__all.keyval != MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__finalize, &ct__all.self_keyval, NULL));
    CT_TRY(PMPI_Comm_set_attr(MPI_COMM_SELF, ct__all.self_keyval, &ct__all));
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete_state, &ct__all.keyval, NULL);
}

int ct_state_find(MPI_Comm comm, ct_state **state)
{
    int found = 0;
    *state = NULL;
    if (ct__all.keyval == MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    return PMPI_Comm_get_attr(comm, ct__all.keyval, state, &found);
}

static int ct__make(MPI_Comm comm, ct_state **made)
{
    pthread_mutex_lock(&ct__all.lock);
    int code = ct__make_keyvals();
    pthread_mutex_unlock(&ct__all.lock);
    CT_TRY(code);
    ct_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return MPI_ERR_NO_MEM;
    state->comm = comm;
    code = PMPI_Comm_set_attr(comm, ct__all.keyval, state);
    if (code != MPI_SUCCESS) {
        free(state);
        return code;
    }
    ct__link(state);
    *made = state;
    return MPI_SUCCESS;
}

static int ct__find_or_make(MPI_Comm comm, ct_state **state)
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

static int ct__need_team(ct_state *state)
{
    int every;
    if (state->team != NULL)
        return MPI_SUCCESS;
    CT_TRY(ct__pretended(state->comm, &every));
    return ct_team_make(state->comm, every, &state->team);
}

int ct_state_team(MPI_Comm comm, ct_team **team)
{
    ct_state *state;
    CT_TRY(ct__find_or_make(comm, &state));
    CT_TRY(ct__need_team(state));
    *team = state->team;
    return MPI_SUCCESS;
}

/* The first rank reads the file and tells all: none can differ. */
static int ct__share_table(ct_state *state, const char *path)
{
    char why[256];
    const ct_team *team = state->team;
    if (team->rank == 0 && !ct_table_load(path, team->size, team->widest, &state->table, why, sizeof why))
        fprintf(stderr, "colltune: %s; the library's own alltoallv is used\n", why);
    CT_TRY(PMPI_Bcast(&state->table, (int)sizeof state->table, MPI_BYTE, 0, team->comm));
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
    int inter, rank, size;
    CT_TRY(PMPI_Comm_test_inter(state->comm, &inter));
    state->off = true;
    if (inter)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Comm_rank(state->comm, &rank));
    CT_TRY(PMPI_Comm_size(state->comm, &size));
    if (size < 3)
        return MPI_SUCCESS;
    const char *path = getenv("COLLTUNE_ALLTOALLV");
    if (rank == 0)
        state->first_call = path != NULL ? ct_table_first_call(path, size) : 0;
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

int ct_state_for_table(MPI_Comm comm, ct_state **found)
{
    ct_state *state;
    *found = NULL;
    CT_TRY(ct__find_or_make(comm, &state));
    if (!state->ready && !state->off) {
        if (++state->calls == 1)
            return MPI_SUCCESS;
        if (state->first_call == 0)
            CT_TRY(ct__look(state));
        if (!state->off && state->calls >= state->first_call)
            CT_TRY(ct__set_up(state));
    }
    if (state->ready)
        *found = state;
    return MPI_SUCCESS;
}
