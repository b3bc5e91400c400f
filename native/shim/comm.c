/* What is known of communicators, kept by handle: the one registry of all modules.
 *
 * An entry is made at a communicator's first collective call that a module wants. It ends with the communicator, in the
 * wrapped MPI_Comm_free, MPI_Comm_disconnect or MPI_Finalize, so nothing of ours hangs on a communicator of the program.
 * While a communicator is being freed, the program's delete functions may make calls on it: to us these are calls like others.
 *
 * Looking one up takes no lock: a table of atomic handles with linear probing. Entries are made and taken away under
 * a lock. A table that is half full is followed by one of twice the size: a rank that knew of some communicators only would
 * do other things in their calls than the rest. */
#include "private_comm.h"
#include "shim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CT__FIRST_SLOTS = 1 << 12 };

/* `comm` NULL: never used. A freed communicator leaves its slot with a handle that no other has, so that probing goes
 * on past it, and the slot is used again. */
typedef struct {
    _Atomic(MPI_Comm) handle;
    _Atomic(ct_comm *) comm;
    _Atomic(const void *) ending; /* ct__self of the thread that is freeing the communicator, else NULL */
} ct__slot;

typedef struct {
    unsigned count; /* of slots */
    ct__slot *slots;
} ct__table;

static ct__slot ct__first_slots[CT__FIRST_SLOTS];
static ct__table ct__first = {CT__FIRST_SLOTS, ct__first_slots};
/* Tables before the present one stay: a thread may be looking into them. All together are as large as the present one. */
static _Atomic(ct__table *) ct__present = &ct__first;
/* Under the lock: */
static unsigned ct__used;
static pthread_mutex_t ct__lock = PTHREAD_MUTEX_INITIALIZER;
static ct_comm *ct__latest; /* the entries, those made last first */
/* Handles that MPI_Comm_idup gave, until the program uses the communicator: then the duplicate is complete on this rank. */
static struct ct__due {
    MPI_Comm handle;
    struct ct__due *next;
} *ct__due;

static unsigned ct__hash(const ct__table *table, MPI_Comm handle)
{
    uint64_t bits = 0;
    memcpy(&bits, &handle, sizeof handle);
    return (unsigned)((bits * 0x9e3779b97f4a7c15ULL) >> 40) % table->count;
}

/* Of this thread alone. */
static const void *ct__self(void) { return &ct_depth; }

/* Nodes and ranks per node, from the ranks that the members have in MPI_COMM_WORLD. */
static bool ct__place(ct_comm *comm, const int *ranks)
{
    int *members = calloc((size_t)ct_job.nodes.count, sizeof *members);
    if (members == NULL)
        return false;
    bool all = true;
    for (int i = 0; i < comm->size && all; i++) {
        all = ranks[i] != MPI_UNDEFINED && ranks[i] >= 0 && ranks[i] < ct_job.size;
        if (all)
            members[ct_job.nodes.node_of[ranks[i]]]++;
    }
    int fewest = comm->size;
    for (int i = 0; i < ct_job.nodes.count && all; i++) {
        comm->nodes += members[i] > 0;
        comm->ppn = members[i] > comm->ppn ? members[i] : comm->ppn;
        fewest = members[i] > 0 && members[i] < fewest ? members[i] : fewest;
    }
    comm->even = all && fewest == comm->ppn;
    free(members);
    return all;
}

int ct_comm_leaders(const void *known, MPI_Comm handle, int *leaders)
{
    const ct_comm *comm = known;
    MPI_Group group;
    int code = PMPI_Comm_group(handle, &group), *first = calloc((size_t)ct_job.nodes.count, sizeof *first);
    if (code != MPI_SUCCESS || first == NULL) {
        free(first);
        return code == MPI_SUCCESS ? MPI_ERR_NO_MEM : code;
    }
    for (int i = 0; i < comm->size && code == MPI_SUCCESS; i++) {
        int world = 0;
        code = PMPI_Group_translate_ranks(group, 1, &i, ct_job.group, &world);
        int *leader = &first[ct_job.nodes.node_of[world]]; /* its rank + 1; 0: none so far */
        leaders[i] = *leader = *leader == 0 ? i + 1 : *leader;
        leaders[i]--;
    }
    PMPI_Group_free(&group);
    free(first);
    return code;
}

