/* Measures settings of the non-uniform all-to-all in one MPI job. Lines in on rank 0's standard input, lines out:
 *
 *     ready ranks=8
 *     measure ID NODES PPN DISTRIBUTION PEERS AVERAGE_BYTES REPETITIONS SEED NAME:RADIX:BATCH:DIRECT_ABOVE ...
 *     time ID 0 1.1e-05 1.2e-05 ...      the slowest rank's seconds, after a barrier; choices take turns
 *     kept ID 0 1.0e-05 ...              the same with a heap that keeps what is freed, where calls meet page faults
 *     wrong ID 1                         its result was not the library's
 *     unfit ID REASON                    in place of all times: there is no such part of the job, or no such matrix
 *     load ID waited=0.01@0 others=...   what else ran meanwhile (watch.h)
 *     done ID
 *     setup ID                           then: setup ID 0.0021, the slowest rank's seconds for what a communicator needs
 *
 * A point is measured on the first NODES with PPN ranks each. blocks.h has the distributions; "counts0" is the matrix in the
 * first file that the program is given. NAME is an algorithm, or
 * tuned: what a program gets by the table in force, COLLTUNE_ALLTOALLV, on a communicator of its own. The end of the input
 * ends the job. Waiting ranks sleep. */
#define _GNU_SOURCE /* nanosleep */
#include "call.h"
#include "heap.h"
#include "part.h"
#include "private_comm.h"
#include "request.h"
#include "state.h"
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CT__SETTLED = 30 /* calls after which agreements are rare */, CT__LINE = 1 << 15 };
/* Page faults of a call above which it is timed with a heap that keeps what is freed, too: fewer are chance. */
static double const CT__FEW_FAULTS = 2.0;

typedef struct {
    int size, rank;
    int *counts[2], *displacements[2]; /* of what is sent, and received */
    unsigned char *send, *receive, *expected;
    size_t bytes[2];
    MPI_Comm part, comm; /* the part of the job; the same for the calls, or a duplicate */
} ct__buffers;

static void ct__release(ct__buffers *b)
{
    for (int i = 0; i < 2; i++)
        free(b->counts[i]), free(b->displacements[i]);
    ct_heap_apart_free(b->send, b->bytes[0]);
    ct_heap_apart_free(b->receive, b->bytes[1]), ct_heap_apart_free(b->expected, b->bytes[1]);
}

