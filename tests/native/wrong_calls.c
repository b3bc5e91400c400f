/* wrong_calls returns|own|mends|leaves: one rank alone makes a wrong call of a collective, then all ranks make right ones.
 *
 * Each case has a communicator of its own. Its wrong call comes before its first right one, after three and after thirteen. The
 * errors come back as codes (returns), or to a handler of the program: one that notes them (own; after the first round, and another
 * one before), that also says that all is well (mends), or that never returns (leaves). Every rank prints, of each case: calls of the handler, those with another
 * communicator than the case's, classes of the errors that handlers and callers saw, and a sum over the right calls' results. */
#include <mpi.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { RIGHT_CALLS = 24, WORDS = 64, BLOCK = 4, RANKS = 8 };

static MPI_Comm comm;
static int data[WORDS], sent[WORDS], got[WORDS];
static int counts[RANKS], places[RANKS], negative[RANKS];
static MPI_Datatype uncommitted;
static int own_rank;
static MPI_Request request = MPI_REQUEST_NULL;

/* Of a call that may have begun. */
static int waited(int code) { return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code; }

/* name, right call, wrong call */
#define CASES(X)                                                                                                          \
    X(bcast_root, MPI_Bcast(data, 8, MPI_INT, 0, comm), MPI_Bcast(data, 8, MPI_INT, 99, comm))                            \
    X(bcast_count, MPI_Bcast(data, 8, MPI_INT, 0, comm), MPI_Bcast(data, -8, MPI_INT, 0, comm))                           \
    X(bcast_type, MPI_Bcast(data, 8, MPI_INT, 1, comm), MPI_Bcast(data, 8, MPI_DATATYPE_NULL, 1, comm))                   \
    X(bcast_uncommitted, MPI_Bcast(data, 8, MPI_INT, 1, comm), MPI_Bcast(data, 8, uncommitted, 1, comm))                  \
    X(bcast_comm, MPI_Bcast(data, 8, MPI_INT, 0, comm), MPI_Bcast(data, 8, MPI_INT, 0, MPI_COMM_NULL))                    \
    X(barrier_comm, MPI_Barrier(comm), MPI_Barrier(MPI_COMM_NULL))                                                        \
    X(gather_root, MPI_Gather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, 0, comm),                                        \
      MPI_Gather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, -7, comm))                                                    \
    X(gather_count, MPI_Gather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, 0, comm),                                       \
      MPI_Gather(sent, -1, MPI_INT, got, -1, MPI_INT, 0, comm))                                                           \
    X(gatherv_type, MPI_Gatherv(sent, BLOCK, MPI_INT, got, counts, places, MPI_INT, 0, comm),                             \
      MPI_Gatherv(sent, BLOCK, MPI_DATATYPE_NULL, got, counts, places, MPI_DATATYPE_NULL, 0, comm))                       \
    X(scatter_root, MPI_Scatter(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, 1, comm),                                      \
      MPI_Scatter(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, 99, comm))                                                   \
    X(scatter_type, MPI_Scatter(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, 1, comm),                                      \
      MPI_Scatter(sent, BLOCK, MPI_DATATYPE_NULL, got, BLOCK, MPI_DATATYPE_NULL, 1, comm))                                \
    X(scatterv_count, MPI_Scatterv(sent, counts, places, MPI_INT, got, BLOCK, MPI_INT, 0, comm),                          \
      MPI_Scatterv(sent, negative, places, MPI_INT, got, -1, MPI_INT, 0, comm))                                           \
    X(allgather_count, MPI_Allgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                                    \
      MPI_Allgather(sent, -1, MPI_INT, got, -1, MPI_INT, comm))                                                           \
    X(allgather_send_count, MPI_Allgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                               \
      MPI_Allgather(sent, -1, MPI_INT, got, BLOCK, MPI_INT, comm))                                                        \
    X(allgather_send_type, MPI_Allgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                                \
      MPI_Allgather(sent, BLOCK, MPI_DATATYPE_NULL, got, BLOCK, MPI_INT, comm))                                           \
    X(allgatherv_type, MPI_Allgatherv(sent, BLOCK, MPI_INT, got, counts, places, MPI_INT, comm),                          \
      MPI_Allgatherv(sent, BLOCK, MPI_INT, got, counts, places, MPI_DATATYPE_NULL, comm))                                 \
    X(alltoall_count, MPI_Alltoall(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                                      \
      MPI_Alltoall(sent, BLOCK, MPI_INT, got, -1, MPI_INT, comm))                                                         \
    X(alltoall_type, MPI_Alltoall(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                                       \
      MPI_Alltoall(sent, BLOCK, uncommitted, got, BLOCK, MPI_INT, comm))                                                  \
    X(alltoallv_count, MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm),                  \
      MPI_Alltoallv(sent, negative, places, MPI_INT, got, negative, places, MPI_INT, comm))                               \
    X(alltoallv_type, MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm),                   \
      MPI_Alltoallv(sent, counts, places, MPI_DATATYPE_NULL, got, counts, places, MPI_DATATYPE_NULL, comm))               \
    X(alltoallv_uncommitted, MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm),            \
      MPI_Alltoallv(sent, counts, places, uncommitted, got, counts, places, uncommitted, comm))                           \
    X(reduce_root, MPI_Reduce(sent, got, 8, MPI_INT, MPI_SUM, 0, comm), MPI_Reduce(sent, got, 8, MPI_INT, MPI_SUM, 99, comm)) \
    X(reduce_op, MPI_Reduce(sent, got, 8, MPI_INT, MPI_SUM, 0, comm), MPI_Reduce(sent, got, 8, MPI_INT, MPI_OP_NULL, 0, comm)) \
    X(reduce_type, MPI_Reduce(sent, got, 8, MPI_INT, MPI_SUM, 0, comm),                                                   \
      MPI_Reduce(sent, got, 8, uncommitted, MPI_SUM, 0, comm))                                                      \
    X(reduce_op_of_type, MPI_Reduce(sent, got, 8, MPI_INT, MPI_BAND, 1, comm),                                            \
      MPI_Reduce(sent, got, 4, MPI_DOUBLE, MPI_BAND, 1, comm))                                                            \
    X(allreduce_op, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_SUM, comm), MPI_Allreduce(sent, got, 8, MPI_INT, MPI_OP_NULL, comm)) \
    X(allreduce_type, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_SUM, comm),                                                \
      MPI_Allreduce(sent, got, 8, uncommitted, MPI_SUM, comm))                                                            \
    X(allreduce_op_of_type, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_SUM, comm),                                          \
      MPI_Allreduce(sent, got, 4, MPI_DOUBLE, MPI_BXOR, comm))                                                            \
    X(allreduce_aliased, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_SUM, comm), MPI_Allreduce(got, got, 8, MPI_INT, MPI_SUM, comm)) \
    X(allreduce_in_place, MPI_Allreduce(MPI_IN_PLACE, got, 8, MPI_INT, MPI_SUM, comm),                                    \
      MPI_Allreduce(got, MPI_IN_PLACE, 8, MPI_INT, MPI_SUM, comm))                                                        \
    X(reduce_scatter_count, MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, comm),                                \
      MPI_Reduce_scatter(sent, got, negative, MPI_INT, MPI_SUM, comm))                                                    \
    X(reduce_scatter_op, MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_SUM, comm),                                   \
      MPI_Reduce_scatter(sent, got, counts, MPI_INT, MPI_OP_NULL, comm))                                                  \
    X(reduce_scatter_block_op, MPI_Reduce_scatter_block(sent, got, BLOCK, MPI_INT, MPI_SUM, comm),                        \
      MPI_Reduce_scatter_block(sent, got, BLOCK, MPI_INT, MPI_OP_NULL, comm))                                             \
    X(reduce_scatter_block_type, MPI_Reduce_scatter_block(sent, got, BLOCK, MPI_INT, MPI_SUM, comm),                      \
      MPI_Reduce_scatter_block(sent, got, BLOCK, uncommitted, MPI_SUM, comm))                                       \
    X(scan_op, MPI_Scan(sent, got, 8, MPI_INT, MPI_SUM, comm), MPI_Scan(sent, got, 8, MPI_INT, MPI_OP_NULL, comm))        \
    X(ibcast_root, waited(MPI_Ibcast(data, 8, MPI_INT, 0, comm, &request)),                                               \
      waited(MPI_Ibcast(data, 8, MPI_INT, 99, comm, &request)))                                                           \
    X(ibcast_count, waited(MPI_Ibcast(data, 8, MPI_INT, 0, comm, &request)),                                              \
      waited(MPI_Ibcast(data, -1, MPI_INT, 0, comm, &request)))                                                           \
    X(iallreduce_op, waited(MPI_Iallreduce(sent, got, 8, MPI_INT, MPI_SUM, comm, &request)),                              \
      waited(MPI_Iallreduce(sent, got, 8, MPI_INT, MPI_OP_NULL, comm, &request)))                                         \
    X(iallgather_type, waited(MPI_Iallgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm, &request)),                 \
      waited(MPI_Iallgather(sent, BLOCK, MPI_DATATYPE_NULL, got, BLOCK, MPI_DATATYPE_NULL, comm, &request)))              \
    X(ialltoall_count, waited(MPI_Ialltoall(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm, &request)),                  \
      waited(MPI_Ialltoall(sent, -1, MPI_INT, got, -1, MPI_INT, comm, &request)))

