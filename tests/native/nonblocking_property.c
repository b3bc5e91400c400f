/* Random calls that do not block, in their non-blocking and persistent forms, element for element against what must come out.
 *
 *     nonblocking_property SEED CASES [VARIABLE ...]
 *
 * Every rank derives the whole case from the seed. A case has up to three requests under way at once on one communicator,
 * completed in an order of each rank's own, blocking calls between start and wait, types that differ between ranks,
 * operations that do not commute, calls in place, and wrong calls, whose error must come to the program's handler and no other.
 * A persistent request is started three times. After each call that starts something the control variables named must have
 * the value that they had before. At the end the environment and an attribute of the program must be as they were. Prints
 * "R ranks, N cases, M mismatches" on rank 0, and returns 1 for a mismatch. */
#define _GNU_SOURCE
#include <mpi.h>
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Bcast_init MPIX_Bcast_init
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { FLIGHTS = 3, MOST_RANKS = 16, MOST_COUNT = 40000, COMMS = 4, WATCHED = 32, STARTS = 3 };
enum { ALLGATHER, ALLREDUCE, ALLTOALL, BCAST, COLLECTIVES };
enum { SUM, MAX, XOR, COMPOSE, OPS };

typedef struct {
    int collective, op, root, count, wide_sender, wide_receiver; /* count: pairs of unsigned */
    bool persistent, in_place;
    unsigned *send, *receive;
    MPI_Request request;
} flight;

static uint64_t seed;
static int number, rank, size, mismatches, handled, elsewhere, watched, at_first[WATCHED], deleted;
static MPI_Comm comms[COMMS], comm;
static MPI_Datatype pair, wide; /* of 2 unsigned, and of 4 pairs */
static MPI_Op compose_op;
static MPI_T_cvar_handle handles[WATCHED];
static unsigned bases[FLIGHTS][STARTS]; /* of the values of a case */

static uint64_t draw(int what, int a)
{
    uint64_t v = seed * 1000003 + (uint64_t)number * 131 + ((uint64_t)what << 40 | (uint64_t)a);
    for (int i = 0; i < 2; i++)
        v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 29;
    return v ^ v >> 33;
}

static unsigned value(int k, int start, int from, int to, int i)
{
    return bases[k][start] + (unsigned)from * 2654435761u + (unsigned)to * 40503u + (unsigned)i * 97u;
}

static void bad(const char *what, int k)
{
    if (mismatches++ < 5)
        fprintf(stderr, "case %d, flight %d, rank %d of %d: %s\n", number, k, rank, size, what);
}

/* x -> a x + b: associative, and does not commute. */
static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    unsigned *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < 2 * *count; i += 2) {
        right[i + 1] += left[i + 1] * right[i];
        right[i] *= left[i];
    }
}

static unsigned reduced(int op, int k, int start, int i, unsigned *other)
{
    unsigned sum = value(k, start, 0, 0, i), second = value(k, start, 0, 0, i + 1);
    for (int from = 1; from < size; from++) {
        unsigned next = value(k, start, from, 0, i), next_second = value(k, start, from, 0, i + 1);
        if (op == COMPOSE)
            second = second * next + next_second, sum *= next;
        else if (op == SUM)
            sum += next, second += next_second;
        else if (op == XOR)
            sum ^= next, second ^= next_second;
        else
            sum = next > sum ? next : sum, second = next_second > second ? next_second : second;
    }
    *other = second;
    return sum;
}

static void handler(MPI_Comm *where, int *code, ...)
{
    int same;
    (void)code;
    MPI_Comm_compare(*where, comm, &same);
    handled++, elsewhere += same != MPI_IDENT;
}

static int delete_attribute(MPI_Comm where, int key, void *attribute, void *extra)
{
    (void)where, (void)key, (void)extra;
    deleted += attribute == (void *)&deleted;
    return MPI_SUCCESS;
}

