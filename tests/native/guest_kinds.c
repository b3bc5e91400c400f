/* Calls of every kind beside collectives, and collectives of every kind of data. */
#define _DEFAULT_SOURCE /* usleep */
#include "guest_cases.h"

#include <unistd.h>

/* Several at once, started again and again; the all-to-all is in place. */
static long ct__persistent(int rank, int size)
{
    enum { KINDS = 5 };
    MPI_Comm comm;
    int sent = 0, sum = 0, word = 0, all[MOST_RANKS], blocks[2 * MOST_RANKS];
    long total = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int pass = 0; pass < 2; pass++) {
        MPI_Request requests[KINDS], unused;
        MPI_Allreduce_init(&sent, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
        MPI_Bcast_init(&word, 1, MPI_INT, size - 1, comm, MPI_INFO_NULL, &requests[1]);
        MPI_Allgather_init(&sent, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &unused);
        MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[2]);
        MPI_Alltoall_init(MPI_IN_PLACE, 0, MPI_INT, blocks, 2, MPI_INT, comm, MPI_INFO_NULL, &requests[3]);
        MPI_Allgather_init(&sent, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &requests[4]);
        MPI_Request_free(&unused); /* was never started */
        for (int round = 0; round < 20; round++) {
            sent = rank + round, word = rank == size - 1 ? round : -1;
            for (int i = 0; i < 2 * size; i++)
                blocks[i] = 100 * rank + i + round;
            round % 2 ? (void)MPI_Startall(KINDS, requests)
                      : (void)(MPI_Start(&requests[0]), MPI_Start(&requests[1]), MPI_Startall(KINDS - 2, requests + 2));
            total += round % 5 == 0 ? exchange_once(MPI_COMM_WORLD, round) : 0;
            MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE);
            total = digest(digest(digest(total + word, &sum, 1), all, size), blocks, 2 * size);
        }
        for (int i = 0; i < KINDS; i++)
            MPI_Request_free(&requests[i]);
    }
    MPI_Comm_free(&comm);
    return total;
}

