/* The profile as a module: what happens at each call. */
#define _GNU_SOURCE
#include "profile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { CT__REQUESTS = 1 << 10, CT__MANY_FAULTS = 4, CT__DENSE = 128 };
/* Persistent collectives: what a start of a request counts as. */
static struct {
    _Atomic(MPI_Request) request;
    ct_profile_record *record;
    uint64_t size_bytes, own_bytes;
} ct__requests[CT__REQUESTS];
static _Atomic int ct__request_count;
static pthread_mutex_t ct__lock = PTHREAD_MUTEX_INITIALIZER;

ct_profile_state ct_profile;

static uint64_t ct__key(int class, ct_function function, ct_form form, ct_op_class op, uint64_t size_bytes)
{
    int bin = size_bytes == 0 ? 0 : 64 - __builtin_clzll(size_bytes);
    return 1u | (uint64_t)bin << 1 | (uint64_t)function << 8 | (uint64_t)form << 16 | (uint64_t)op << 20 |
           (uint64_t)(class + 1) << 32;
}

/* The class of a communicator, made at its first call. < 0: no room. */
static int ct__class_of(ct_comm *comm)
{
    if (comm == NULL)
        return -1;
    if (comm->data[CT_MODULE_PROFILE] != NULL)
        return (int)(intptr_t)comm->data[CT_MODULE_PROFILE] - 1;
    ct_profile_class new = {.size = (uint32_t)comm->size, .remote_size = (uint32_t)comm->remote_size,
                            .nodes = (uint32_t)comm->nodes, .ppn = (uint32_t)comm->ppn, .even = comm->even};
    pthread_mutex_lock(&ct__lock);
    int count = atomic_load(&ct_profile.class_count), at = 0;
    while (at < count && memcmp(&ct_profile.classes[at], &new, offsetof(ct_profile_class, count)) != 0)
        at++;
    if (at == count && count < CT_PROFILE_CLASSES) {
        ct_profile.classes[at] = new;
        atomic_store(&ct_profile.class_count, count + 1);
    }
    if (at < CT_PROFILE_CLASSES) {
        ct_profile.classes[at].count++;
        comm->data[CT_MODULE_PROFILE] = (void *)(intptr_t)(at + 1);
    }
    pthread_mutex_unlock(&ct__lock);
    return at < CT_PROFILE_CLASSES ? at : -1;
}

/* The record of a key; NULL: no room. */
static ct_profile_record *ct__find(uint64_t key)
{
    unsigned at = (unsigned)((key * 0x9e3779b97f4a7c15ULL) >> 48) % CT_PROFILE_RECORDS;
    for (unsigned i = 0; i < CT_PROFILE_RECORDS; i++, at = (at + 1) % CT_PROFILE_RECORDS) {
        ct_profile_record *record = &ct_profile.records[at];
        uint64_t there = atomic_load_explicit(&record->key, memory_order_relaxed);
        if (there == key)
            return record;
        if (there != 0)
            continue;
        /* A full table would be searched to its end at each call. */
        if (atomic_load_explicit(&ct_profile.record_count, memory_order_relaxed) > CT_PROFILE_RECORDS * 3 / 4)
            return NULL;
        if (atomic_compare_exchange_strong(&record->key, &there, key)) {
            atomic_fetch_add(&ct_profile.record_count, 1);
            return record;
        }
        if (there == key)
            return record;
    }
    return NULL;
}

static void ct__raise(_Atomic uint64_t *at, uint64_t value)
{
    uint64_t there = atomic_load_explicit(at, memory_order_relaxed);
    while (there < value && !atomic_compare_exchange_weak_explicit(at, &there, value, memory_order_relaxed,
                                                                   memory_order_relaxed))
        continue;
}

static void ct__add_double(_Atomic uint64_t *at, double value)
{
    uint64_t there = atomic_load_explicit(at, memory_order_relaxed), next;
    do {
        double sum;
        memcpy(&sum, &there, sizeof sum);
        sum += value;
        memcpy(&next, &sum, sizeof next);
    } while (!atomic_compare_exchange_weak_explicit(at, &there, next, memory_order_relaxed, memory_order_relaxed));
}