static void look_at_variables(int k)
{
    for (int i = 0; i < watched; i++) {
        int now;
        if (MPI_T_cvar_read(handles[i], &now) != MPI_SUCCESS || now != at_first[i])
            bad("a control variable has another value", k);
    }
}

static void draw_flight(flight *f, int k)
{
    static const int COUNTS[] = {0, 4, 8, 12, 64, 256, 1024, 4096, MOST_COUNT / 4};
    f->collective = (int)(draw(1, k) % COLLECTIVES);
    f->op = (int)(draw(2, k) % OPS);
    f->root = (int)(draw(3, k) % (uint64_t)size);
    int most = f->collective == ALLREDUCE || f->collective == BCAST ? 9 : 7;
    f->count = COUNTS[draw(4, k) % (uint64_t)(draw(9, k) % 8 == 0 ? most : 6)];
    for (int start = 0; start < STARTS; start++)
        bases[k][start] = (unsigned)draw(100 + k, start);
    f->persistent = draw(5, k) % 4 == 0;
    f->in_place = f->collective != BCAST && draw(6, k) % 4 == 0;
    /* One message may be pairs here and groups of four pairs there. */
    f->wide_sender = (int)(draw(7, 64 * k + rank) % 2), f->wide_receiver = (int)(draw(8, 64 * k + rank) % 2);
}

static int blocks_sent(const flight *f) { return f->collective == ALLTOALL ? size : 1; }
static int blocks_received(const flight *f) { return f->collective == ALLTOALL || f->collective == ALLGATHER ? size : 1; }

static void fill(flight *f, int k, int start)
{
    int sends = 2 * f->count * blocks_sent(f), gets = 2 * f->count * blocks_received(f), block = 2 * f->count;
    memset(f->receive, 0xA5, sizeof(unsigned) * (size_t)gets);
    for (int i = 0; i < sends && !f->in_place; i++)
        f->send[i] = value(k, start, rank, f->collective == ALLTOALL ? i / block : 0, block > 0 ? i % block : 0);
    if (f->collective == BCAST && rank == f->root)
        memcpy(f->receive, f->send, sizeof(unsigned) * (size_t)sends);
    if (!f->in_place)
        return;
    int first = f->collective == ALLGATHER ? rank : 0, last = f->collective == ALLTOALL ? size - 1 : first;
    for (int to = first; to <= last; to++)
        for (int i = 0; i < block; i++)
            f->receive[to * block + i] = value(k, start, rank, f->collective == ALLTOALL ? to : 0, i);
}

static int begin(flight *f)
{
    MPI_Datatype sent = f->wide_sender ? wide : pair, got = f->wide_receiver ? wide : pair;
    int sends = f->wide_sender ? f->count / 4 : f->count, gets = f->wide_receiver ? f->count / 4 : f->count;
    const MPI_Op ops[OPS] = {MPI_SUM, MPI_MAX, MPI_BXOR, compose_op};
    bool composed = f->op == COMPOSE;
    void *from = f->in_place ? MPI_IN_PLACE : f->send;
    MPI_Datatype reduced_type = composed ? pair : MPI_UNSIGNED;
    int elements = composed ? f->count : 2 * f->count;
    switch (f->collective) {
    case ALLGATHER:
        return f->persistent ? MPI_Allgather_init(from, sends, sent, f->receive, gets, got, comm, MPI_INFO_NULL, &f->request)
                             : MPI_Iallgather(from, sends, sent, f->receive, gets, got, comm, &f->request);
    case ALLTOALL:
        return f->persistent ? MPI_Alltoall_init(from, sends, sent, f->receive, gets, got, comm, MPI_INFO_NULL, &f->request)
                             : MPI_Ialltoall(from, sends, sent, f->receive, gets, got, comm, &f->request);
    case BCAST:
        return f->persistent ? MPI_Bcast_init(f->receive, gets, got, f->root, comm, MPI_INFO_NULL, &f->request)
                             : MPI_Ibcast(f->receive, gets, got, f->root, comm, &f->request);
    default:
        return f->persistent ? MPI_Allreduce_init(from, f->receive, elements, reduced_type, ops[f->op], comm, MPI_INFO_NULL,
                                                  &f->request)
                             : MPI_Iallreduce(from, f->receive, elements, reduced_type, ops[f->op], comm, &f->request);
    }
}

