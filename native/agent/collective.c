/* The collectives: buffers, the call, and the check of the result against what every rank must hold. */
#include "agent.h"
#include "functions.h"
#include "mock_ups.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the collectives that are timed do with their data. */
static const struct {
    const char *name;
    bool nonblocking;         /* is timed in its non-blocking form too: "ibcast" and so on */
    bool reduces;             /* adds up the vectors of all ranks */
    bool to_root;             /* no other rank gets anything */
    bool sends_all, gets_all; /* a block for each rank, and from each */
} CT__KIND[CT_FUNCTIONS] = {
    [CT_ALLGATHER] = {"allgather", .gets_all = true, .nonblocking = true},
    [CT_ALLGATHERV] = {"allgatherv", .gets_all = true},
    [CT_ALLREDUCE] = {"allreduce", .reduces = true, .nonblocking = true},
    [CT_ALLTOALL] = {"alltoall", .sends_all = true, .gets_all = true, .nonblocking = true},
    [CT_BARRIER] = {"barrier"},
    [CT_BCAST] = {"bcast", .nonblocking = true},
    [CT_EXSCAN] = {"exscan", .reduces = true},
    [CT_GATHER] = {"gather", .to_root = true, .gets_all = true},
    [CT_REDUCE] = {"reduce", .reduces = true, .to_root = true},
    [CT_REDUCE_SCATTER] = {"reduce_scatter", .reduces = true},
    [CT_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", .reduces = true},
    [CT_SCAN] = {"scan", .reduces = true},
    [CT_SCATTER] = {"scatter", .sends_all = true},
};

struct ct_timed_call {
    ct_function kind;
    bool nonblocking;
    int rank, size, root;
    int count;        /* elements of one block, or of the whole vector */
    int *counts;      /* [size] of the v-variants and reduce_scatter */
    int *displacements;
    ct_timed_blocks blocks; /* of alltoallv */
    void *send, *receive;
    ct_arguments arguments;
    size_t send_bytes, receive_bytes;
};

static size_t const CT__MOST_BYTES = INT_MAX; /* of one buffer: counts and displacements are ints */

static bool ct__reduces(ct_function kind) { return CT__KIND[kind].reduces; }

/* One buffer for each direction serves all requests: pages are touched once, and alignment never changes. */
static void *ct__buffer(int which, size_t bytes)
{
    static void *buffers[2];
    static size_t capacities[2];
    if (bytes > capacities[which] || buffers[which] == NULL) {
        size_t capacity = bytes < 4096 ? 4096 : bytes;
        void *larger = ct_heap_apart(capacity);
        if (larger == NULL)
            return NULL;
        memset(larger, 0, capacity);
        ct_heap_apart_free(buffers[which], capacities[which]);
        buffers[which] = larger;
        capacities[which] = capacity;
    }
    return buffers[which];
}

/* What rank `rank` contributes at byte or element `i`. Sums of elements are exact in a float up to 2^18 ranks. */
static unsigned char ct__byte(int rank, size_t i) { return (unsigned char)((size_t)rank * 31 + i * 7 + (i >> 8) + 1); }
static int ct__element(int rank, size_t i) { return (int)(((size_t)rank + i) & 63); }

/* Blocks of alltoallv that go to one rank hold another part of their sender's bytes than those to another. */
static size_t ct__part_for(int rank) { return (size_t)rank * 7919; }

static void ct__fill(ct_timed_call *call)
{
    unsigned char *send = call->send;
    if (call->kind == CT_ALLTOALLV) {
        for (int peer = 0; peer < call->size; peer++)
            for (int i = 0; i < call->blocks.counts[0][peer]; i++)
                send[call->blocks.places[0][peer] + i] = ct__byte(call->rank, ct__part_for(peer) + (size_t)i);
    } else if (ct__reduces(call->kind)) {
        float *numbers = call->send;
        for (size_t i = 0; i < call->send_bytes / sizeof *numbers; i++)
            numbers[i] = (float)ct__element(call->rank, i);
    } else {
        for (size_t i = 0; i < call->send_bytes; i++)
            send[i] = ct__byte(call->rank, i);
    }
}

/* What the two buffers of a rank may take: all ranks of a node together a quarter of its memory. */
static size_t ct__most_memory(int ppn)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 ? SIZE_MAX : (size_t)pages * (size_t)page_bytes / 4 / (size_t)ppn;
}

static bool ct__size_buffers(ct_timed_call *call, size_t size_bytes, int ppn)
{
    size_t all = size_bytes * (size_t)call->size;
    call->send_bytes = CT__KIND[call->kind].sends_all ? all : size_bytes;
    call->receive_bytes = CT__KIND[call->kind].gets_all ? all : size_bytes;
    if (call->kind == CT_ALLTOALLV)
        call->send_bytes = call->blocks.bytes[0], call->receive_bytes = call->blocks.bytes[1];
    size_t largest = call->send_bytes > call->receive_bytes ? call->send_bytes : call->receive_bytes;
    /* the first condition keeps the products from overflowing */
    return size_bytes <= CT__MOST_BYTES && largest <= CT__MOST_BYTES &&
           call->send_bytes + call->receive_bytes <= ct__most_memory(ppn);
}