static void ct__count(ct_profile_record *record, uint64_t size_bytes, uint64_t own_bytes)
{
    ct_profile_add(record, CT_PROFILE_calls, 1);
    ct_profile_add(record, CT_PROFILE_bytes, own_bytes);
    ct_profile_add(record, CT_PROFILE_size_sum, size_bytes);
    ct__raise(&record->counters[CT_PROFILE_size_least], ~size_bytes);
    ct__raise(&record->counters[CT_PROFILE_size_most], size_bytes);
}

static void ct__count_details(ct_profile_record *record, const ct_call *call, const ct_profile_extent *extent)
{
    if (extent->in_place)
        ct_profile_add(record, CT_PROFILE_in_place, 1);
    if (extent->gaps)
        ct_profile_add(record, CT_PROFILE_gaps, 1);
    bool rooted = call->function == CT_BCAST || call->function == CT_REDUCE ||
                  (call->function >= CT_GATHER && call->function <= CT_SCATTERV);
    if (rooted) {
        if (call->root == 0)
            ct_profile_add(record, CT_PROFILE_root_zero, 1);
        if (atomic_exchange_explicit(&record->last_root, call->root + 1, memory_order_relaxed) == call->root + 1)
            ct_profile_add(record, CT_PROFILE_root_repeated, 1);
    }
    if (extent->blocks_seen) {
        ct_profile_add(record, CT_PROFILE_blocks, extent->blocks);
        ct_profile_add(record, CT_PROFILE_empty_blocks, extent->empty_blocks);
        ct_profile_add(record, CT_PROFILE_block_bytes, extent->block_bytes);
        ct_profile_add(record, CT_PROFILE_self_bytes, extent->self_bytes);
        ct_profile_add(record, CT_PROFILE_largest_bytes, extent->largest_bytes);
        ct__add_double(&record->counters[CT_PROFILE_square_bytes], extent->square_bytes);
    }
}

static unsigned ct__request_slot(MPI_Request request)
{
    uint64_t bits = 0;
    memcpy(&bits, &request, sizeof request);
    return (unsigned)((bits * 0x9e3779b97f4a7c15ULL) >> 48) % CT__REQUESTS;
}

static void ct__request_add(MPI_Request request, ct_profile_record *record, const ct_profile_extent *extent)
{
    pthread_mutex_lock(&ct__lock);
    MPI_Request none;
    memset(&none, 0, sizeof none);
    unsigned at = ct__request_slot(request), i = 0;
    for (; i < CT__REQUESTS; i++, at = (at + 1) % CT__REQUESTS) {
        MPI_Request there = atomic_load(&ct__requests[at].request);
        if (there == none || there == MPI_REQUEST_NULL)
            break;
    }
    if (i < CT__REQUESTS) {
        ct__requests[at].record = record;
        ct__requests[at].size_bytes = extent->size_bytes;
        ct__requests[at].own_bytes = extent->own_bytes;
        atomic_store(&ct__requests[at].request, request);
        atomic_fetch_add(&ct__request_count, 1);
    } else
        atomic_fetch_add(&ct_profile.lost, 1);
    pthread_mutex_unlock(&ct__lock);
}

/* < 0: not a persistent collective. */
static int ct__request_find(MPI_Request request)
{
    MPI_Request none;
    memset(&none, 0, sizeof none);
    if (atomic_load_explicit(&ct__request_count, memory_order_relaxed) == 0 || request == MPI_REQUEST_NULL)
        return -1;
    unsigned at = ct__request_slot(request);
    for (unsigned i = 0; i < CT__REQUESTS; i++, at = (at + 1) % CT__REQUESTS) {
        MPI_Request there = atomic_load(&ct__requests[at].request);
        if (there == request)
            return (int)at;
        if (there == none)
            return -1;
    }
    return -1;
}

static void ct__request_started(MPI_Request request)
{
    int at = ct__request_find(request);
    if (at >= 0)
        ct__count(ct__requests[at].record, ct__requests[at].size_bytes, ct__requests[at].own_bytes);
}

static void ct__request_freed(MPI_Request request)
{
    int at = ct__request_find(request);
    if (at < 0)
        return;
    /* Searches go on past MPI_REQUEST_NULL, as past a slot in use. */
    atomic_store(&ct__requests[at].request, MPI_REQUEST_NULL);
    atomic_fetch_sub(&ct__request_count, 1);
}

/* Page faults of this thread that needed no disk. */
static long ct__faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}

/* How many calls the one of this number stands for in what is sampled; 0: it is not sampled. All of a communicator's
 * first calls are, then half of the next as many, and so on: the sample grows with the logarithm of the calls. */
