/* Prints which messages each rank sends in one call of a collective, the second on its communicator, under control variables
 * that are set before it.
 *
 * Arguments: triples of collective, size in bytes (as colltune names sizes; a block of reduce_scatter_block), and settings
 * `NAME=INTEGER,...` or `-`. Lines: number of the triple, source, target, messages, bytes, messages of a derived
 * datatype, whose bytes are not counted on MPICH; no line where there were no messages.
 * MPICH: run it with traffic_count.c preloaded. Open MPI: with pml_monitoring_enable=1, or with algorithm_names.c preloaded:
 * then a line has the number of the triple and which algorithms ran. Link native/common/variables.c.
 */
#define _POSIX_C_SOURCE 200809L
#include "functions.h"
#include "variables.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
extern const char *ct_algorithms(void) WEAK;
extern void ct_traffic_learn(int rank) WEAK;
extern long long ct_traffic(long long *messages_to, long long *bytes_to, long long *packed_to, int ranks) WEAK;

enum { MOST_SETTINGS = 16 };
static int rank, ranks;

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static const char *const NAMES[CT_FUNCTIONS] = {
    "barrier",
#define NAME_OF(X, NAME, LOWER, UPPER, SIGNATURE) #LOWER,
    CT_COLLECTIVES(NAME_OF, )
};

/* Of a function that needs no counts of each rank. */
static void make_persistent(ct_function function, const ct_arguments *a, MPI_Comm comm, MPI_Request *request)
{
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
    const void *send = a->send, *send_counts = NULL, *recv_counts = NULL, *send_displs = NULL, *recv_displs = NULL;
    void *recv = a->recv, *buffer = a->recv;
    int send_count = a->send_count, recv_count = a->recv_count, count = a->recv_count, root = a->root;
    MPI_Datatype send_type = a->send_type, recv_type = a->recv_type, type = a->recv_type;
    const MPI_Datatype *send_types = NULL, *recv_types = NULL;
    MPI_Op op = a->op;
    MPI_Info info = MPI_INFO_NULL;
    switch (function) {
#define MADE(X, NAME, LOWER, UPPER, SIGNATURE)                         \
    case CT_##UPPER:                                                   \
        MPI_##NAME##_init CT_ARGUMENTS(SIGNATURE, PERSISTENT);         \
        return;
        CT_COLLECTIVES(MADE, )
    default:
        break;
    }
#endif
    (void)a, (void)comm, (void)request;
    fail(NAMES[function]);
}

/* A call, one that does not block, or, by the name of its maker, a persistent one: "bcast", "ibcast", "bcast_init". */
static void call(const char *name, const char *in, char *out, int bytes, MPI_Comm comm)
{
    const bool words = bytes % 4 == 0, none = strcmp(name, "scatter") == 0 && rank > 0;
    const MPI_Datatype type = words ? MPI_FLOAT : MPI_BYTE;
    int count = words ? bytes / 4 : bytes, counts[64], at[64];
    for (int i = 0; i < ranks; i++) {
        counts[i] = strcmp(name, "reduce_scatter") == 0 ? count / ranks + (i < count % ranks) : count;
        at[i] = i * count;
    }
    /* what is of no significance off the root is not given, as an application may do */
    const ct_arguments arguments = {.send = none ? NULL : in, .recv = out, .send_count = none ? 0 : count, .recv_count = count,
                                    .recv_counts = counts, .recv_displs = at, .send_type = none ? MPI_DATATYPE_NULL : type,
                                    .recv_type = type, .op = words ? MPI_SUM : MPI_BOR};
    for (int f = 0; f < CT_FUNCTIONS; f++) {
        const ct_function function = (ct_function)f;
        const size_t length = strlen(NAMES[f]);
        const bool begun = name[0] == 'i' && strcmp(name + 1, NAMES[f]) == 0;
        const bool made = strncmp(name, NAMES[f], length) == 0 && strcmp(name + length, "_init") == 0;
        MPI_Request request = MPI_REQUEST_NULL;
        if (!begun && !made && strcmp(name, NAMES[f]) != 0)
            continue;
        if (made) {
            make_persistent(function, &arguments, comm, &request);
            MPI_Start(&request);
        } else
            ct_function_call(function, &arguments, comm, begun ? &request : NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (made)
            MPI_Request_free(&request);
        return;
    }
    fail(name);
}

static int set(char *text, ct_setting *settings)
{
    int count = 0;
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one != NULL && strcmp(text, "-") != 0; one = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(one, '=');
        if (equals == NULL || count == MOST_SETTINGS)
            fail(one);
        *equals = 0;
        settings[count].variable = ct_variable_find(one);
        settings[count].value = atoi(equals + 1);
        if (settings[count++].variable < 0)
            fail(one);
    }
    if (ct_settings_write(settings, count) != MPI_SUCCESS)
        fail("a control variable cannot be written");
    return count;
}