static void compare(const flight *f, int k, int start)
{
    int block = 2 * f->count;
    for (int from = 0; from < blocks_received(f); from++)
        for (int i = 0; i < block; i += 2) {
            const unsigned *got = f->receive + from * block + i;
            int source = f->collective == BCAST ? f->root : from, to = f->collective == ALLTOALL ? rank : 0;
            unsigned first = value(k, start, source, to, i), second = value(k, start, source, to, i + 1);
            if (f->collective == ALLREDUCE)
                first = reduced(f->op, k, start, i, &second);
            if (got[0] != first || got[1] != second) {
                bad("wrong result", k);
                return;
            }
        }
}

/* Completes all requests, in an order that differs from rank to rank. */
static void complete(flight *flights, int count)
{
    MPI_Request requests[FLIGHTS];
    for (int k = 0; k < count; k++)
        requests[k] = flights[k].request;
    int way = (int)(draw(20, rank) % 3), first = (int)(draw(21, rank) % (uint64_t)count);
    for (int i = 0, k; i < count; i++) {
        int done = 0, code = MPI_SUCCESS;
        k = (first + i) % count;
        if (way == 0)
            code = MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
        else if (way == 1)
            code = MPI_Waitany(count, requests, &done, MPI_STATUS_IGNORE);
        while (way == 2 && !done && code == MPI_SUCCESS)
            code = MPI_Test(&requests[k], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            bad("a request does not complete", k);
    }
    for (int k = 0; k < count; k++) /* persistent ones stay */
        flights[k].request = flights[k].persistent ? flights[k].request : requests[k];
}

/* The same wrong call on all ranks: an error for the handler, nothing under way. */
static void call_wrongly(void)
{
    unsigned data[2 * MOST_RANKS] = {0}, other[2 * MOST_RANKS] = {0};
    int before = handled;
    MPI_Request request = MPI_REQUEST_NULL;
    switch (draw(30, 0) % 5) {
    case 0:
        MPI_Ibcast(data, -1, MPI_INT, 0, comm, &request);
        break;
    case 1:
        MPI_Ibcast(data, 1, MPI_INT, size, comm, &request);
        break;
    case 2:
        MPI_Iallreduce(data, other, 1, MPI_INT, MPI_OP_NULL, comm, &request);
        break;
    case 3:
        MPI_Iallgather(data, 1, MPI_DATATYPE_NULL, other, 1, MPI_DATATYPE_NULL, comm, &request);
        break;
    default:
        MPI_Ialltoall(data, -1, MPI_INT, other, -1, MPI_INT, comm, &request);
    }
    if (handled != before + 1)
        bad("the error of a wrong call does not come to the handler", -1);
    look_at_variables(-1);
}

static void run_case(flight *flights)
{
    int count = 1 + (int)(draw(10, 0) % FLIGHTS), starts = 1;
    comm = comms[draw(11, 0) % COMMS];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (draw(12, 0) % 16 == 0)
        call_wrongly();
    for (int k = 0; k < count; k++) {
        draw_flight(&flights[k], k);
        fill(&flights[k], k, 0);
        if (begin(&flights[k]) != MPI_SUCCESS)
            bad("a legal call fails", k);
        look_at_variables(k);
        if (flights[k].persistent)
            MPI_Start(&flights[k].request), starts = STARTS;
    }
    if (draw(13, 0) % 4 == 0) {
        unsigned mine = (unsigned)rank, sum;
        MPI_Allreduce(&mine, &sum, 1, MPI_UNSIGNED, MPI_SUM, comm);
        if (sum != (unsigned)(size * (size - 1) / 2))
            bad("wrong result of a blocking call beside", -1);
    }
    complete(flights, count);
    for (int k = 0; k < count; k++)
        compare(&flights[k], k, 0);
    for (int start = 1; start < starts; start++)
        for (int k = 0; k < count; k++)
            if (flights[k].persistent) {
                fill(&flights[k], k, start);
                MPI_Start(&flights[k].request);
                MPI_Wait(&flights[k].request, MPI_STATUS_IGNORE);
                compare(&flights[k], k, start);
            }
    for (int k = 0; k < count; k++)
        if (flights[k].persistent)
            MPI_Request_free(&flights[k].request);
        else if (flights[k].request != MPI_REQUEST_NULL)
            bad("a request is there after its completion", k);
}

static void watch(const char *name)
{
    int index, count;
    if (watched == WATCHED || MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handles[watched], &count) != MPI_SUCCESS ||
        MPI_T_cvar_read(handles[watched], &at_first[watched]) != MPI_SUCCESS) {
        fprintf(stderr, "%s cannot be read\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    watched++;
}

static uint64_t environment_sum(void)
{
    uint64_t sum = 0;
    for (char **entry = environ; *entry != NULL; entry++)
        for (const char *at = *entry; *at != '\0'; at++)
            sum = sum * 31 + (unsigned char)*at;
    return sum;
}

/* All ranks, the same again, the first ranks and the others, and the ranks in reverse order; with handler and attribute. */
static void make_comms(int world_rank, int world_size, MPI_Errhandler errhandler, int key)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(comms[0], &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < (world_size + 1) / 2, world_rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[3]);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_set_errhandler(comms[i], errhandler);
        MPI_Comm_set_attr(comms[i], key, &deleted);
    }
}

