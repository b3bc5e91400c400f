/* Requests of MPI_Alltoallv_init, by their handles. */
#include "persistent.h"

#include "plan.h"
#include "progress.h"
#include "state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Two tags for each plan, below the least that MPI promises. */
enum { CT__FIRST_TAG = 1024, CT__PLANS_MOST = (32767 - CT__FIRST_TAG) / 2 };

typedef struct ct__operation {
    MPI_Request handle;
    MPI_Request told[2]; /* to this rank itself: it went well; or one byte too many, so that waiting gives an error */
    ct_plan *plan;
    bool active, failed;
    struct ct__operation *next;
} ct__operation;

static struct {
    pthread_mutex_t lock;
    ct__operation *operations;
    atomic_int count; /* of operations */
    int active;
    bool polled;
} ct__all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Inside this file's own calls of MPI_Start and MPI_Request_free, which come by here again. */
static _Thread_local bool ct__inside;

/* Tells the waiting receive. */
static void ct__finish(ct__operation *operation, int code)
{
    operation->active = false;
    operation->failed = code != MPI_SUCCESS;
    ct__all.active--;
    PMPI_Start(&operation->told[operation->failed]);
}

/* Every plan as far as it goes. The lock is only tried: its holder may be in MPI, which called us. */
static bool ct__poll(void)
{
    if (ct__inside || pthread_mutex_trylock(&ct__all.lock) != 0)
        return true;
    ct__inside = true;
    for (ct__operation *one = ct__all.operations; one != NULL && ct__all.active > 0; one = one->next) {
        bool done;
        if (!one->active)
            continue;
        int code = ct_plan_advance(one->plan, &done);
        if (code == MPI_SUCCESS && done)
            code = ct_plan_end(one->plan);
        if (code != MPI_SUCCESS || done)
            ct__finish(one, code);
    }
    bool on = ct__all.active > 0;
    ct__all.polled = on;
    ct__inside = false;
    pthread_mutex_unlock(&ct__all.lock);
    return on;
}

static ct__operation *ct__find(MPI_Request handle)
{
    ct__operation *one = ct__all.operations;
    while (one != NULL && one->handle != handle)
        one = one->next;
    return one;
}

static int ct__begin(ct__operation *operation)
{
    bool done;
    CT_TRY(PMPI_Wait(&operation->told[operation->failed], MPI_STATUS_IGNORE)); /* of the start before; nothing at first */
    operation->active = true;
    ct__all.active++;
    CT_TRY(ct_plan_begin(operation->plan));
    CT_TRY(ct_plan_advance(operation->plan, &done));
    if (!ct__all.polled)
        CT_TRY(ct_progress_start(ct__poll));
    ct__all.polled = true;
    return MPI_SUCCESS;
}

void ct_persistent_started(MPI_Request request)
{
    if (atomic_load(&ct__all.count) == 0 || ct__inside)
        return;
    pthread_mutex_lock(&ct__all.lock);
    ct__operation *operation = ct__find(request);
    if (operation != NULL) {
        ct__inside = true;
        int code = ct__begin(operation);
        if (code != MPI_SUCCESS)
            ct__finish(operation, code);
        ct__inside = false;
    }
    pthread_mutex_unlock(&ct__all.lock);
}

static void ct__free(ct__operation *operation)
{
    for (int i = 0; i < 2; i++)
        if (operation->told[i] != MPI_REQUEST_NULL)
            PMPI_Request_free(&operation->told[i]);
    if (operation->plan != NULL)
        ct_plan_free(operation->plan);
    free(operation);
}

void ct_persistent_freed(MPI_Request request)
{
    if (atomic_load(&ct__all.count) == 0 || ct__inside)
        return;
    pthread_mutex_lock(&ct__all.lock);
    ct__operation **at = &ct__all.operations;
    while (*at != NULL && (*at)->handle != request)
        at = &(*at)->next;
    ct__operation *operation = *at;
    if (operation != NULL) {
        *at = operation->next;
        atomic_fetch_sub(&ct__all.count, 1);
        ct__inside = true;
        ct__free(operation);
        ct__inside = false;
    }
    pthread_mutex_unlock(&ct__all.lock);
}

/* The request of the program, and what completes it. */
static int ct__make_requests(ct__operation *operation, const ct_team *team, int tag)
{
    static char nothing;
    for (int i = 0; i < 2; i++)
        CT_TRY(PMPI_Send_init(&nothing, i, MPI_BYTE, team->rank, tag, team->comm, &operation->told[i]));
    return PMPI_Recv_init(&nothing, 0, MPI_BYTE, team->rank, tag, team->comm, &operation->handle);
}

static int ct__make(ct_state *state, const ct_exchange *x, ct__operation *operation)
{
    ct_team *team = state->team;
    ct_statistic mine = ct_exchange_statistic(x, team->rank, team->size), agreed;
    int tag = CT__FIRST_TAG + 2 * team->plans++;
    CT_TRY(PMPI_Allreduce(&mine, &agreed, 2, MPI_INT64_T, MPI_MAX, team->comm));
    int choice = ct_table_find(&state->table, &agreed, team->size);
    state->last = state->table.choices[choice];
    if (choice == CT_POLICY_LIBRARY)
        return MPI_SUCCESS;
    CT_TRY(ct_plan_make(team, x, &state->last, tag, &operation->plan));
    return operation->plan == NULL ? MPI_SUCCESS : ct__make_requests(operation, team, tag);
}

static int ct__init(const ct_a2av_call *call, ct_state *state, ct__operation **made)
{
    ct__operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        return MPI_ERR_NO_MEM;
    operation->told[0] = operation->told[1] = operation->handle = MPI_REQUEST_NULL;
    ct_exchange x;
    int code = ct_call_exchange(call, state->team->size, &x);
    if (code == MPI_SUCCESS)
        code = ct__make(state, &x, operation);
    ct_exchange_free(&x);
    if (code != MPI_SUCCESS || operation->plan == NULL) {
        ct__free(operation);
        operation = NULL;
    }
    *made = operation;
    return code;
}

int ct_persistent_init(const ct_a2av_call *call, MPI_Request *request, bool *ours)
{
    ct_state *state;
    *ours = false;
    if (call->send == MPI_IN_PLACE || !ct_progress_has())
        return MPI_SUCCESS;
    CT_TRY(ct_state_for_table(call->comm, true, &state));
    if (state == NULL || state->team->plans >= CT__PLANS_MOST)
        return MPI_SUCCESS;
    ct__operation *operation;
    CT_TRY(ct__init(call, state, &operation));
    if (operation == NULL)
        return MPI_SUCCESS;
    *request = operation->handle;
    *ours = true;
    pthread_mutex_lock(&ct__all.lock);
    operation->next = ct__all.operations;
    ct__all.operations = operation;
    atomic_fetch_add(&ct__all.count, 1);
    pthread_mutex_unlock(&ct__all.lock);
    return MPI_SUCCESS;
}