static int ct__fill(const ct_measure_request *r, ct__buffers *b)
{
    size_t size = (size_t)b->size;
    for (int i = 0; i < 2; i++) {
        b->counts[i] = malloc(sizeof(int) * size), b->displacements[i] = malloc(sizeof(int) * size);
        if (b->counts[i] == NULL || b->displacements[i] == NULL)
            return MPI_ERR_NO_MEM;
    }
    CT_TRY(ct_blocks_draw(&r->blocks, b->part, b->counts[0], b->counts[1]));
    for (int i = 0; i < 2; i++) {
        b->bytes[i] = 0;
        for (int peer = 0; peer < b->size; peer++) {
            b->displacements[i][peer] = (int)b->bytes[i];
            b->bytes[i] += (size_t)b->counts[i][peer];
        }
    }
    b->send = ct_heap_apart(b->bytes[0]), b->receive = ct_heap_apart(b->bytes[1]), b->expected = ct_heap_apart(b->bytes[1]);
    for (size_t i = 0; b->send != NULL && i < b->bytes[0]; i++)
        b->send[i] = (unsigned char)(i * 37 + (size_t)b->rank * 7919);
    return b->send && b->receive && b->expected ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int ct__call(const ct_alltoallv_choice *choice, ct__buffers *b, unsigned char *to)
{
    if (choice->algorithm == CT_MEASURE_TUNED)
        return ct_alltoallv(b->send, b->counts[0], b->displacements[0], MPI_BYTE, to, b->counts[1], b->displacements[1], MPI_BYTE,
                            b->comm);
    return ct_alltoallv_by(choice, b->send, b->counts[0], b->displacements[0], MPI_BYTE, to, b->counts[1],
                           b->displacements[1], MPI_BYTE, b->comm);
}

/* Once each, before the timing: warm, and against the library's result. */
static int ct__try(const ct_measure_request *r, ct__buffers *b, int *wrong)
{
    ct_alltoallv_choice library = {0};
    int mine[CT_MEASURE_CHOICES];
    size_t largest = 0;
    ct_heap_give_back(0);
    CT_TRY(ct__call(&library, b, b->expected));
    for (int i = 0; i < r->choice_count; i++) {
        memset(b->receive, 0xA5, b->bytes[1]);
        for (int k = 0; k < (r->choices[i].algorithm == CT_MEASURE_TUNED ? CT__SETTLED : 1); k++)
            CT_TRY(ct__call(&r->choices[i], b, b->receive));
        ct_heap_watch(); /* the first calls also ask for what they keep */
        CT_TRY(ct__call(&r->choices[i], b, b->receive));
        largest = ct_heap_largest() > largest ? ct_heap_largest() : largest;
        mine[i] = memcmp(b->receive, b->expected, b->bytes[1]) != 0;
    }
    ct_heap_give_back(largest);
    return MPI_Allreduce(mine, wrong, r->choice_count, MPI_INT, MPI_MAX, b->part);
}

/* Of the choices that `take` names; `faults`: page faults of all calls of each. */
static int ct__time(const ct_measure_request *r, ct__buffers *b, const double *take, double *times, double *faults)
{
    for (int repetition = 0; repetition < r->repetitions; repetition++)
        for (int k = 0; k < r->choice_count; k++) {
            int i = (k + repetition) % r->choice_count; /* who comes after whom changes */
            if (take[i] <= 0.0)
                continue;
            CT_TRY(MPI_Barrier(b->part));
            long before = ct_heap_faults();
            double began_s = MPI_Wtime();
            CT_TRY(ct__call(&r->choices[i], b, b->receive));
            times[i * r->repetitions + repetition] = MPI_Wtime() - began_s;
            faults[i] += (double)(ct_heap_faults() - before);
        }
    return MPI_SUCCESS;
}

/* Prints the slowest rank's times of the choices that `take` names. */
static int ct__tell(const ct_measure_request *r, const ct__buffers *b, const char *word, const double *take, const double *mine, double *all)
{
    CT_TRY(MPI_Reduce(mine, all, r->choice_count * r->repetitions, MPI_DOUBLE, MPI_MAX, 0, b->part));
    for (int i = 0; b->rank == 0 && i < r->choice_count; i++) {
        if (take[i] <= 0.0)
            continue;
        printf("%s %ld %d", word, r->id, i);
        for (int k = 0; k < r->repetitions; k++)
            printf(" %.9g", all[i * r->repetitions + k]);
        printf("\n");
    }
    return MPI_SUCCESS;
}

/* The times of all choices whose result is right; and with a heap that keeps what is freed, of those that meet page faults. */
static int ct__time_and_tell(const ct_measure_request *r, ct__buffers *b, const int *wrong, double *mine, double *all)
{
    double take[CT_MEASURE_CHOICES], faults[CT_MEASURE_CHOICES + 1] = {0};
    for (int i = 0; i < r->choice_count; i++) {
        take[i] = wrong[i] ? 0.0 : 1.0;
        if (wrong[i] && b->rank == 0)
            printf("wrong %ld %d\n", r->id, i);
    }
    CT_TRY(ct__time(r, b, take, mine, faults));
    CT_TRY(ct__tell(r, b, "time", take, mine, all));
    faults[r->choice_count] = ct_heap_moves() ? 0.0 : 1.0; /* on any rank */
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, faults, r->choice_count + 1, MPI_DOUBLE, MPI_MAX, b->part));
    bool any = false;
    for (int i = 0; i < r->choice_count; i++) {
        take[i] = take[i] > 0.0 && faults[r->choice_count] <= 0.0 && faults[i] >= CT__FEW_FAULTS * r->repetitions;
        any = any || take[i] > 0.0;
    }
    if (!any)
        return MPI_SUCCESS;
    ct_heap_keep();
    for (int i = 0; i < r->choice_count; i++)
        if (take[i] > 0.0)
            CT_TRY(ct__call(&r->choices[i], b, b->receive));
    CT_TRY(ct__time(r, b, take, mine, faults));
    ct_heap_give_back(0);
    return ct__tell(r, b, "kept", take, mine, all);
}

static int ct__as_in_world(const void *world, MPI_Comm comm, int *leaders)
{
    const ct_nodes *nodes = &((const ct_team *)world)->nodes;
    (void)comm;
    for (int rank = 0; rank < ((const ct_team *)world)->size; rank++)
        leaders[rank] = ct_nodes_leader(nodes, nodes->node_of[rank]);
    return MPI_SUCCESS;
}

