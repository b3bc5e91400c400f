/* Random calls of MPI_Alltoallv and MPI_Alltoallw by every algorithm, byte for byte against what must come out and against the
 * library's own call.
 *
 *     alltoallv_property SEED CASES
 *
 * Every rank derives the whole case from the seed, all ranks' send buffers included: what it must receive is worked out
 * without MPI. A case may use more than one type, displacements in any order with
 * gaps, overlapping send regions, pretended nodes of any size, sub-communicators, batches that differ between ranks, and
 * large-count arguments, and room for more than is sent. Messages of the application with any tag are in flight meanwhile. Prints a line, and returns 1
 * for a mismatch, or for a communicator that was not freed. Built with the sources in native/alltoallv, and with the linker's
 * --wrap for PMPI_Comm_create, PMPI_Comm_split_type and PMPI_Comm_free. */
#define _GNU_SOURCE /* setenv */
#include "algorithms.h"
#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 9, TYPES = 5 };

static uint64_t mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

typedef struct {
    uint64_t seed;
    int number, size, rank;
    int kind, send_type, receive_type;
    bool each_type, one_type, wide, overlap, more; /* more: room for more than is sent; each_type: MPI_Alltoallw; one_type: with the same type for all blocks */
    ct_alltoallv_choice choice;
} test_case;

static uint64_t draw(const test_case *c, int what, int a, int b)
{
    return mix(c->seed * 1000003 + (uint64_t)c->number * 131 + mix((uint64_t)what << 40 | (uint64_t)a << 20 | (uint64_t)b));
}

static MPI_Datatype types[TYPES];
static const int ints_of[TYPES] = {1, 2, 3, 1, 4}; /* in an element */
static const int at_of[TYPES][4] = {{0}, {0, 8}, {0, 4, 8}, {-4}, {12, 0, 20, 4}}; /* bytes, in the order of the type's map */
static const int extent_of[TYPES] = {4, 20, 12, 12, 24};

static void make_types(void)
{
    MPI_Datatype vector, negative;
    types[0] = MPI_INT;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 20, &types[1]);
    MPI_Type_contiguous(3, MPI_INT, &types[2]);
    MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){-4}, MPI_INT, &negative);
    MPI_Type_create_resized(negative, -4, 12, &types[3]);
    /* Not in order of address, and made with large counts where the MPI has them. */
#if MPI_VERSION >= 4
    MPI_Type_create_indexed_block_c(4, 1, (MPI_Count[]){3, 0, 5, 1}, MPI_INT, &types[4]);
#else
    MPI_Type_create_indexed_block(4, 1, (int[]){3, 0, 5, 1}, MPI_INT, &types[4]);