/* All local. Returns NULL where MPI gives an error. */
static ct_comm *ct__look(MPI_Comm handle)
{
    ct_comm *comm = calloc(1, sizeof *comm);
    MPI_Group group = MPI_GROUP_NULL;
    int inter = 0, *own = NULL, *world = NULL;
    bool fine = comm != NULL && PMPI_Comm_test_inter(handle, &inter) == MPI_SUCCESS &&
                PMPI_Comm_rank(handle, &comm->rank) == MPI_SUCCESS && PMPI_Comm_size(handle, &comm->size) == MPI_SUCCESS &&
                (!inter || PMPI_Comm_remote_size(handle, &comm->remote_size) == MPI_SUCCESS) &&
                PMPI_Comm_group(handle, &group) == MPI_SUCCESS;
    if (fine) {
        own = malloc(sizeof *own * (size_t)comm->size), world = malloc(sizeof *world * (size_t)comm->size);
        fine = own != NULL && world != NULL;
        for (int i = 0; i < comm->size && fine; i++)
            own[i] = i;
        fine = fine && PMPI_Group_translate_ranks(group, comm->size, own, ct_job.group, world) == MPI_SUCCESS;
        if (fine && !ct__place(comm, world))
            comm->nodes = comm->ppn = 0;
    }
    free(own);
    free(world);
    if (group != MPI_GROUP_NULL)
        PMPI_Group_free(&group);
    if (!fine) {
        free(comm);
        return NULL;
    }
    comm->handle = handle;
    return comm;
}

static void ct__put(ct__table *table, MPI_Comm handle, ct_comm *comm, const void *ending)
{
    unsigned at = ct__hash(table, handle);
    while (atomic_load(&table->slots[at].comm) != NULL && atomic_load(&table->slots[at].handle) != MPI_COMM_NULL)
        at = (at + 1) % table->count;
    /* The slot may be one of a freed communicator: a thread that sees the handle must see the new entry. */
    atomic_store(&table->slots[at].ending, ending);
    atomic_store(&table->slots[at].comm, comm);
    atomic_store_explicit(&table->slots[at].handle, handle, memory_order_release);
}

/* The slot of a handle, under the lock; NULL: none. */
static ct__slot *ct__find(MPI_Comm handle)
{
    ct__table *table = atomic_load(&ct__present);
    unsigned at = ct__hash(table, handle);
    for (unsigned i = 0; i < table->count && atomic_load(&table->slots[at].comm) != NULL; i++, at = (at + 1) % table->count)
        if (atomic_load(&table->slots[at].handle) == handle)
            return &table->slots[at];
    return NULL;
}

/* Under the lock. */
static void ct__take_away(ct__slot *slot)
{
    ct_comm *comm = atomic_load(&slot->comm);
    atomic_store(&slot->handle, MPI_COMM_NULL);
    ct__used--;
    *(comm->newer == NULL ? &ct__latest : &comm->newer->older) = comm->older;
    if (comm->older != NULL)
        comm->older->newer = comm->newer;
}

/* Room for one more, under the lock. */
static bool ct__make_room(void)
{
    ct__table *old = atomic_load(&ct__present);
    if (ct__used < old->count / 2)
        return true;
    ct__table *table = malloc(sizeof *table);
    ct__slot *slots = calloc(2 * (size_t)old->count, sizeof *slots);
    if (table == NULL || slots == NULL) {
        free(table);
        free(slots);
        return ct__used < old->count - 1;
    }
    *table = (ct__table){2 * old->count, slots};
    for (unsigned i = 0; i < old->count; i++) {
        ct_comm *comm = atomic_load(&old->slots[i].comm);
        if (comm != NULL && atomic_load(&old->slots[i].handle) != MPI_COMM_NULL)
            ct__put(table, comm->handle, comm, atomic_load(&old->slots[i].ending));
    }
    atomic_store(&ct__present, table);
    return true;
}

/* The duplicate of that handle is complete, if it is one. */
static void ct__no_longer_due(MPI_Comm handle)
{
    struct ct__due **link = &ct__due;
    while (*link != NULL && (*link)->handle != handle)
        link = &(*link)->next;
    struct ct__due *due = *link;
    if (due == NULL)
        return;
    *link = due->next;
    free(due);
    atomic_fetch_sub(&ct_private_comm_barred, 1);
}

