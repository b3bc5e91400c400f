/* Legal calls that a tool is apt to take for something else, and calls that MPI refuses. */
#include "guest_cases.h"

enum { MANY = 40 };

static long ct__seen(long sum, int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return digest(sum, &class, 1);
}

#ifndef OPEN_MPI /* which looks at each type */
/* No type where there is nothing to send: what stands there was never set. */
static long ct__unset_types(int rank, int size)
{
    int sent, got, counts[MOST_RANKS] = {0}, places[MOST_RANKS] = {0}, partner = rank ^ 1;
    long sum = 0;
    MPI_Datatype types[MOST_RANKS];
    MPI_Request request;
    memset(types, 0x5a, sizeof types);
    if (partner < size)
        counts[partner] = 1, types[partner] = MPI_INT;
    for (int round = 0; round < MANY; round++) {
        sent = rank + round, got = -1;
        MPI_Alltoallw(&sent, counts, places, types, &got, counts, places, types, MPI_COMM_WORLD);
        sum = digest(sum, &got, 1), got = -1;
        MPI_Ialltoallw(&sent, counts, places, types, &got, counts, places, types, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        sum = digest(sum, &got, 1);
    }
    return sum;
}

/* Nothing is sent, and one rank after the other names no type for it. */
static long ct__empty_bcast(int rank, int size)
{
    long sum = 0;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int round = 0; round < 2 * MANY; round++) {
        int word = rank == 0 ? round : -1;
        sum = ct__seen(sum, MPI_Bcast(NULL, 0, round % size == rank ? MPI_DATATYPE_NULL : MPI_INT, 0, comm));
        MPI_Bcast(&word, 1, MPI_INT, 0, comm);
        sum = digest(sum, &word, 1);
    }
    MPI_Comm_free(&comm);
    return sum;
}
#endif

/* Between the first rank (`alone`) and the others. */
static long ct__between_groups(MPI_Comm inter, bool alone, int rank, int there)
{
    int *sent = calloc(MOST_RANKS, sizeof *sent), *got = calloc(MOST_RANKS, sizeof *got);
    /* As many as there are ranks at the other end, and not one more: a read beyond is seen by a sanitizer. */
    int *counts = malloc(sizeof *counts * (size_t)there), *places = malloc(sizeof *places * (size_t)there);
    MPI_Datatype *types = malloc(sizeof *types * (size_t)there);
    long sum = 0;
    for (int i = 0; i < there; i++)
        counts[i] = 1, places[i] = i, types[i] = MPI_INT;
    for (int i = 0; i < MOST_RANKS; i++)
        sent[i] = rank + 100;
    MPI_Allgatherv(sent, 1, MPI_INT, got, counts, places, MPI_INT, inter);
    sum = digest(sum, got, there);
    memset(got, 0, MOST_RANKS * sizeof *got);
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, inter);
    for (int i = 0; i < there; i++)
        places[i] *= (int)sizeof(int);
    MPI_Alltoallw(sent, counts, places, types, got, counts, places, types, inter);
    sum = digest(sum, got, there);
    MPI_Bcast(sent, 1, MPI_INT, alone ? MPI_ROOT : 0, inter);
    if (alone) {
        for (int i = 0; i < there; i++)
            places[i] = i;
        MPI_Gatherv(NULL, 0, MPI_DATATYPE_NULL, got, counts, places, MPI_INT, MPI_ROOT, inter);
        MPI_Scatterv(sent, counts, places, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, MPI_ROOT, inter);
    } else {
        MPI_Gatherv(sent, 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, 0, inter);
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, got, 1, MPI_INT, 0, inter);
    }
    sum = digest(sum + sent[0], got, there);
    /* From the first of the others: what the rest of them gives is nothing. */
    if (alone)
        MPI_Bcast(got, 1, MPI_INT, 0, inter);
    else
        MPI_Bcast(rank == 1 ? sent : NULL, rank == 1, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
    sum = digest(sum, got, 1);
    free(sent), free(got), free(counts), free(places), free(types);
    return sum;
}

static long ct__inter(int rank, int size)
{
    MPI_Comm half, both;
    bool alone = rank == 0;
    long sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, alone, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, alone ? 1 : 0, 7, &both);
    for (int round = 0; round < MANY; round++)
        sum = sum * 3 % 1000003 + ct__between_groups(both, alone, rank, alone ? size - 1 : 1);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
    return sum;
}

static long ct__null_requests(int rank, int size)
{
    MPI_Request none = MPI_REQUEST_NULL;
    const MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF}; /* of one of which the handler is called */
    for (int i = 0; i < 2; i++)
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    long sum = ct__seen(rank + size, MPI_Start(NULL));
    sum = ct__seen(sum, MPI_Startall(2, NULL));
    sum = ct__seen(sum, MPI_Startall(-1, &none));
    sum = ct__seen(sum, MPI_Request_free(NULL));
    sum = ct__seen(sum, MPI_Request_free(&none));
    for (int i = 0; i < 2; i++)
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_ARE_FATAL);
    return sum;
}

/* More bytes than 64 bits count, to nobody; and very many elements without any byte. */
static long ct__wide(int rank, int size)
{
    long sum = rank + size;
#if MPI_VERSION >= 4
    MPI_Datatype empty;
    char byte = 0;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int round = 0; round < MANY; round++) {
        sum = ct__seen(sum, MPI_Bcast_c(&byte, (MPI_Count)1 << 61, MPI_DOUBLE, 0, MPI_COMM_SELF));
        sum = ct__seen(sum, MPI_Bcast_c(&byte, (MPI_Count)1 << 40, empty, 0, MPI_COMM_WORLD));
    }
    MPI_Type_free(&empty);
#endif
    return sum;
}

static const guest_case CASES[] = {
#ifndef OPEN_MPI
    {"unset_types", ct__unset_types},
    {"empty_bcast", ct__empty_bcast},
#endif
    {"inter", ct__inter},
    {"null_requests", ct__null_requests},
    {"wide", ct__wide},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    return run_cases(CASES, sizeof CASES / sizeof *CASES, argc, argv);
}