int main(int argc, char **argv)
{
    int world_rank, world_size, key, provided, all;
    MPI_Errhandler errhandler;
    flight flights[FLIGHTS] = {{0}};
    MPI_Init(&argc, &argv);
    uint64_t environment = environment_sum();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc < 3 || world_size > MOST_RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 3; i < argc; i++)
        watch(argv[i]);
    seed = strtoull(argv[1], NULL, 10);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(4, pair, &wide);
    MPI_Type_commit(&wide);
    MPI_Op_create(compose, 0, &compose_op);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, NULL);
    make_comms(world_rank, world_size, errhandler, key);
    for (int k = 0; k < FLIGHTS; k++) {
        flights[k].send = malloc(sizeof(unsigned) * 2 * MOST_COUNT);
        flights[k].receive = malloc(sizeof(unsigned) * 2 * MOST_COUNT);
    }
    for (number = 0; number < atoi(argv[2]); number++)
        run_case(flights);
    for (int i = 0; i < COMMS; i++) {
        void *kept = NULL;
        int there = 0;
        MPI_Comm_get_attr(comms[i], key, &kept, &there);
        if (!there || kept != (void *)&deleted)
            bad("an attribute of the program is lost", i);
        MPI_Comm_free(&comms[i]);
    }
    if (deleted != COMMS || elsewhere != 0 || environment_sum() != environment)
        bad("attributes, error handlers or the environment changed", -1);
    MPI_Allreduce(&mismatches, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("%d ranks, %s cases, %d mismatches\n", world_size, argv[2], all);
    for (int k = 0; k < FLIGHTS; k++) {
        free(flights[k].send);
        free(flights[k].receive);
    }
    MPI_Comm_free_keyval(&key);
    MPI_Errhandler_free(&errhandler);
    MPI_Op_free(&compose_op);
    MPI_Type_free(&wide);
    MPI_Type_free(&pair);
    MPI_T_finalize();
    MPI_Finalize();
    return all != 0;
}