/* What one of the libraries finds, and the other does not. */
#ifdef MPICH_VERSION
#define ONLY_HERE(X)                                                                                                     \
    X(bcast_buffer, MPI_Bcast(data, 8, MPI_INT, 0, comm), MPI_Bcast(NULL, 8, MPI_INT, 0, comm))                          \
    X(alltoallv_buffer, MPI_Alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm),                \
      MPI_Alltoallv(sent, counts, places, MPI_INT, NULL, counts, places, MPI_INT, comm))                                 \
    X(bcast_not_a_type, MPI_Bcast(data, 8, MPI_INT, 0, comm), MPI_Bcast(data, 8, (MPI_Datatype)MPI_COMM_WORLD, 0, comm)) \
    X(allreduce_not_an_op, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_SUM, comm),                                          \
      MPI_Allreduce(sent, got, 8, MPI_INT, (MPI_Op)MPI_COMM_WORLD, comm))                                                \
    X(allgather_not_a_comm, MPI_Allgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, comm),                              \
      MPI_Allgather(sent, BLOCK, MPI_INT, got, BLOCK, MPI_INT, (MPI_Comm)MPI_INT))                                       \
    X(reduce_aliased, MPI_Reduce(sent, got, 8, MPI_INT, MPI_SUM, 2, comm), MPI_Reduce(got, got, 8, MPI_INT, MPI_SUM, own_rank, comm))