#endif
    for (int i = 0; i < TYPES; i++) {
        MPI_Aint lower, extent;
        if (i > 0)
            MPI_Type_commit(&types[i]);
        MPI_Type_get_extent(types[i], &lower, &extent);
        if (extent != extent_of[i]) {
            printf("type %d extends over %d bytes, not %d\n", i, (int)extent, extent_of[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    MPI_Type_free(&vector);
    MPI_Type_free(&negative);
}

static void free_types(void)
{
    for (int i = 1; i < TYPES; i++)
        MPI_Type_free(&types[i]);
}

/* Units of the block from one rank to another; a unit is 12 integers, a multiple of what any type holds. */
static int units(const test_case *c, int from, int to)
{
    uint64_t r = draw(c, 1, from, to);
    switch (c->kind) {
    case 0: return 0;
    case 1: return (int)(r % 9);
    case 2: return r % 10 ? 0 : (int)(r / 10 % 12);
    case 3: return from == (int)(draw(c, 2, 0, 0) % (unsigned)c->size) ? (int)(r % 20) : 0;
    case 4: return to == (int)(draw(c, 2, 0, 0) % (unsigned)c->size) ? (int)(r % 20) : 0;
    case 5: return 3;
    case 6: return r % 16 ? (int)(r % 3) : (int)(r / 16 % 300); /* heavy tail */
    case 7: return (int)(r & 1);
    default: return from < to ? (int)(r % 40) : (int)(r % 2);
    }
}

/* Units that there is room for beyond those that are sent. An algorithm that sends no empty message would wait for a block that
 * never comes, as MPICH's own does. */
static int more_units(const test_case *c, int from, int to)
{
    bool skips_empty = ct_choice_normal(&c->choice, c->size).algorithm == CT_ALLTOALLV_LINEAR;
    uint64_t r = draw(c, 22, from, to);
    if (!c->more || r % 3 == 0 || (units(c, from, to) == 0 && skips_empty))
        return 0;
    return r % 11 == 0 ? 120 : (int)(r % 7);
}

typedef struct {
    int *counts, *displacements;
    MPI_Count *wide_counts;
    MPI_Aint *wide_displacements;
    MPI_Datatype *each;
    int64_t *begin; /* bytes from the start of the buffer */
    int *buffer;
    size_t bytes;
} direction;

static int type_at(const test_case *c, bool receive, int from, int to)
{
    if (!c->each_type || c->one_type)
        return receive ? c->receive_type : c->send_type;
    return (int)(draw(c, receive ? 4 : 3, from, to) % TYPES);
}

static int count_at(const test_case *c, bool receive, int from, int to)
{
    int all = units(c, from, to) + (receive ? more_units(c, from, to) : 0);
    return all * 12 / ints_of[type_at(c, receive, from, to)];
}

/* Where a rank's blocks begin, for all peers: a random order with random gaps, all inside one buffer with room before it
 * for negative bounds. Returns how many bytes that takes. */
static int64_t place(const test_case *c, bool receive, int rank, int64_t *begin)
{
    int *order = malloc(sizeof(int) * (size_t)c->size);
    for (int i = 0; i < c->size; i++)
        order[i] = i;
    for (int i = c->size - 1; i > 0; i--) {
        int j = (int)(draw(c, 5 + receive, rank, i) % (unsigned)(i + 1)), kept = order[i];
        order[i] = order[j], order[j] = kept;
    }
    int64_t at = 64, end = 64;
    for (int i = 0; i < c->size; i++) {
        int peer = order[i], from = receive ? peer : rank, to = receive ? rank : peer;
        int64_t extent = extent_of[type_at(c, receive, from, to)], unit = c->each_type ? 4 : extent;
        begin[peer] = (at + unit - 1) / unit * unit;
        if (c->overlap && !receive)
            begin[peer] = (64 + unit - 1) / unit * unit;
        int64_t gap = (int64_t)(draw(c, 7, peer, rank) % 3);
        at = begin[peer] + (count_at(c, receive, from, to) + gap) * extent + 8;
        if (at > end)
            end = at;
    }
    free(order);
    return end;
}

static int content(const test_case *c, int rank, int64_t index) { return (int)draw(c, 8, rank, (int)index); }

static void lay_out(const test_case *c, bool receive, direction *d)
{
    size_t size = (size_t)c->size;
    d->counts = malloc(sizeof(int) * size), d->displacements = malloc(sizeof(int) * size);
    d->wide_counts = malloc(sizeof(MPI_Count) * size), d->wide_displacements = malloc(sizeof(MPI_Aint) * size);
    d->each = malloc(sizeof(MPI_Datatype) * size), d->begin = malloc(sizeof(int64_t) * size);
    d->bytes = ((size_t)place(c, receive, c->rank, d->begin) + 256) / sizeof(int) * sizeof(int);
    for (int peer = 0; peer < c->size; peer++) {
        int from = receive ? peer : c->rank, to = receive ? c->rank : peer, type = type_at(c, receive, from, to);
        d->wide_counts[peer] = d->counts[peer] = count_at(c, receive, from, to);
        d->displacements[peer] = (int)(c->each_type ? d->begin[peer] : d->begin[peer] / extent_of[type]);
        d->wide_displacements[peer] = d->displacements[peer];
        d->each[peer] = types[type];
    }
    d->buffer = malloc(d->bytes);
    for (size_t i = 0; i < d->bytes / sizeof(int); i++)
        d->buffer[i] = receive ? -7 : content(c, c->rank, (int64_t)i);
}

static int64_t int_at(const test_case *c, bool receive, int from, int to, int64_t begin, int number)
{
    int type = type_at(c, receive, from, to);
    int64_t element = number / ints_of[type];
    return (begin + element * extent_of[type] + at_of[type][number % ints_of[type]]) / (int64_t)sizeof(int);
}

/* The receive buffer as it must be after the call. */
static int *expect(const test_case *c, const direction *receive)
{
    int *buffer = malloc(receive->bytes);
    int64_t *theirs = malloc(sizeof(int64_t) * (size_t)c->size);
    memcpy(buffer, receive->buffer, receive->bytes);
    for (int from = 0; from < c->size; from++) {
        place(c, false, from, theirs);
        for (int i = 0; i < units(c, from, c->rank) * 12; i++) {
            int64_t source = int_at(c, false, from, c->rank, theirs[c->rank], i);
            buffer[int_at(c, true, from, c->rank, receive->begin[from], i)] = content(c, from, source);
        }
    }
    free(theirs);
    return buffer;
}

static void let_go(direction *d)
{
    free(d->counts), free(d->displacements), free(d->wide_counts), free(d->wide_displacements), free(d->each), free(d->begin),
        free(d->buffer);
}

static ct_a2av_call call_of(const test_case *c, const direction *send, const direction *receive, void *into, MPI_Comm comm)
{
    return (ct_a2av_call){.send = send->buffer, .send_counts = c->wide ? (void *)send->wide_counts : send->counts,
                     .send_displacements = c->wide ? (void *)send->wide_displacements : send->displacements,
                     .send_type = types[c->send_type], .send_types = c->each_type ? send->each : NULL, .receive = into,
                     .receive_counts = c->wide ? (void *)receive->wide_counts : receive->counts,
                     .receive_displacements = c->wide ? (void *)receive->wide_displacements : receive->displacements,
                     .receive_type = types[c->receive_type], .receive_types = c->each_type ? receive->each : NULL,
                     .comm = comm, .wide = c->wide};
}

/* Open MPI (4.1.4 and 5.0.11) takes the displacements of MPI_Alltoallw on one rank for multiples of the extent, where they
 * are bytes, and so reads and writes beyond the buffers. */
static bool library_is_sound(const test_case *c)
{
#ifdef OPEN_MPI
    return !(c->each_type && c->size == 1) && !c->more; /* an error for a rank's own block */
#else
    return !c->more; /* waits for blocks that are empty */
#endif
}

static bool check(const test_case *c, const char *whose, int code, const int *got, const int *expected, size_t bytes)
{
    if (code == MPI_SUCCESS && memcmp(got, expected, bytes) == 0)
        return true;
    printf("mismatch of %s: case %d rank %d of %d, kind %d, %s radix %d batch %d direct above %d, types %d %d%s%s%s%s, code %d\n", whose,
           c->number, c->rank, c->size, c->kind, ct_alltoallv_name(c->choice.algorithm), c->choice.radix, c->choice.batch,
           c->choice.direct_above, c->send_type, c->receive_type, c->each_type ? " each" : "", c->one_type ? " one" : "",
           c->wide ? " wide" : "", c->more ? " more" : "", code);
    return false;
}

static bool run_case(const test_case *c, MPI_Comm comm)
{
    direction send, receive;
    lay_out(c, false, &send);
    lay_out(c, true, &receive);
    int *expected = expect(c, &receive), *mine = malloc(receive.bytes);
    memcpy(mine, receive.buffer, receive.bytes);
    test_case narrow = *c;
    narrow.wide = false;
    ct_a2av_call theirs = call_of(&narrow, &send, &receive, receive.buffer, comm), ours = call_of(c, &send, &receive, mine, comm);
    bool right = !library_is_sound(c) || check(c, "the library", ct_call_library(&theirs), receive.buffer, expected, receive.bytes);
    right = check(c, "ours", ct_call_by(&c->choice, &ours), mine, expected, receive.bytes) && right;
    let_go(&send);
    let_go(&receive);
    free(expected);
    free(mine);
    return right;
}

/* Communicators that native/alltoallv has made and not freed. A sanitizer does not see them: their memory is the library's. */
static int alive;
int __real_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);
int __real_PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made);
int __real_PMPI_Comm_free(MPI_Comm *comm);
int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made);
int __wrap_PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made);
int __wrap_PMPI_Comm_free(MPI_Comm *comm);