static long ct__in_place(int rank, int size)
{
    int data[2 * MOST_RANKS], counts[MOST_RANKS], places[MOST_RANKS];
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size, here = rank == root;
        for (int i = 0; i < 2 * size; i++)
            data[i] = rank * 10 + i + round;
        for (int i = 0; i < size; i++)
            counts[i] = 2, places[i] = 2 * i;
        MPI_Allreduce(MPI_IN_PLACE, data, 2 * size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INT, MPI_COMM_WORLD);
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, places, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, counts, places, MPI_INT, MPI_COMM_WORLD);
        sum = digest(sum, data, 2 * size);
        MPI_Reduce(here ? MPI_IN_PLACE : data, here ? data : NULL, 2 * size, MPI_INT, MPI_MAX, root, MPI_COMM_WORLD);
        MPI_Gather(here ? MPI_IN_PLACE : data, 2, MPI_INT, here ? data : NULL, 2, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Gatherv(here ? MPI_IN_PLACE : data, 2, MPI_INT, data, here ? counts : NULL, places, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scatter(here ? data : NULL, 2, MPI_INT, here ? MPI_IN_PLACE : data, 2, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scatterv(data, here ? counts : NULL, places, MPI_INT, here ? MPI_IN_PLACE : data, 2, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scan(MPI_IN_PLACE, data, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce_scatter_block(MPI_IN_PLACE, data, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        sum = digest(sum, data, 2);
    }
    return sum;
}

/* What does not count on a rank is anything at all there. */
static long ct__without_meaning(int rank, int size)
{
    int word = rank, got[2 * MOST_RANKS] = {0}, counts[MOST_RANKS], places[MOST_RANKS];
    long sum = 0;
    for (int i = 0; i < MOST_RANKS; i++)
        counts[i] = 0, places[i] = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size, here = rank == root;
        MPI_Gather(&word, 1, MPI_INT, here ? got : NULL, here ? 1 : -5, here ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
        sum = digest(sum, got, size);
        MPI_Scatter(here ? got : NULL, here ? 1 : -5, here ? MPI_INT : MPI_DATATYPE_NULL, &word, 1, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Reduce(&word, here ? got : NULL, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        MPI_Alltoallv(NULL, counts, places, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        MPI_Allgather(NULL, 0, MPI_INT, got, 0, MPI_INT, MPI_COMM_WORLD);
        MPI_Bcast(NULL, 0, MPI_INT, root, MPI_COMM_WORLD);
        sum = digest(sum, got, 1) + word;
        word = rank;
    }
    return sum;
}

/* Data below the buffer's address, of absolute addresses, of other extents, of no bytes. */
static long ct__types(int rank, int size)
{
    int data[4 * MOST_RANKS], got[4 * MOST_RANKS] = {0};
    long sum = 0;
    MPI_Datatype below, apart, empty, absolute, pair;
    MPI_Aint address;
    MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){-(MPI_Aint)sizeof(int)}, MPI_INT, &pair);
    MPI_Type_create_resized(pair, -(MPI_Aint)sizeof(int), 2 * sizeof(int), &below);
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &apart);
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Get_address(data + 1, &address);
    MPI_Type_create_hindexed(1, (int[]){2}, &address, MPI_INT, &absolute);
    MPI_Type_commit(&below), MPI_Type_commit(&apart), MPI_Type_commit(&empty), MPI_Type_commit(&absolute);
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % size;
        for (int i = 0; i < 4 * MOST_RANKS; i++)
            data[i] = rank * 7 + i + round;
        MPI_Bcast(data + 1, 1, below, root, MPI_COMM_WORLD);
        MPI_Bcast(MPI_BOTTOM, 1, absolute, root, MPI_COMM_WORLD);
        MPI_Allgather(data, 1, MPI_INT, got, 1, apart, MPI_COMM_WORLD);
        sum = digest(sum, got, 3 * size);
        MPI_Allgather(data, 1, MPI_INT, got + 1, 1, below, MPI_COMM_WORLD);
        MPI_Alltoall(data, 1, MPI_INT, got + 1, 1, below, MPI_COMM_WORLD);
        MPI_Gather(MPI_BOTTOM, 1, absolute, got, 2, MPI_INT, root, MPI_COMM_WORLD);
        sum = digest(sum, got, 2 * size);
        MPI_Bcast(data, 9, empty, root, MPI_COMM_WORLD);
        MPI_Allgather(data, 5, empty, got, 5, empty, MPI_COMM_WORLD);
        MPI_Type_free(&pair); /* lives on in those that are made of it */
        MPI_Type_contiguous(1, MPI_INT, &pair);
        sum = digest(sum, data, 4);
    }
    MPI_Type_free(&below), MPI_Type_free(&apart), MPI_Type_free(&empty), MPI_Type_free(&absolute), MPI_Type_free(&pair);
    return sum;
}

static int ct__made;
/* Composes maps x -> a x + b of the numbers below 97, each in one number: the order counts, where it is bracketed does not. */
static void ct__compose(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int rank, bytes, flag, *first = in, *second = inout;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_size(*type, &bytes);
    MPI_Initialized(&flag);
    if (ct__made++ % 16 == 0)
        usleep(100);
    for (int i = 0; i < *length; i++) {
        int a = first[i] / 100, b = first[i] % 100, c = second[i] / 100, d = second[i] % 100;
        second[i] = a * c % 97 * 100 + (a * d + b) % 97 + (bytes != sizeof(int) || !flag);
    }
}

/* Operations of the program's own, which ask MPI, sleep, and do not commute. */
static long ct__operations(int rank, int size)
{
    int sent[3], got[3] = {0};
    long sum = 0;
    MPI_Op op, freed;
    MPI_Request request;
    MPI_Op_create(ct__compose, 0, &op);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++)
            sent[i] = 100 * (1 + rank + round) + 7 * rank + i;
        MPI_Allreduce(sent, got, 3, MPI_INT, op, MPI_COMM_WORLD);
        sum = digest(sum, got, 3);
        MPI_Reduce(sent, got, 3, MPI_INT, op, round % size, MPI_COMM_WORLD);
        MPI_Scan(sent, got, 3, MPI_INT, op, MPI_COMM_WORLD);
        MPI_Exscan(sent, got, 3, MPI_INT, op, MPI_COMM_WORLD);
        sum = digest(sum, got, 3);
        MPI_Ireduce(sent, got, 3, MPI_INT, op, 0, MPI_COMM_WORLD, &request);
        freed = op; /* freed with a call under way */
        MPI_Op_free(&freed);
        MPI_Op_create(ct__compose, 0, &op);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum = digest(sum, got, 3);
    }
    MPI_Op_free(&op);
    return sum;
}

static int ct__handled;
static void ct__handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, ct__handled++; }

