/* What is known of communicators, kept by handle.
 *
 * Looking one up takes no lock: a table of atomic handles with linear probing. Entries are made and taken away under
 * a lock, at a communicator's first collective call and when it is freed (an attribute's delete function tells). A table
 * that is half full is followed by one of twice the size: a rank that knew of some communicators only would do other
 * things in their calls than the rest. */
#include "shim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CT__FIRST_SLOTS = 1 << 12, CT__GENERATIONS = 1 << 14 };

/* `comm` NULL: never used. A freed communicator leaves its slot with a handle that no other has, so that probing goes
 * on past it, and the slot is used again. */
typedef struct {
    _Atomic(MPI_Comm) handle;
    _Atomic(ct_comm *) comm;
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
static uint16_t ct__generations[CT__GENERATIONS];
static pthread_mutex_t ct__lock = PTHREAD_MUTEX_INITIALIZER;
static int ct__keyval = MPI_KEYVAL_INVALID;

static unsigned ct__hash(const ct__table *table, MPI_Comm handle)
{
    uint64_t bits = 0;
    memcpy(&bits, &handle, sizeof handle);
    return (unsigned)((bits * 0x9e3779b97f4a7c15ULL) >> 40) % table->count;
}

static int ct__freed(MPI_Comm handle, int keyval, void *value, void *extra)
{
    (void)keyval, (void)extra, (void)handle;
    ct_comm *comm = value;
    pthread_mutex_lock(&ct__lock);
    ct__table *table = atomic_load(&ct__present);
    for (unsigned i = 0, at = ct__hash(table, comm->handle); i < table->count; i++, at = (at + 1) % table->count)
        if (atomic_load(&table->slots[at].comm) == comm) {
            atomic_store(&table->slots[at].handle, MPI_COMM_NULL);
            ct__used--;
            break;
        }
    pthread_mutex_unlock(&ct__lock);
    if (ct_ready)
        ct_modules_comm_freed(comm);
    free(comm);
    return MPI_SUCCESS;
}

bool ct_comm_start(void)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, ct__freed, &ct__keyval, NULL) == MPI_SUCCESS;
}

static uint64_t ct__mix(uint64_t state, uint64_t value)
{
    state = (state ^ value) * 0xff51afd7ed558ccdULL;
    return state ^ (state >> 32);
}

/* Nodes, ranks per node and identity, from the ranks that the members have in MPI_COMM_WORLD. */
static bool ct__place(ct_comm *comm, const int *ranks)
{
    int *members = calloc((size_t)ct_job.nodes.count, sizeof *members);
    if (members == NULL)
        return false;
    bool all = true;
    comm->identity = ct__mix(0x243f6a8885a308d3ULL, (uint64_t)comm->size);
    for (int i = 0; i < comm->size && all; i++) {
        all = ranks[i] != MPI_UNDEFINED && ranks[i] >= 0 && ranks[i] < ct_job.size;
        if (all) {
            members[ct_job.nodes.node_of[ranks[i]]]++;
            comm->identity = ct__mix(comm->identity, (uint64_t)ranks[i]);
        }
    }
    /* Communicators of the same members, one after the other, are told apart by counting them. */
    pthread_mutex_lock(&ct__lock);
    uint16_t generation = ct__generations[comm->identity % CT__GENERATIONS]++;
    pthread_mutex_unlock(&ct__lock);
    comm->identity = ct__mix(comm->identity, generation);
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
            comm->nodes = comm->ppn = 0, comm->identity = 0;
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

static void ct__put(ct__table *table, MPI_Comm handle, ct_comm *comm)
{
    unsigned at = ct__hash(table, handle);
    while (atomic_load(&table->slots[at].comm) != NULL && atomic_load(&table->slots[at].handle) != MPI_COMM_NULL)
        at = (at + 1) % table->count;
    /* The slot may be one of a freed communicator: a thread that sees the handle must see the new entry. */
    atomic_store(&table->slots[at].comm, comm);
    atomic_store_explicit(&table->slots[at].handle, handle, memory_order_release);
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
            ct__put(table, comm->handle, comm);
    }
    atomic_store(&ct__present, table);
    return true;
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
    /* The attribute before the lock: MPI may hold a lock of its own when it calls ct__freed. */
    if (PMPI_Comm_set_attr(handle, ct__keyval, comm) != MPI_SUCCESS) {
        free(comm);
        return NULL;
    }
    pthread_mutex_lock(&ct__lock);
    bool room = ct__make_room();
    if (room) {
        ct__put(atomic_load(&ct__present), handle, comm);
        ct__used++;
    }
    pthread_mutex_unlock(&ct__lock);
    if (!room)
        PMPI_Comm_delete_attr(handle, ct__keyval); /* frees it */
    return room ? comm : NULL;
}

ct_comm *ct_comm_get(MPI_Comm handle)
{
    ct__table *table = atomic_load_explicit(&ct__present, memory_order_acquire);
    unsigned at = ct__hash(table, handle);
    for (unsigned i = 0; i < table->count; i++, at = (at + 1) % table->count) {
        if (atomic_load_explicit(&table->slots[at].handle, memory_order_acquire) == handle && handle != MPI_COMM_NULL)
            return atomic_load_explicit(&table->slots[at].comm, memory_order_relaxed);
        if (atomic_load_explicit(&table->slots[at].comm, memory_order_relaxed) == NULL)
            break;
    }
    return ct__insert(handle);
}
