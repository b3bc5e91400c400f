/* Legal calls that a tool is apt to take for something else, and calls that MPI refuses: `guest_calls CASE`. Prints "rank=R",
 * how many results were wrong, and the classes of the errors that came back. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 40, RANKS = 8 };

static int rank, size, wrong, classes[64], errors;

static void saw(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    if (errors < 64)
        classes[errors++] = class;
}

/* No type where there is nothing to send: what stands there was never set. */
static void unset_types(void)
{
    int sent[RANKS], got[RANKS], counts[RANKS], places[RANKS];
    MPI_Datatype types[RANKS];
    memset(types, 0x5a, sizeof types);
    for (int round = 0; round < ROUNDS; round++) {
        int partner = rank ^ 1;
        memset(counts, 0, sizeof counts), memset(places, 0, sizeof places);
        if (partner < size)
            counts[partner] = 1, types[partner] = MPI_INT;
        sent[0] = rank + round, got[0] = -1;
        MPI_Alltoallw(sent, counts, places, types, got, counts, places, types, MPI_COMM_WORLD);
        wrong += partner < size && got[0] != partner + round;
        MPI_Request request;
        got[0] = -1;
        MPI_Ialltoallw(sent, counts, places, types, got, counts, places, types, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += partner < size && got[0] != partner + round;
    }
}

/* Nothing is sent, and one rank after the other names no type for it. */
static void empty_bcast(void)
{
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int word = rank == 0 ? round : -1;
        saw(MPI_Bcast(NULL, 0, round % size == rank ? MPI_DATATYPE_NULL : MPI_INT, 0, MPI_COMM_WORLD));
        errors = errors > size ? size : errors;
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        wrong += word != round;
    }
}

static void between_groups(MPI_Comm inter, int here, int there)
{
    int root = here == 0, *sent = calloc(RANKS, sizeof *sent), *got = calloc(RANKS, sizeof *got);
    /* As many as there are ranks at the other end, and not one more: a read beyond is seen by a sanitizer. */
    int *counts = malloc(sizeof *counts * (size_t)there), *places = malloc(sizeof *places * (size_t)there);
    MPI_Datatype *types = malloc(sizeof *types * (size_t)there);
    for (int i = 0; i < there; i++)
        counts[i] = 1, places[i] = i, types[i] = MPI_INT;
    sent[0] = sent[1] = sent[2] = rank + 100;
    MPI_Allgatherv(sent, 1, MPI_INT, got, counts, places, MPI_INT, inter);
    for (int i = 0; i < there; i++)
        wrong += got[i] != (root ? 101 + i : 100);
    memset(got, 0, RANKS * sizeof *got);
    MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, inter);
    for (int i = 0; i < there; i++)
        places[i] *= (int)sizeof(int);
    MPI_Alltoallw(sent, counts, places, types, got, counts, places, types, inter);
    for (int i = 0; i < there; i++)
        wrong += got[i] != (root ? 101 + i : 100);
    /* From the first group's only rank to the second, and back. */
    MPI_Bcast(sent, 1, MPI_INT, root ? MPI_ROOT : 0, inter);
    wrong += !root && sent[0] != 100;
    if (root) {
        for (int i = 0; i < there; i++)
            places[i] = i;
        MPI_Gatherv(NULL, 0, MPI_DATATYPE_NULL, got, counts, places, MPI_INT, MPI_ROOT, inter);
        MPI_Scatterv(sent, counts, places, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, MPI_ROOT, inter);
    } else {
        MPI_Gatherv(sent, 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, 0, inter);
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, got, 1, MPI_INT, 0, inter);
        wrong += got[0] != 100;
    }
    /* From the second group's first rank to the first group: the others' arguments are none. */
    if (root)
        MPI_Bcast(got, 1, MPI_INT, 0, inter);
    else
        MPI_Bcast(rank == 1 ? sent : NULL, rank == 1, MPI_INT, rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);
    free(sent), free(got), free(counts), free(places), free(types);
}

static void inter(void)
{
    MPI_Comm half, both;
    int here = rank > 0;
    MPI_Comm_split(MPI_COMM_WORLD, here, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, here ? 0 : 1, 7, &both);
    for (int round = 0; round < ROUNDS; round++)
        between_groups(both, here, here ? 1 : size - 1);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void null_requests(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Request none = MPI_REQUEST_NULL;
    saw(MPI_Start(NULL));
    saw(MPI_Startall(2, NULL));
    saw(MPI_Startall(-1, &none));
    saw(MPI_Request_free(NULL));
    saw(MPI_Request_free(&none));
}

/* More bytes than 64 bits count, to nobody; and very many elements without any byte. */
static void wide(void)
{
#if MPI_VERSION >= 4
    MPI_Datatype empty;
    char byte = 0;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int round = 0; round < ROUNDS; round++) {
        saw(MPI_Bcast_c(&byte, (MPI_Count)1 << 61, MPI_DOUBLE, 0, MPI_COMM_SELF));
        saw(MPI_Bcast_c(&byte, (MPI_Count)1 << 40, empty, 0, MPI_COMM_WORLD));
        errors = 2;
    }
    MPI_Type_free(&empty);
#endif
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } CASES[] = {{"unset_types", unset_types}, {"empty_bcast", empty_bcast}, {"inter", inter},
                 {"null_requests", null_requests}, {"wide", wide}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(CASES[i].name, argv[1]) == 0) {
            if (strcmp(argv[1], "empty_bcast") == 0)
                MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            CASES[i].run();
        }
    char line[400];
    int length = snprintf(line, sizeof line, "rank=%d wrong=%d", rank, wrong);
    for (int i = 0; i < errors; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", classes[i]);
    strcat(line, "\n"); /* at once: other ranks write as well */
    fputs(line, stdout);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