/* What a program pays on a communicator before its first call by the table: the team, and an agreement. */
static int ct__time_set_up(long id, const ct_team *world)
{
    MPI_Comm comm, private_comm;
    ct_team *team;
    int64_t mine[2] = {0}, agreed[2];
    double took_s, longest_s;
    CT_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CT_TRY(MPI_Barrier(comm));
    double began_s = MPI_Wtime();
    CT_TRY(ct_private_comm(comm, true, &private_comm));
    CT_TRY(ct_team_make(private_comm, ct__as_in_world, world, &team));
    CT_TRY(MPI_Allreduce(mine, agreed, 2, MPI_INT64_T, MPI_MAX, team->comm));
    took_s = MPI_Wtime() - began_s;
    CT_TRY(MPI_Reduce(&took_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (world->rank == 0) {
        printf("setup %ld %.9g\ndone %ld\n", id, longest_s, id);
        fflush(stdout);
    }
    ct_team_free(team);
    CT_TRY(ct_private_comm_free(&private_comm));
    return MPI_Comm_free(&comm);
}

/* Whether this rank is the first of the request's on its machine. */
static bool ct__leads(const ct_measure_request *r, const ct_team *world, const ct_watch *watch)
{
    for (int rank = 0; rank < world->size; rank++)
        if (world->nodes.node_of[rank] < r->nodes && world->nodes.local_of[rank] < r->ppn &&
            watch->machine_of[rank] == watch->machine_of[watch->rank])
            return rank == watch->rank;
    return false;
}

static int ct__measure(const ct_measure_request *r, MPI_Comm part, const ct_team *world, ct_watch *watch)
{
    char others[256];
    bool leads = ct__leads(r, world, watch);
    double begun = ct_watch_begin(watch, leads);
    ct__buffers b = {.part = part, .comm = part};
    CT_TRY(MPI_Comm_rank(part, &b.rank));
    CT_TRY(MPI_Comm_size(part, &b.size));
    int wrong[CT_MEASURE_CHOICES] = {0}, count = r->choice_count * r->repetitions;
    double *mine = calloc((size_t)count, sizeof *mine), *all = calloc((size_t)count, sizeof *all);
    int code = mine && all ? ct__fill(r, &b) : MPI_ERR_NO_MEM;
    bool tuned = false;
    for (int i = 0; i < r->choice_count; i++)
        tuned |= r->choices[i].algorithm == CT_MEASURE_TUNED;
    if (code == MPI_SUCCESS && tuned)
        code = MPI_Comm_dup(part, &b.comm);
    if (code == MPI_SUCCESS)
        code = ct__try(r, &b, wrong);
    if (code == MPI_SUCCESS)
        code = ct__time_and_tell(r, &b, wrong, mine, all);
    if (code == MPI_SUCCESS)
        code = ct_watch_tell(watch, leads, world->node, begun, part, others, sizeof others);
    if (b.rank == 0 && code == MPI_SUCCESS) {
        printf("load %ld%s\ndone %ld\n", r->id, others, r->id);
        fflush(stdout);
    }
    if (code == MPI_SUCCESS && tuned)
        code = MPI_Comm_free(&b.comm);
    ct__release(&b);
    free(mine), free(all);
    return code;
}

/* The next line for all ranks; those that wait for rank 0's input sleep. */
static int ct__share(char *line, int rank)
{
    MPI_Request request;
    int done = 0;
    if (rank == 0 && fgets(line, CT__LINE, stdin) == NULL)
        line[0] = '\0';
    CT_TRY(MPI_Ibcast(line, CT__LINE, MPI_CHAR, 0, MPI_COMM_WORLD, &request));
    while (!done) {
        CT_TRY(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (!done)
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return MPI_SUCCESS;
}

static int ct__refuse(const ct_measure_request *r, int rank, const char *why)
{
    if (rank == 0) {
        printf("unfit %ld %s\ndone %ld\n", r->id, why, r->id);
        fflush(stdout);
    }
    return MPI_SUCCESS;
}

/* One line for all ranks of the job. */
static int ct__serve(char *line, const ct_team *world, ct_watch *watch)
{
    static ct_measure_request request;
    MPI_Comm part;
    if (sscanf(line, "setup %ld", &request.id) == 1)
        return ct__time_set_up(request.id, world);
    if (!ct_measure_parse(line, &request)) {
        if (world->rank == 0)
            fprintf(stderr, "cannot read the request: %s", line);
        return MPI_ERR_ARG;
    }
    int code = ct_part_get(world, request.nodes, request.ppn, &part);
    if (code == MPI_ERR_ARG)
        return ct__refuse(&request, world->rank, "the job has no such part");
    if (code != MPI_SUCCESS || part == MPI_COMM_NULL)
        return code;
    code = ct__measure(&request, part, world, watch);
    return code == MPI_ERR_FILE ? ct__refuse(&request, world->rank, ct_blocks_why()) : code;
}

static int ct__ask(const void *of, MPI_Comm comm, int *leaders)
{
    (void)of;
    return ct_nodes_leaders(comm, leaders);
}

/* What else ran on the job's machines from its start to its end. */
static int ct__tell_load(ct_watch *watch, const ct_team *world)
{
    char others[256];
    CT_TRY(ct_watch_tell_whole(watch, world->node, MPI_COMM_WORLD, others, sizeof others));
    if (world->rank == 0) {
        printf("load 0%s\n", others);
        fflush(stdout);
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static char line[CT__LINE];
    ct_team *world;
    ct_watch watch = {0};
    MPI_Init(&argc, &argv);
    ct_blocks_files(argc - 1, argv + 1);
    int code = ct_team_make(MPI_COMM_WORLD, ct__ask, NULL, &world);
    if (code == MPI_SUCCESS)
        code = ct_watch_make(MPI_COMM_WORLD, &watch);
    if (code == MPI_SUCCESS)
        ct_watch_start(&watch);
    if (code == MPI_SUCCESS && world->rank == 0) {
        printf("ready ranks=%d\n", world->size);
        fflush(stdout);
    }
    while (code == MPI_SUCCESS && (code = ct__share(line, world->rank)) == MPI_SUCCESS && line[0] != '\0')
        code = ct__serve(line, world, &watch);
    if (code == MPI_SUCCESS)
        code = ct__tell_load(&watch, world);
    if (code == MPI_SUCCESS)
        code = ct_part_forget();
    if (code != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    ct_team_free(world);
    ct_watch_free(&watch);
    MPI_Finalize();
    return 0;
}