static uint32_t ct__stands_for(uint64_t sequence)
{
    uint32_t interval = 1;
    for (uint64_t reach = CT__DENSE; sequence >= reach && interval < 1u << 20; reach *= 2)
        interval *= 2;
    uint64_t hash = (sequence ^ (sequence >> 33)) * 0xff51afd7ed558ccdULL;
    return ((hash ^ (hash >> 33)) & (interval - 1)) != 0 ? 0 : interval;
}

/* Memory that is touched for the first time makes a single call fault: what counts are those that fault again and again. */
static void ct__count_faults(ct_profile_record *record, uint32_t stands_for, long faults)
{
    bool many = faults >= CT__MANY_FAULTS;
    if (atomic_exchange_explicit(&record->faulted, many, memory_order_relaxed) && many)
        ct_profile_add(record, CT_PROFILE_faults, (uint64_t)faults * stands_for);
    ct_profile_add(record, CT_PROFILE_fault_calls, stands_for);
}

static void ct__before(ct_call *call)
{
    bool known = call->form == CT_BLOCKING && call->known != NULL;
    call->stands_for = known ? ct__stands_for(call->known->sequence) : 0;
    if (call->stands_for > 0)
        call->faults = ct__faults();
    call->started_ns = ct_now_ns();
}

static void ct__after(ct_call *call, int code)
{
    uint64_t elapsed_ns = ct_now_ns() - call->started_ns;
    long faults = call->stands_for > 0 ? ct__faults() - call->faults : 0;
    if (call->form == CT_BLOCKING && call->known != NULL && !call->refused)
        call->known->sequence++;
    if (code != MPI_SUCCESS)
        return;
    ct_profile_extent extent;
    ct_profile_measure(call, &extent);
    ct_op_class op = CT_OP_NONE;
    if ((call->function >= CT_REDUCE && call->function <= CT_EXSCAN))
        op = ct_profile_op(call->op);
    int class = ct__class_of(call->known);
    ct_profile_record *record = ct__find(ct__key(class, call->function, call->form, op, extent.size_bytes));
    if (record == NULL) {
        atomic_fetch_add_explicit(&ct_profile.lost, 1, memory_order_relaxed);
        return;
    }
    ct_profile_add(record, CT_PROFILE_time_ns, elapsed_ns);
    if (call->stands_for > 0)
        ct__count_faults(record, call->stands_for, faults);
    ct__count_details(record, call, &extent);
    if (call->form == CT_PERSISTENT) {
        ct_profile_add(record, CT_PROFILE_inits, 1);
        ct__request_add(*call->request, record, &extent);
        return;
    }
    ct__count(record, extent.size_bytes, extent.own_bytes);
}

static bool ct__start(void)
{
    const char *path = getenv("COLLTUNE_PROFILE");
    ct_profile.records = calloc(CT_PROFILE_RECORDS, sizeof *ct_profile.records);
    ct_profile.classes = calloc(CT_PROFILE_CLASSES, sizeof *ct_profile.classes);
    bool have = path != NULL && strlen(path) < sizeof ct_profile.path - 32 && ct_profile.records != NULL &&
                ct_profile.classes != NULL;
    if (!ct_all(ct_job.comm, have)) {
        if (ct_job.rank == 0)
            fprintf(stderr, "colltune: no profile: a rank has no memory for it, or no COLLTUNE_PROFILE\n");
        return false;
    }
    strcpy(ct_profile.path, path);
    return true;
}

static bool ct__written;

static void ct__die(const char *why)
{
    static ct_profile_row rows[CT_PROFILE_RECORDS + CT_PROFILE_CLASSES];
    int count = ct_profile_rows(rows);
    ct_profile_write(ct_job.rank, why, rows, count, ct_now_ns() - ct_job.started_ns, atomic_load(&ct_profile.lost));
    ct__written = true;
}

static void ct__stop(void)
{
    if (ct__written) /* for an end that did not come */
        ct_profile_unwrite(ct_job.rank);
    if (!ct_profile_merge()) /* each by itself, then */
        ct__die("no memory to merge");
}

const ct_module ct_profile_module = {
    .start = ct__start,
    .before = ct__before,
    .after = ct__after,
    .request_started = ct__request_started,
    .request_freed = ct__request_freed,
    .stop = ct__stop,
    .die = ct__die,
};
