/* Every form of MPI_Alltoallv and MPI_Alltoallw in turn, each several times. Prints, for each: its name, how many messages
 * libcolltune sent for it on all ranks (0: the library carried it out), how many of its calls gave something wrong.
 *
 * Linked with count_calls.c. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ROOM = 3 * MOST, CALLS = 4 };
#define HAS_LARGE (MPI_VERSION >= 4)
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_INIT 1
#else
#define HAS_INIT 0
#endif

long count_messages(void);

static int rank, size;
static MPI_Comm comm;
static int sent[ROOM], received[ROOM];
static int counts[MOST], displacements[MOST], byte_displacements[MOST];
static MPI_Datatype alike[MOST], mixed[MOST];
#if HAS_LARGE
static MPI_Count wide_counts[MOST];
static MPI_Aint wide_displacements[MOST], wide_bytes[MOST];
#endif

/* The same number from i to j as from j to i, so that every call may be in place as well. */
static void prepare(MPI_Datatype pair)
{
    for (int i = 0; i < size; i++) {
        counts[i] = 2 * ((rank + i) % 2);
        displacements[i] = 3 * i;
        byte_displacements[i] = displacements[i] * (int)sizeof(int);
        alike[i] = MPI_INT;
        mixed[i] = i % 2 ? pair : MPI_INT;
#if HAS_LARGE
        wide_counts[i] = counts[i], wide_displacements[i] = displacements[i], wide_bytes[i] = byte_displacements[i];
#endif
    }
}

static void fill(int call, int *data, int shift)
{
    for (int i = 0; i < size; i++)
        for (int k = 0; k < 3; k++)
            data[3 * i + k] = k < counts[i] ? 100000 * call + 1000 * (rank + shift) + 10 * i + k : -1;
}

static int wrong(int call, const int *data, int shift)
{
    int bad = 0;
    for (int i = 0; i < size; i++)
        for (int k = 0; k < 3; k++)
            bad += data[3 * i + k] != (k < counts[i] ? 100000 * call + 1000 * (i + shift) + 10 * rank + k : -1);
    return bad != 0;
}

typedef enum { BLOCKING, PERSISTENT } kind;
typedef struct {
    const char *name;
    kind form;
    bool in_place;
    int (*run)(MPI_Request *request, bool in_place);
} form;

#define FORM(NAME, CALL)                                     \
    static int NAME(MPI_Request *request, bool in_place)     \
    {                                                        \
        const void *from = in_place ? MPI_IN_PLACE : sent;   \
        (void)request;                                       \
        return CALL;                                         \
    }
FORM(plain, MPI_Alltoallv(from, counts, displacements, MPI_INT, received, counts, displacements, MPI_INT, comm))
FORM(uniform, MPI_Alltoallw(from, counts, byte_displacements, alike, received, counts, byte_displacements, alike, comm))
FORM(several, MPI_Alltoallw(from, counts, byte_displacements, mixed, received, counts, byte_displacements, mixed, comm))
#if HAS_LARGE
FORM(plain_c, MPI_Alltoallv_c(from, wide_counts, wide_displacements, MPI_INT, received, wide_counts, wide_displacements, MPI_INT, comm))
FORM(uniform_c, MPI_Alltoallw_c(from, wide_counts, wide_bytes, alike, received, wide_counts, wide_bytes, alike, comm))
FORM(init_c, MPI_Alltoallv_init_c(from, wide_counts, wide_displacements, MPI_INT, received, wide_counts, wide_displacements,
                                  MPI_INT, comm, MPI_INFO_NULL, request))
FORM(init_w_c, MPI_Alltoallw_init_c(from, wide_counts, wide_bytes, alike, received, wide_counts, wide_bytes, alike, comm,
                                    MPI_INFO_NULL, request))
#endif
#if HAS_INIT
FORM(init, MPI_Alltoallv_init(from, counts, displacements, MPI_INT, received, counts, displacements, MPI_INT, comm,
                              MPI_INFO_NULL, request))
FORM(init_w, MPI_Alltoallw_init(from, counts, byte_displacements, alike, received, counts, byte_displacements, alike, comm,
                                MPI_INFO_NULL, request))
#endif

static const form FORMS[] = {
    {"alltoallv", BLOCKING, false, plain},
    {"alltoallw", BLOCKING, false, uniform},
    {"alltoallw_mixed", BLOCKING, false, several},
    {"alltoallv_in_place", BLOCKING, true, plain},
    {"alltoallw_in_place", BLOCKING, true, uniform},
#if HAS_LARGE
    {"alltoallv_c", BLOCKING, false, plain_c},
    {"alltoallw_c", BLOCKING, false, uniform_c},
    {"alltoallv_init_c", PERSISTENT, false, init_c},
    {"alltoallw_init_c", PERSISTENT, false, init_w_c},
#endif
#if HAS_INIT
    {"alltoallv_init", PERSISTENT, false, init},
    {"alltoallw_init", PERSISTENT, false, init_w},
    {"alltoallv_init_in_place", PERSISTENT, true, init},
#endif
};

static void report(const char *name, long messages, int bad)
{
    long mine[2] = {messages, bad}, all[2];
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    int world;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    if (world == 0)
        printf("%s %ld %ld\n", name, all[0], all[1]);
}

/* `shift`: what the numbers of the other side's ranks are to be told apart by. */
static void try_form(const form *f, const char *name, int mine, int theirs)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int bad = f->form == PERSISTENT && f->run(&request, f->in_place) != MPI_SUCCESS;
    long before = 0;
    for (int call = 0; call < CALLS; call++) {
        fill(call, sent, mine);
        if (f->in_place)
            fill(call, received, mine);
        else
            memset(received, -1, sizeof received);
        if (call == CALLS - 1)
            before = count_messages();
        if (f->form == PERSISTENT) {
            bad += MPI_Start(&request) != MPI_SUCCESS || MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        } else {
            bad += f->run(&request, f->in_place) != MPI_SUCCESS;
        }
        bad += wrong(call, received, theirs);
    }
    long after = count_messages();
    if (f->form == PERSISTENT)
        MPI_Request_free(&request);
    report(name, after - before, bad);
}

/* Between the even and the odd ranks, where both are as many. */
static void between_groups(void)
{
    int world;
    MPI_Comm half, inter;
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, world % 2 ? 0 : 1, 7, &inter);
    comm = inter;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    prepare(alike[0]);
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_intercomm", FORMS[i].name);
#ifdef OPEN_MPI /* its intercommunicators have no persistent collectives */
        if (FORMS[i].form == PERSISTENT)
            continue;
#endif
        if (!FORMS[i].in_place && FORMS[i].run != several)
            try_form(&FORMS[i], name, 50 * (world % 2), 50 * !(world % 2));
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Datatype pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_dup(MPI_INT, &pair); /* another handle, the same signature */
    int world_size = size;
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        prepare(pair);
#ifdef OPEN_MPI /* see docs/design/alltoallv.md: its MPI_Alltoallw on one rank is wrong */
        if (size > 1 || strncmp(FORMS[i].name, "alltoallw", 9) != 0)
#endif
            try_form(&FORMS[i], FORMS[i].name, 0, 0);
        MPI_Comm_free(&comm);
    }
    if (world_size % 2 == 0)
        between_groups();
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