static ct_comm *ct__insert(MPI_Comm handle)
{
    if (handle == MPI_COMM_NULL)
        return NULL;
    ct_handlers handlers = ct_errors_take(true); /* that it is no communicator is for the library to say, once */
    ct_comm *comm = ct__look(handle);
    ct_errors_give_back(&handlers);
    if (comm == NULL)
        return NULL;
    ct_errors_look(handle);
    comm->maker = ct__self();
    pthread_mutex_lock(&ct__lock);
    ct__slot *stale = ct__find(handle); /* its communicator is gone, and the thread that freed it has not come back yet */
    if (stale != NULL)
        ct__take_away(stale);
    ct__no_longer_due(handle);
    bool room = ct__make_room();
    if (room) {
        ct__put(atomic_load(&ct__present), handle, comm, NULL);
        ct__used++;
        comm->older = ct__latest;
        if (ct__latest != NULL)
            ct__latest->newer = comm;
        ct__latest = comm;
    }
    pthread_mutex_unlock(&ct__lock);
    if (room)
        return comm;
    free(comm);
    return NULL;
}

ct_comm *ct_comm_get(MPI_Comm handle)
{
    ct__table *table = atomic_load_explicit(&ct__present, memory_order_acquire);
    unsigned at = ct__hash(table, handle);
    for (unsigned i = 0; i < table->count && handle != MPI_COMM_NULL; i++, at = (at + 1) % table->count) {
        ct__slot *slot = &table->slots[at];
        ct_comm *comm = atomic_load_explicit(&slot->comm, memory_order_acquire);
        if (comm == NULL)
            break;
        if (atomic_load_explicit(&slot->handle, memory_order_acquire) != handle)
            continue;
        /* A handle that another thread is freeing is a new communicator's already, if this one may use it. */
        const void *ending = atomic_load_explicit(&slot->ending, memory_order_acquire);
        if (ending != NULL && ending != ct__self())
            break;
        comm = atomic_load_explicit(&slot->comm, memory_order_acquire);
        if (atomic_load_explicit(&slot->handle, memory_order_relaxed) == handle)
            return comm;
    }
    return ct__insert(handle);
}

static void ct__end(ct_comm *comm)
{
    if (comm == NULL)
        return;
    ct_modules_comm_freed(comm);
    free(comm);
}

/* Marks the entry of a handle; returns it, or NULL. */
static ct_comm *ct__mark(MPI_Comm handle, const void *ending)
{
    pthread_mutex_lock(&ct__lock);
    ct__slot *slot = ct__find(handle);
    if (slot != NULL)
        atomic_store(&slot->ending, ending);
    ct_comm *comm = slot == NULL ? NULL : atomic_load(&slot->comm);
    pthread_mutex_unlock(&ct__lock);
    return comm;
}

/* The communicator is gone. `before`: its entry when that began. Made since then: by a delete function, if by this thread; else
 * for the next communicator of the handle. */
static void ct__forget(MPI_Comm handle, ct_comm *before)
{
    pthread_mutex_lock(&ct__lock);
    ct__slot *slot = ct__find(handle);
    ct_comm *now = slot == NULL ? NULL : atomic_load(&slot->comm);
    if (now != NULL && (before == NULL ? now->maker == ct__self() : now == before)) {
        ct__take_away(slot);
        before = now;
    }
    ct__no_longer_due(handle);
    pthread_mutex_unlock(&ct__lock);
    ct__end(before);
}

int ct_comm_free(MPI_Comm *comm, int (*library_s)(MPI_Comm *))
{
    if (!ct_ready || comm == NULL || *comm == MPI_COMM_NULL)
        return library_s(comm);
    MPI_Comm handle = *comm;
    ct_comm *before = ct__mark(handle, ct__self());
    int code = library_s(comm);
    /* Where a handler of the program's has run, the code may say nothing. */
    if (*comm == handle)
        ct__mark(handle, NULL);
    else
        ct__forget(handle, before);
    return code;
}

int ct_comm_idup(int code, const MPI_Comm *made)
{
    if (!ct_ready || code != MPI_SUCCESS)
        return code;
    atomic_fetch_add(&ct_private_comm_barred, 1); /* for ever where there is no memory */
    struct ct__due *due = malloc(sizeof *due);
    if (due != NULL) {
        pthread_mutex_lock(&ct__lock);
        *due = (struct ct__due){*made, ct__due};
        ct__due = due;
        pthread_mutex_unlock(&ct__lock);
    }
    return code;
}

/* Those made last go first: on ranks that have several in common, in one order. */
void ct_comm_stop(void)
{
    while (ct__latest != NULL) {
        ct_comm *comm = ct__latest;
        pthread_mutex_lock(&ct__lock);
        ct__take_away(ct__find(comm->handle));
        pthread_mutex_unlock(&ct__lock);
        ct__end(comm);
    }
}
