/* The functions of colltune_alltoallv.h, for programs that call them by name.
 *
 * The state is an attribute of the communicator, since MPI_Comm_free may not come by here where this library is opened by dlopen.
 * Where it is linked it does, and no attribute is set while the others of its communicator are deleted: MPICH would hang. Where
 * libcolltune.so is preloaded and has a table in force, its registry is used. */
#include "call.h"
#include "algorithms.h"
#include "private_comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CT__WHY = 512 }; /* bytes of a reason, with the path of a file */

typedef struct ct__kept {
    ct_state *state;
    int size;               /* of the local group */
    bool inter;
    struct ct__kept *older; /* all that there are */
} ct__kept;

static struct {
    pthread_mutex_t lock;
    int keyval, self_keyval; /* of states; of the mark on MPI_COMM_SELF, whose deletion begins MPI_Finalize */
    MPI_Comm own_comm;       /* of this rank alone: its errors come back as codes */
    ct__kept *latest;
    bool read, over;
    ct_table_rules rules;    /* of the file, once read */
} ct__all = {.lock = PTHREAD_MUTEX_INITIALIZER, .keyval = MPI_KEYVAL_INVALID, .own_comm = MPI_COMM_NULL};

const ct_state *(*ct_plain_wrapped)(MPI_Comm);
static _Thread_local MPI_Comm ct__ending = MPI_COMM_NULL; /* this thread is freeing it */

static int ct__end(MPI_Comm *comm, int (*library_s)(MPI_Comm *))
{
    MPI_Comm outer = ct__ending;
    if (comm != NULL)
        ct__ending = *comm;
    int code = library_s(comm);
    ct__ending = outer;
    return code;
}

CT_PUBLIC int MPI_Comm_free(MPI_Comm *comm) { return ct__end(comm, PMPI_Comm_free); }
CT_PUBLIC int MPI_Comm_disconnect(MPI_Comm *comm) { return ct__end(comm, PMPI_Comm_disconnect); }

static int ct__raise(MPI_Comm comm, int code)
{
    if (code != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(comm, code);
    return code;
}

static void ct__release(ct__kept *kept)
{
    ct_state_free(kept->state);
    free(kept);
}

static int ct__delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    pthread_mutex_lock(&ct__all.lock);
    ct__kept **link = &ct__all.latest;
    while (*link != NULL && *link != value)
        link = &(*link)->older;
    ct__kept *kept = *link; /* NULL: MPI_Finalize has begun */
    if (kept != NULL)
        *link = kept->older;
    pthread_mutex_unlock(&ct__all.lock);
    if (kept != NULL)
        ct__release(kept);
    return MPI_SUCCESS;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF while MPI still works; those of others it need not delete. Nor are those
 * deleted that were set while a communicator's attributes were: its handle must not be looked at. */
static int ct__finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)value, (void)extra;
    while (ct__all.latest != NULL) {
        ct__kept *kept = ct__all.latest;
        ct__all.latest = kept->older;
        ct__release(kept);
    }
    ct_table_forget(&ct__all.rules);
    ct__all.over = true;
    CT_TRY(ct_private_comm_free(&ct__all.own_comm));
    CT_TRY(PMPI_Comm_free_keyval(&ct__all.keyval));
    return PMPI_Comm_free_keyval(&ct__all.self_keyval);
}

static int ct__start(void)
{
    int keyval;
    if (ct__all.keyval != MPI_KEYVAL_INVALID)
        return MPI_SUCCESS;
    CT_TRY(ct_private_comm(MPI_COMM_SELF, true, &ct__all.own_comm));
    CT_TRY(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__finalize, &ct__all.self_keyval, NULL));
    CT_TRY(PMPI_Comm_set_attr(MPI_COMM_SELF, ct__all.self_keyval, &ct__all));
    CT_TRY(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__delete, &keyval, NULL));
    ct__all.keyval = keyval;
    return MPI_SUCCESS;
}

static int ct__make(MPI_Comm comm, ct__kept **made)
{
    int inter;
    CT_TRY(PMPI_Comm_test_inter(comm, &inter));
    ct__kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL || (kept->state = calloc(1, sizeof *kept->state)) == NULL) {
        free(kept);
        return MPI_ERR_NO_MEM;
    }
    kept->inter = inter;
    int code = PMPI_Comm_size(comm, &kept->size);
    if (code == MPI_SUCCESS)
        code = PMPI_Comm_set_attr(comm, ct__all.keyval, kept);
    if (code != MPI_SUCCESS) {
        ct__release(kept);
        return code;
    }
    kept->state->off = inter || kept->size < 3;
    pthread_mutex_lock(&ct__all.lock);
    kept->older = ct__all.latest;
    ct__all.latest = kept;
    pthread_mutex_unlock(&ct__all.lock);
    *made = kept;
    return MPI_SUCCESS;
}

/* What is kept for a call that may be ours: not in place or between two groups, which is equal on all ranks; and not one that the
 * library will refuse, which may be this rank's alone. Such a call is made by the library, which reports it, and is
 * counted nowhere: where the program goes on and makes it again as it should be, it meets the others' call. */