int __wrap_PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
    alive += comm != MPI_COMM_SELF; /* that one is kept until MPI_Finalize */
    return __real_PMPI_Comm_create(comm, group, made);
}
int __wrap_PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    return alive++, __real_PMPI_Comm_split_type(comm, type, key, info, made);
}
int __wrap_PMPI_Comm_free(MPI_Comm *comm) { return alive--, __real_PMPI_Comm_free(comm); }

static test_case make_case(uint64_t seed, int number, MPI_Comm comm)
{
    test_case c = {.seed = seed, .number = number};
    MPI_Comm_rank(comm, &c.rank);
    MPI_Comm_size(comm, &c.size);
    c.kind = (int)(draw(&c, 10, 0, 0) % KINDS);
    c.send_type = (int)(draw(&c, 11, 0, 0) % TYPES), c.receive_type = (int)(draw(&c, 12, 0, 0) % TYPES);
    c.each_type = draw(&c, 13, 0, 0) % 5 == 0;
    c.one_type = c.each_type && draw(&c, 21, 0, 0) % 3 == 0;
    c.overlap = draw(&c, 14, 0, 0) % 8 == 0;
    c.choice.algorithm = 1 + (int)(draw(&c, 15, 0, 0) % (CT_ALLTOALLV_ALGORITHMS - 1));
    int radixes[] = {2, 3, 4, c.size, c.size - 1, 2 + (int)(draw(&c, 16, 0, 0) % (unsigned)c.size)}, root = 2;
    while (root * root < c.size)
        root++;
    c.choice.radix = draw(&c, 17, 0, 0) % 4 ? radixes[draw(&c, 17, 1, 0) % 6] : root;
    c.choice.batch = (int)(draw(&c, 18, c.rank, 0) % (unsigned)(c.size + 1)); /* unlike on other ranks */
    static const int above[] = {0, 1, 100, 1000, 1 << 20};
    c.choice.direct_above = above[draw(&c, 19, 0, 0) % 5];
    c.more = draw(&c, 23, 0, 0) % 4 == 0;
    c.wide = draw(&c, 20, c.rank, 0) % 4 == 0;
    return c;
}