/* The handler changes while calls are under way, and stays what the program set. */
static long ct__handlers(int rank, int size)
{
    MPI_Comm comm;
    MPI_Errhandler own, there;
    MPI_Request request;
    int got = 0, same = 0;
    long sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(ct__handle, &own);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm_set_errhandler(comm, round % 3 == 0 ? own : MPI_ERRORS_RETURN);
        MPI_Iallreduce(&rank, &got, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Comm_set_errhandler(comm, round % 3 == 1 ? own : MPI_ERRORS_ARE_FATAL);
        sum += exchange_once(comm, round);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_get_errhandler(comm, &there);
        same += there == (round % 3 == 1 ? own : MPI_ERRORS_ARE_FATAL);
        if (there == own)
            MPI_Errhandler_free(&there);
        MPI_Comm_set_errhandler(comm, own);
        int word = -1, code = MPI_Bcast(&word, 1, MPI_INT, size + 3, comm);
        sum = digest(sum + (code == MPI_SUCCESS), &got, 1);
    }
    MPI_Errhandler_free(&own);
    MPI_Comm_free(&comm);
    return sum * 100 + same + ct__handled;
}

static int ct__query(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int ct__free(void *extra) { return *(int *)extra = 99, MPI_SUCCESS; }
static int ct__cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

/* Requests of other kinds are under way: received from anybody, cancelled, generalized, partitioned. */
static long ct__requests(int rank, int size)
{
    int word = rank, got = -1, never = 0, cancelled = 0, count = 0, extra = 4, next = (rank + 1) % size;
    int before = (rank + size - 1) % size, parts[4], taken[4];
    long sum = 0;
    MPI_Request any, gone, generalized, out, in;
    MPI_Status status;
    for (int round = 0; round < 4; round++) {
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
        MPI_Irecv(&never, 1, MPI_INT, next, 999, MPI_COMM_WORLD, &gone);
        MPI_Grequest_start(ct__query, ct__free, ct__cancel, &extra, &generalized);
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Cancel(&gone);
        MPI_Wait(&gone, &status);
        MPI_Test_cancelled(&status, &cancelled);
        MPI_Send(&word, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
        MPI_Wait(&any, &status);
        MPI_Grequest_complete(generalized);
        MPI_Wait(&generalized, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Psend_init(parts, 4, 1, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &out);
        MPI_Precv_init(taken, 4, 1, MPI_INT, before, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &in);
        MPI_Start(&out), MPI_Start(&in);
        for (int i = 0; i < 4; i++) {
            parts[i] = 10 * rank + i;
            MPI_Pready(i, out);
        }
        sum += exchange_once(MPI_COMM_WORLD, round);
        MPI_Wait(&out, MPI_STATUS_IGNORE), MPI_Wait(&in, MPI_STATUS_IGNORE);
        MPI_Request_free(&out), MPI_Request_free(&in);
        sum = digest(sum + got + 5 * cancelled + 7 * count + extra, taken, 4);
        extra = 4;
    }
    return sum;
}

/* A control variable that the program writes holds from then on. */
static long ct__control_variables(int rank, int size)
{
#ifdef MPICH_VERSION
    static const char *const NAMES[] = {"MPIR_CVAR_BCAST_INTRA_ALGORITHM", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM",
                                        "MPIR_CVAR_IALLREDUCE_INTRA_ALGORITHM"};
#else
    static const char *const NAMES[] = {"coll_tuned_bcast_algorithm", "coll_tuned_allreduce_algorithm",
                                        "coll_libnbc_iallreduce_algorithm"};
#endif
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    int provided, index, count, value, seen[COUNT];
    long sum = 0;
    MPI_T_cvar_handle handles[COUNT];
    MPI_T_pvar_session session;
    MPI_Comm comm;
    (void)rank, (void)size;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNT; i++) {
        if (MPI_T_cvar_get_index(NAMES[i], &index) != MPI_SUCCESS)
            return -1;
        MPI_T_cvar_handle_alloc(index, NULL, &handles[i], &count);
    }
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < COUNT; i++) {
            value = 2 * (round % 3); /* with 1 of the last MPICH cannot copy a communicator */
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_T_cvar_write(handles[i], &value);
        }
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        sum += exchange_once(comm, round) + exchange_once(comm, round);
        MPI_Comm_free(&comm);
        for (int i = 0; i < COUNT; i++) {
            MPI_T_cvar_read(handles[i], &seen[i]);
            sum += 1000 * (i + 1) * seen[i];
        }
    }
    value = 0;
    for (int i = 0; i < COUNT; i++) {
        MPI_T_cvar_write(handles[i], &value);
        MPI_T_cvar_handle_free(&handles[i]);
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return sum;
}

/* Counts of the wide forms, where the library has them. */
static long ct__wide_counts(int rank, int size)
{
    int got[2 * MOST_RANKS] = {rank};
    long sum = size;
#if defined(MPICH_VERSION) && MPI_VERSION >= 4
    MPI_Count counts[MOST_RANKS];
    MPI_Aint places[MOST_RANKS];
    MPI_Request request;
    int sent[2 * MOST_RANKS];
    for (int i = 0; i < 2 * MOST_RANKS; i++)
        counts[i / 2] = 2, places[i / 2] = i / 2 * 2, sent[i] = rank + i;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Bcast_c(sent, 3, MPI_INT, round % size, MPI_COMM_WORLD);
        MPI_Allreduce_c(sent, got, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum = digest(sum, got, 2);
        MPI_Alltoallv_c(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        sum = digest(sum, got, 2 * size);
        MPI_Allgatherv_c(sent, 2, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
        sum = digest(sum, got, 2 * size);
        MPI_Gather_c(sent, 1, MPI_INT, got, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Ibcast_c(got, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum = digest(sum, got, 1);
    }
#endif
    return digest(sum, got, 1);
}

static long ct__large_data(int rank, int size)
{
    enum { COUNT = 1 << 17 };
    int *sent = malloc(sizeof(int) * COUNT), *got = malloc(sizeof(int) * COUNT * (size_t)size);
    long sum = 0;
    for (int i = 0; i < COUNT; i++)
        sent[i] = rank + i;
    for (int round = 0; round < 3; round++) {
        MPI_Bcast(sent, COUNT, MPI_INT, round % size, MPI_COMM_WORLD);
        MPI_Allreduce(sent, got, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum = digest(sum, got, 5) + got[COUNT - 1];
        MPI_Allgather(sent, COUNT, MPI_INT, got, COUNT, MPI_INT, MPI_COMM_WORLD);
        MPI_Alltoall(got, COUNT / size, MPI_INT, got + COUNT, COUNT / size, MPI_INT, MPI_COMM_WORLD);
        sum = digest(sum, got + COUNT, 9);
    }
    free(sent), free(got);
    return sum;
}

/* Many calls of one kind, so that rules are measured, in a sequence that no two kinds share. */
static long ct__many_calls(int rank, int size)
{
    int word = 0, all;
    long sum = 0;
    for (int round = 0; round < 400; round++) {
        word = rank == round % size ? round : 0;
        MPI_Bcast(&word, 1, MPI_INT, round % size, MPI_COMM_WORLD);
        MPI_Pcontrol(round % 3);
        if (round % 7 == 0)
            MPI_Allreduce(&word, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum = digest(sum + word, &all, round > 0);
    }
    return sum;
}

static const guest_case CASES[] = {
    {"persistent", ct__persistent},
    {"in_place", ct__in_place},
    {"without_meaning", ct__without_meaning},
    {"types", ct__types},
    {"operations", ct__operations},
    {"handlers", ct__handlers},
    {"requests", ct__requests},
    {"control_variables", ct__control_variables},
    {"wide_counts", ct__wide_counts},
    {"large_data", ct__large_data},
    {"many_calls", ct__many_calls},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return run_cases(CASES, sizeof CASES / sizeof *CASES, argc, argv);
}