static bool ct__set_counts(ct_timed_call *call, size_t elements)
{
    size_t ranks = (size_t)call->size;
    call->count = (int)elements;
    if (call->kind == CT_REDUCE_SCATTER_BLOCK)
        call->count = (int)(elements / ranks);
    if (call->kind != CT_ALLGATHERV && call->kind != CT_REDUCE_SCATTER)
        return true;
    call->counts = malloc(sizeof(int) * ranks);
    call->displacements = malloc(sizeof(int) * ranks);
    if (call->counts == NULL || call->displacements == NULL)
        return false;
    int at = 0;
    for (size_t i = 0; i < ranks; i++) {
        /* reduce_scatter: the first ranks take one element more where the vector does not divide evenly */
        call->counts[i] = call->kind == CT_ALLGATHERV ? (int)elements : (int)(elements / ranks + (i < elements % ranks));
        call->displacements[i] = at;
        at += call->counts[i];
    }
    return true;
}

/* CT_FUNCTIONS: there is no collective of this name. */
static int ct__find(const char *name, bool *nonblocking)
{
    *nonblocking = false;
    if (ct_blocks_make != NULL && strncmp(name, "alltoallv[", 10) == 0)
        return CT_ALLTOALLV;
    for (int kind = 0; kind < CT_FUNCTIONS; kind++) {
        if (CT__KIND[kind].name == NULL)
            continue;
        *nonblocking = CT__KIND[kind].nonblocking && name[0] == 'i' && strcmp(name + 1, CT__KIND[kind].name) == 0;
        if (*nonblocking || strcmp(name, CT__KIND[kind].name) == 0)
            return kind;
    }
    return CT_FUNCTIONS;
}

ct_timed_call *ct_call_make(const ct_request *request, MPI_Comm comm, char *why, size_t why_size)
{
    bool nonblocking;
    int kind = ct__find(request->collective, &nonblocking);
    ct_timed_call *call = calloc(1, sizeof *call);
    if (kind == CT_FUNCTIONS || call == NULL) {
        snprintf(why, why_size, "unknown-collective");
        free(call);
        return NULL;
    }
    call->kind = (ct_function)kind;
    call->nonblocking = nonblocking;
    MPI_Comm_rank(comm, &call->rank);
    MPI_Comm_size(comm, &call->size);
    call->root = request->root % call->size;
    size_t elements = ct__reduces(call->kind) ? request->size_bytes / sizeof(float) : request->size_bytes;
    if (call->kind == CT_REDUCE_SCATTER_BLOCK) /* equal blocks: the whole vector is rounded down to them */
        elements -= elements % (size_t)call->size;
    size_t bytes = ct__reduces(call->kind) ? elements * sizeof(float) : elements;
    if (call->kind == CT_REDUCE_SCATTER_BLOCK && elements == 0) {
        snprintf(why, why_size, "less-than-one-element-for-each-of-%d-ranks", call->size);
        ct_call_free(call);
        return NULL;
    }
    if (call->kind == CT_ALLTOALLV && !ct_blocks_make(request, comm, &call->blocks, why, why_size)) {
        ct_call_free(call);
        return NULL;
    }
    bool fits = ct__size_buffers(call, bytes, request->ppn);
    if (fits) {
        call->send = ct__buffer(0, call->send_bytes);
        call->receive = ct__buffer(1, call->receive_bytes);
    }
    if (!fits || call->send == NULL || call->receive == NULL || !ct__set_counts(call, elements)) {
        snprintf(why, why_size, "no-buffers-for-%zu-bytes-on-%d-ranks", request->size_bytes, call->size);
        ct_call_free(call);
        return NULL;
    }
    ct__fill(call);
    MPI_Datatype type = ct__reduces(call->kind) ? MPI_FLOAT : MPI_BYTE;
    call->arguments = (ct_arguments){
        .send = call->send, .recv = call->kind == CT_BCAST && call->rank == call->root ? call->send : call->receive,
        .send_count = call->count, .recv_count = call->count, .recv_counts = call->counts, .recv_displs = call->displacements,
        .send_type = type, .recv_type = type, .op = MPI_SUM, .root = call->root};
    return call;
}

void ct_call_free(ct_timed_call *call)
{
    free(call->counts);
    free(call->displacements);
    if (call->kind == CT_ALLTOALLV)
        ct_blocks_free(&call->blocks);
    free(call);
}

bool ct_call_overlaps(const ct_timed_call *call) { return call->nonblocking; }