/* Open MPI counts by itself; each variable has one value for each rank of the communicator that it is bound to. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle monitored[2];

static void start_monitor(void)
{
    static const char *const names[2] = { "pml_monitoring_messages_count", "pml_monitoring_messages_size" };
    if (MPI_T_pvar_session_create(&session) != MPI_SUCCESS)
        fail("no session of MPI_T");
    for (int i = 0; i < 2; i++) {
        int index, count;
        MPI_Comm world = MPI_COMM_WORLD;
        if (MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_SIZE, &index) != MPI_SUCCESS ||
            MPI_T_pvar_handle_alloc(session, index, &world, &monitored[i], &count) != MPI_SUCCESS || count != ranks ||
            MPI_T_pvar_start(session, monitored[i]) != MPI_SUCCESS)
            fail(names[i]);
    }
}

static long long sent(long long now[3][64])
{
    if (ct_traffic != NULL)
        return ct_traffic(now[0], now[1], now[2], ranks);
    if (MPI_T_pvar_read(session, monitored[0], now[0]) != MPI_SUCCESS ||
        MPI_T_pvar_read(session, monitored[1], now[1]) != MPI_SUCCESS)
        fail("the messages cannot be read");
    return 0;
}

/* The second call on its communicator: what the first one prepares is not counted. */
static void show_traffic(int number, const char *name, const char *in, char *out, int bytes, MPI_Comm comm)
{
    long long before[3][64] = { 0 }, after[3][64] = { 0 };
    long long strange = sent(before);
    call(name, in, out, bytes, comm);
    if (sent(after) != strange)
        fail("a message to an unknown rank");
    for (int to = 0; to < ranks; to++)
        if (after[0][to] != before[0][to])
            printf("%d %d %d %lld %lld %lld\n", number, rank, to, after[0][to] - before[0][to], after[1][to] - before[1][to],
                   after[2][to] - before[2][to]);
}

static void show_algorithms(int number, const char *name, const char *in, char *out, int bytes, MPI_Comm comm)
{
    ct_algorithms();
    call(name, in, out, bytes, comm);
    if (rank == 0)
        printf("%d %s\n", number, ct_algorithms());
}

int main(int argc, char **argv)
{
    int provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 64)
        fail("at most 64 ranks");
    for (int step = 1; step < ranks && ct_traffic_learn != NULL; step++) {
        int to = (rank + step) % ranks;
        char byte = 0, other;
        ct_traffic_learn(to);
        MPI_Sendrecv(&byte, 1, MPI_CHAR, to, 0, &other, 1, MPI_CHAR, (rank - step + ranks) % ranks, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    if (ct_traffic == NULL && ct_algorithms == NULL)
        start_monitor();
    for (int i = 1; i + 2 < argc; i += 3) {
        int bytes = atoi(argv[i + 1]);
        ct_setting settings[MOST_SETTINGS];
        char *in = calloc((size_t)bytes * (size_t)ranks + 4, 1), *out = calloc((size_t)bytes * (size_t)ranks + 4, 1);
        MPI_Comm comm;
        if (in == NULL || out == NULL)
            fail("no memory");
        int count = set(argv[i + 2], settings);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        call(argv[i], in, out, bytes, comm);
        MPI_Barrier(MPI_COMM_WORLD);
        (ct_algorithms != NULL ? show_algorithms : show_traffic)(i / 3, argv[i], in, out, bytes, comm);
        fflush(stdout);
        MPI_Comm_free(&comm);
        ct_settings_restore(settings, count);
        free(in);
        free(out);
    }
    MPI_Finalize();
    return 0;
}