static int ct__look_at(const ct_a2av_call *c, ct__kept **kept)
{
    int is_kept = 0;
    *kept = NULL;
    if (ct__all.over || c->send == MPI_IN_PLACE || c->comm == MPI_COMM_NULL)
        return MPI_SUCCESS;
    pthread_mutex_lock(&ct__all.lock);
    int code = ct__start();
    pthread_mutex_unlock(&ct__all.lock);
    if (code == MPI_SUCCESS)
        code = PMPI_Comm_get_attr(c->comm, ct__all.keyval, kept, &is_kept);
    if (code == MPI_SUCCESS && !is_kept && c->comm == ct__ending)
        return code;
    if (code == MPI_SUCCESS && !is_kept)
        code = ct__make(c->comm, kept);
    if (code != MPI_SUCCESS || (*kept)->inter || !ct_call_is_sound(c, (*kept)->size, ct__all.own_comm))
        *kept = NULL;
    return code;
}

/* The rules of COLLTUNE_ALLTOALLV, read once. */
static const ct_table_rules *ct__rules(void)
{
    size_t length;
    char why[CT__WHY] = "it cannot be read";
    const char *path = getenv("COLLTUNE_ALLTOALLV");
    pthread_mutex_lock(&ct__all.lock);
    char *text = path != NULL && !ct__all.read ? ct_rules_load(path, &length) : NULL;
    bool fine = text != NULL && ct_table_parse(text, &ct__all.rules, why, sizeof why);
    if (path != NULL && !ct__all.read && !fine)
        fprintf(stderr, "colltune: %s (%s); the library's own alltoallv is used\n", why, path);
    ct__all.read = true;
    pthread_mutex_unlock(&ct__all.lock);
    free(text);
    return &ct__all.rules;
}

static int ct__leaders(const void *of, MPI_Comm comm, int *leaders)
{
    (void)of;
    return ct_nodes_leaders(comm, leaders);
}

/* Counts a call, and sets up where it is time. The first rank reads the file and tells all: none can differ. Collective, but for the
 * first call, so that communicators for one call cost nothing. */
static int ct__count(ct__kept *kept, MPI_Comm comm)
{
    ct_state *state = kept->state;
    int rank, call = 0;
    if (state->ready || state->off || ++state->calls == 1 || state->calls < state->set_up_at)
        return MPI_SUCCESS;
    CT_TRY(PMPI_Comm_rank(comm, &rank));
    if (state->set_up_at == 0) {
        if (rank == 0)
            call = ct_table_first_call(ct__rules(), kept->size, 0);
        CT_TRY(PMPI_Bcast(&call, 1, MPI_INT, 0, comm));
        state->set_up_at = call;
        state->off = call == 0;
        if (state->off || state->calls < call)
            return MPI_SUCCESS;
    }
    state->set_up_at = 2 * state->calls;
    CT_TRY(ct_state_team(state, comm, ct__leaders, NULL));
    if (state->team == NULL)
        return MPI_SUCCESS;
    if (rank == 0)
        ct_table_fill(ct__rules(), kept->size, state->team->nodes.widest, &state->table);
    CT_TRY(PMPI_Bcast(&state->table, (int)sizeof state->table, MPI_BYTE, 0, state->team->comm));
    ct_state_begin(state);
    return MPI_SUCCESS;
}

static int ct__by(const ct_alltoallv_choice *choice, const ct_a2av_call *c, ct_state *state)
{
    ct_exchange x;
    CT_TRY(ct_state_team(state, c->comm, ct__leaders, NULL));
    if (state->team == NULL)
        return MPI_ERR_NO_MEM;
    ct_team *team = state->team;
    ct_alltoallv_choice normal = ct_choice_normal(choice, team->size);
    int code = ct_call_exchange(c, team->size, &x);
    ct_statistic statistic = {0};
    if (code == MPI_SUCCESS && ct_choice_agrees(&normal))
        statistic = ct_exchange_statistic(&x, team->rank, team->size);
    if (code == MPI_SUCCESS)
        code = ct_run(team, &x, &normal, &statistic);
    ct_exchange_free(&x);
    return code;
}

int ct_call_by(const ct_alltoallv_choice *choice, const ct_a2av_call *c)
{
    ct__kept *kept;
    int code = ct__look_at(c, &kept);
    if (code == MPI_SUCCESS && (kept == NULL || choice->algorithm == CT_ALLTOALLV_LIBRARY))
        return ct_call_library(c);
    return ct__raise(c->comm, code == MPI_SUCCESS ? ct__by(choice, c, kept->state) : code);
}

#define CT__CALL                                                                                              \
    (ct_a2av_call){.send = sendbuf, .send_counts = sendcounts, .send_displacements = sdispls, .send_type = sendtype, \
              .receive = recvbuf, .receive_counts = recvcounts, .receive_displacements = rdispls,               \
              .receive_type = recvtype, .comm = comm}

int ct_alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                 const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
    ct_a2av_call call = CT__CALL;
    ct__kept *kept;
    if (ct_plain_wrapped != NULL) /* then this is ours */
        return MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm);
    int code = ct__look_at(&call, &kept);
    if (code == MPI_SUCCESS && kept != NULL)
        code = ct__count(kept, comm);
    if (code == MPI_SUCCESS && (kept == NULL || !kept->state->ready || !ct_call_tuned(kept->state, &call, &code)))
        return ct_call_library(&call);
    return ct__raise(comm, code);
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
    ct__kept *kept = NULL;
    int is_kept = 0;
    if (ct_plain_wrapped == NULL && ct__all.keyval != MPI_KEYVAL_INVALID)
        CT_TRY(PMPI_Comm_get_attr(comm, ct__all.keyval, &kept, &is_kept));
    const ct_state *state = ct_plain_wrapped != NULL ? ct_plain_wrapped(comm) : is_kept ? kept->state : NULL;
    *choice = state == NULL ? (ct_alltoallv_choice){0} : state->last;
    return MPI_SUCCESS;
}
