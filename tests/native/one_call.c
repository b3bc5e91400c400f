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

/* A call that does not block, or, by the name of its maker, a persistent one, and its end. */
static bool call_nonblocking(const char *name, const char *in, char *out, int count, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    if (strcmp(name, "iallgather") == 0)
        MPI_Iallgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm, &request);
    else if (strcmp(name, "iallreduce") == 0)
        MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, comm, &request);
    else if (strcmp(name, "ialltoall") == 0)
        MPI_Ialltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm, &request);
    else if (strcmp(name, "ibcast") == 0)
        MPI_Ibcast(out, count, MPI_FLOAT, 0, comm, &request);
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
    else if (strcmp(name, "allgather_init") == 0)
        MPI_Allgather_init(in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "allreduce_init") == 0)
        MPI_Allreduce_init(in, out, count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "alltoall_init") == 0)
        MPI_Alltoall_init(in, count, MPI_FLOAT, out, count, MPI_FLOAT, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "bcast_init") == 0)
        MPI_Bcast_init(out, count, MPI_FLOAT, 0, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "exscan_init") == 0)
        MPI_Exscan_init(in, out, count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "gather_init") == 0)
        MPI_Gather_init(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "reduce_init") == 0)
        MPI_Reduce_init(in, out, count, MPI_FLOAT, MPI_SUM, 0, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "reduce_scatter_block_init") == 0)
        MPI_Reduce_scatter_block_init(in, out, count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "scan_init") == 0)
        MPI_Scan_init(in, out, count, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    else if (strcmp(name, "scatter_init") == 0)
        MPI_Scatter_init(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, comm, MPI_INFO_NULL, &request);
#endif
    else
        return false;
    bool persistent = strstr(name, "_init") != NULL;
    if (persistent)
        MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (persistent)
        MPI_Request_free(&request);
    return true;
}

static void call(const char *name, const char *in, char *out, int bytes, MPI_Comm comm)
{
    const bool words = bytes % 4 == 0;
    const MPI_Datatype type = words ? MPI_FLOAT : MPI_BYTE;
    const MPI_Op op = words ? MPI_SUM : MPI_BOR;
    int count = words ? bytes / 4 : bytes, counts[64], at[64];
    if (call_nonblocking(name, in, out, count, comm))
        return;
    for (int i = 0; i < ranks; i++) {
        counts[i] = strcmp(name, "reduce_scatter") == 0 ? count / ranks + (i < count % ranks) : count;
        at[i] = i * count;
    }
    if (strcmp(name, "allgather") == 0)
        MPI_Allgather(in, count, type, out, count, type, comm);
    else if (strcmp(name, "allgatherv") == 0)
        MPI_Allgatherv(in, count, type, out, counts, at, type, comm);
    else if (strcmp(name, "allreduce") == 0)
        MPI_Allreduce(in, out, count, type, op, comm);
    else if (strcmp(name, "alltoall") == 0)
        MPI_Alltoall(in, count, type, out, count, type, comm);
    else if (strcmp(name, "barrier") == 0)
        MPI_Barrier(comm);
    else if (strcmp(name, "bcast") == 0)
        MPI_Bcast(out, count, type, 0, comm);
    else if (strcmp(name, "exscan") == 0)
        MPI_Exscan(in, out, count, type, op, comm);
    else if (strcmp(name, "gather") == 0)
        MPI_Gather(in, count, type, out, count, type, 0, comm);
    else if (strcmp(name, "reduce") == 0)
        MPI_Reduce(in, out, count, type, op, 0, comm);
    else if (strcmp(name, "reduce_scatter") == 0)
        MPI_Reduce_scatter(in, out, counts, type, op, comm);
    else if (strcmp(name, "reduce_scatter_block") == 0)
        MPI_Reduce_scatter_block(in, out, count, type, op, comm);
    else if (strcmp(name, "scan") == 0)
        MPI_Scan(in, out, count, type, op, comm);
    else if (strcmp(name, "scatter") == 0)
        /* what is of no significance off the root is not given, as an application may do */
        MPI_Scatter(rank ? NULL : in, rank ? 0 : count, rank ? MPI_DATATYPE_NULL : type, out, count, type, 0, comm);
    else
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