#else
#define ONLY_HERE(X)                                                                                                          \
    X(allreduce_count, MPI_Allreduce(sent, got, 8, MPI_INT, MPI_MAX, comm), MPI_Allreduce(sent, got, -1, MPI_INT, MPI_MAX, comm)) \
    X(exscan_count, MPI_Exscan(sent, got, 8, MPI_INT, MPI_SUM, comm), MPI_Exscan(sent, got, -1, MPI_INT, MPI_SUM, comm))
#endif

#define DEFINE(NAME, RIGHT, WRONG) \
    static int call_##NAME(bool wrong) { return wrong ? WRONG : RIGHT; }
CASES(DEFINE)
ONLY_HERE(DEFINE)

#define LIST(NAME, RIGHT, WRONG) {#NAME, call_##NAME},
static const struct {
    const char *name;
    int (*call)(bool wrong);
} LISTED[] = {CASES(LIST) ONLY_HERE(LIST)};
enum { COUNT = sizeof LISTED / sizeof *LISTED };

static const char *mode;
static int handled, elsewhere, seen, returned;
static jmp_buf out;

static int class_of(int code)
{
    int class = 0;
    MPI_Error_class(code, &class);
    return class;
}

static void handle(MPI_Comm *where, int *code, ...)
{
    int same = MPI_UNEQUAL;
    handled++;
    seen = 100 * seen % 999983 + class_of(*code);
    MPI_Comm_compare(*where, comm, &same);
    elsewhere += same != MPI_IDENT;
    if (strcmp(mode, "mends") == 0)
        *code = MPI_SUCCESS;
    if (strcmp(mode, "leaves") == 0)
        longjmp(out, 1);
}

static void handle_first(MPI_Comm *where, int *code, ...) { handled += 100, handle(where, code); }

static void call_wrongly(int which)
{
    if (setjmp(out) == 0)
        returned = 100 * returned % 999983 + class_of(LISTED[which].call(true));
    else
        returned += 31;
}

static unsigned call_rightly(int which, int rank, int round)
{
    unsigned sum = 0;
    for (int i = 0; i < WORDS; i++)
        data[i] = rank * 7 + i + round, sent[i] = rank + i * round, got[i] = i;
    int code = LISTED[which].call(false);
    for (int i = 0; i < WORDS; i++)
        sum = sum * 31 + (unsigned)data[i] + 17 * (unsigned)got[i];
    return sum + 1000003 * (unsigned)code;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Errhandler handler = MPI_ERRORS_RETURN, first;
    MPI_Init(&argc, &argv);
    mode = argv[1];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own_rank = rank;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(mode, "returns") != 0)
        MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_create_errhandler(handle_first, &first);
    /* what is wrong without a communicator is told to one of these */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    for (int i = 0; i < RANKS; i++)
        counts[i] = BLOCK, places[i] = i * BLOCK, negative[i] = -1;
    for (int which = 0; which < COUNT; which++) {
        if (argc > 2 && strcmp(argv[2], LISTED[which].name) != 0)
            continue;
        unsigned sum = 0;
        handled = elsewhere = seen = returned = 0;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, strcmp(mode, "own") == 0 ? first : handler);
        for (int round = 0; round < RIGHT_CALLS; round++) {
            if (round == 1)
                MPI_Comm_set_errhandler(comm, handler);
            if (rank == which % size && (round == 0 || round == 3 || round == 13))
                call_wrongly(which);
            MPI_Barrier(MPI_COMM_WORLD); /* where ranks that wait for each other in the wrong call would not come */
            sum = sum * 13 + call_rightly(which, rank, round);
        }
        printf("%s rank=%d handled=%d elsewhere=%d seen=%d returned=%d sum=%u\n", LISTED[which].name, rank, handled, elsewhere,
               seen, returned, sum);
        fflush(stdout);
        MPI_Comm_free(&comm);
    }
    if (handler != MPI_ERRORS_RETURN)
        MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&first);
    MPI_Type_free(&uncommitted);
    MPI_Finalize();
    return 0;
}