/* A communicator for a few dozen cases: ranks reversed, a part of the job, pretended nodes. */
static MPI_Comm make_comm(uint64_t seed, int group)
{
    int rank, size;
    char every[16];
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t r = mix(seed + 77 * (uint64_t)group);
    snprintf(every, sizeof every, "%d", (int)(r % 4 == 0 ? 0 : 1 + r / 4 % (unsigned)size));
    setenv("COLLTUNE_ALLTOALLV_NODE", every, 1);
    int colour = group % 4 == 3 ? rank % 2 : 0, key = r / 256 % 2 ? size - rank : rank;
    MPI_Comm_split(MPI_COMM_WORLD, colour, key, &comm);
    return comm;
}

int main(int argc, char **argv)
{
    enum { GROUP = 25 };
    MPI_Init(&argc, &argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int cases = argc > 2 ? atoi(argv[2]) : 100, wrong = 0, all_wrong, rank, size;
    make_types();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int number = 0; number < cases; number += GROUP) {
        MPI_Comm comm = make_comm(seed, number / GROUP);
        int stray = 42, got = 42, peers, me;
        MPI_Request request = MPI_REQUEST_NULL; /* from anyone, with any tag: no message of ours may end up here */
        MPI_Comm_size(comm, &peers);
        MPI_Comm_rank(comm, &me);
        if (peers > 1) { /* MPICH 5.0.2's own MPI_Alltoallv of one rank hangs beside such a receive */
            stray = 0;
            MPI_Irecv(&stray, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
        }
        for (int i = number; i < number + GROUP && i < cases; i++) {
            test_case c = make_case(seed, i, comm);
            wrong += !run_case(&c, comm);
        }
        if (peers > 1)
            MPI_Send(&got, 1, MPI_INT, (me + 1) % peers, 5, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += stray != 42;
        alive++; /* MPI_Comm_free of plain.c ends in PMPI_Comm_free */
        MPI_Comm_free(&comm);
    }
    if (alive != 0)
        printf("rank %d: %d communicators were not freed\n", rank, alive);
    wrong += alive != 0;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d cases, %d mismatches\n", size, cases, all_wrong);
    free_types();
    MPI_Finalize();
    return all_wrong != 0;
}