int ct_call_start(ct_timed_call *c, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return ct_function_call(c->kind, &c->arguments, comm, request);
}

int ct_call_spread(ct_timed_call *c, MPI_Comm comm)
{
    for (int distance = 1; distance < c->size; distance *= 2) {
        int blocks = 1; /* that a rank passes on in this round, where there is one for each rank */
        char *from = c->send, *to = c->receive;
        if (c->kind == CT_ALLGATHER) {
            blocks = distance < c->size - distance ? distance : c->size - distance;
            from = c->receive, to = (char *)c->receive + (size_t)distance * (size_t)c->count;
        } else if (c->kind == CT_ALLTOALL) {
            for (int peer = blocks = 0; peer < c->size; peer++)
                blocks += (peer & distance) != 0;
        }
        int bytes = blocks * c->count * (c->kind == CT_ALLREDUCE ? (int)sizeof(float) : 1);
        CT_TRY(MPI_Sendrecv(from, bytes, MPI_BYTE, (c->rank + distance) % c->size, CT_TAG_SYNC, to, bytes, MPI_BYTE,
                            (c->rank - distance + c->size) % c->size, CT_TAG_SYNC, comm, MPI_STATUS_IGNORE));
    }
    return MPI_SUCCESS;
}

int ct_call_run(ct_timed_call *c, MPI_Comm comm)
{
    if (c->nonblocking) {
        MPI_Request request;
        CT_TRY(ct_call_start(c, comm, &request));
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Count total = (MPI_Count)c->count * c->size;
    if (c->kind == CT_GATHER && ct_mock_up_takes(CT_MOCK_UP_GATHER, total))
        return ct_mock_up_gather(c->send, c->count, MPI_BYTE, c->receive, c->count, MPI_BYTE, c->root, comm);
    if (c->kind == CT_SCATTER && ct_mock_up_takes(CT_MOCK_UP_SCATTER, total))
        return ct_mock_up_scatter(c->send, c->count, MPI_BYTE, c->receive, c->count, MPI_BYTE, c->root, comm);
    if (c->kind == CT_ALLTOALLV)
        return ct_blocks_exchange(&c->blocks, c->send, c->receive, comm);
    return ct_function_call(c->kind, &c->arguments, comm, NULL);
}

size_t ct_call_receives(const ct_timed_call *call) { return call->kind == CT_BARRIER ? 0 : call->receive_bytes; }

void ct_call_untouch(ct_timed_call *call)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = call->receive_bytes / page * page;
    if (bytes > 0)
        madvise(call->receive, bytes, MADV_DONTNEED);
}

void ct_call_poison(ct_timed_call *call) { memset(call->receive, 0xA5, call->receive_bytes); }

static bool ct__bytes_from(const unsigned char *got, size_t bytes, int rank, size_t first)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != ct__byte(rank, first + i))
            return false;
    return true;
}

/* The sums of the first `ranks` ranks. */
static bool ct__sums(const ct_timed_call *call, size_t elements, size_t first, int ranks)
{
    float sums[64], *got = call->receive;
    for (size_t i = 0; i < 64; i++) {
        long sum = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += ct__element(rank, i);
        sums[i] = (float)sum;
    }
    for (size_t i = 0; i < elements; i++)
        if (got[i] != sums[(first + i) & 63])
            return false;
    return true;
}

bool ct_call_correct(ct_timed_call *call)
{
    const unsigned char *got = call->receive;
    size_t count = (size_t)call->count, me = (size_t)call->rank;
    bool right = true;
    if (call->kind == CT_ALLTOALLV) {
        for (int peer = 0; peer < call->size && right; peer++)
            right = ct__bytes_from(got + call->blocks.places[1][peer], (size_t)call->blocks.counts[1][peer], peer,
                                   ct__part_for(call->rank));
        return right;
    }
    if (call->kind == CT_BARRIER || (CT__KIND[call->kind].to_root && call->rank != call->root) ||
        (call->kind == CT_BCAST && call->rank == call->root))
        return true;
    if (call->kind == CT_REDUCE_SCATTER)
        return ct__sums(call, (size_t)call->counts[me], (size_t)call->displacements[me], call->size);
    if (call->kind == CT_SCAN || call->kind == CT_EXSCAN) /* of the latter rank 0 gets nothing */
        return ct__sums(call, call->kind == CT_SCAN || me > 0 ? count : 0, 0, call->rank + (call->kind == CT_SCAN));
    if (ct__reduces(call->kind))
        return ct__sums(call, count, call->kind == CT_REDUCE_SCATTER_BLOCK ? count * me : 0, call->size);
    bool all = CT__KIND[call->kind].gets_all;
    for (int peer = 0; peer < (all ? call->size : 1) && right; peer++)
        right = ct__bytes_from(got + (size_t)peer * count, count, all ? peer : call->root,
                               CT__KIND[call->kind].sends_all ? me * count : 0);
    return right;
}
