/* Measures settings of the non-uniform all-to-all in one MPI job. Lines in on rank 0's standard input, lines out:
 *
 *     ready ranks=8
 *     measure ID NODES PPN DISTRIBUTION PEERS AVERAGE_BYTES REPETITIONS SEED NAME:RADIX:BATCH:DIRECT_ABOVE ...
 *     time ID 0 1.1e-05 1.2e-05 ...      the slowest rank's seconds, after a barrier; choices take turns
 *     wrong ID 1                         its result was not the library's
 *     unfit ID REASON                    in place of all times: there is no such part of the job, or no such matrix
 *     done ID
 *     setup ID                           then: setup ID 0.0021, the slowest rank's seconds for what a communicator needs
 *
 * A point is measured on the first NODES with PPN ranks each. blocks.h has the distributions; "counts0" is the matrix in the
 * first file that the program is given. NAME is an algorithm, or
 * tuned: what a program gets by the table in force, COLLTUNE_ALLTOALLV, on a communicator of its own. The end of the input
 * ends the job. Waiting ranks sleep. */
#define _GNU_SOURCE /* nanosleep */
#include "algorithms.h"
#include "blocks.h"
#include "call.h"
#include "part.h"
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CT__TUNED = -2, CT__SETTLED = 30 /* calls after which agreements are rare */, CT__LINE = 1 << 15, CT__CHOICES = 128, CT__REPETITIONS = 10000 };

typedef struct {
    ct_blocks blocks;
    int nodes, ppn, repetitions, choice_count;
    long id;
    ct_alltoallv_choice choices[CT__CHOICES];
} ct__request;

typedef struct {
    int size, rank;
    int *counts[2], *displacements[2]; /* of what is sent, and received */
    unsigned char *send, *receive, *expected;
    size_t bytes[2];
    MPI_Comm part, comm; /* the part of the job; the same for the calls, or a duplicate */
} ct__buffers;

static bool ct__parse(char *line, ct__request *r)
{
    int used = 0, more = 0;
    ct_blocks *b = &r->blocks;
    if (sscanf(line, "measure %ld %d %d %15s %d %d %d %u%n", &r->id, &r->nodes, &r->ppn, b->distribution, &b->peers,
               &b->average, &r->repetitions, &b->seed, &used) != 8)
        return false;
    for (r->choice_count = 0; r->choice_count < CT__CHOICES; r->choice_count++, used += more) {
        char name[32];
        ct_alltoallv_choice *c = &r->choices[r->choice_count];
        if (sscanf(line + used, " %31[a-z_]:%d:%d:%d%n", name, &c->radix, &c->batch, &c->direct_above, &more) != 4)
            break;
        c->algorithm = strcmp(name, "tuned") == 0 ? CT__TUNED : ct_alltoallv_find(name);
        if (c->algorithm < 0 && c->algorithm != CT__TUNED)
            return false;
    }
    return r->choice_count > 0 && b->average >= 0 && b->peers >= 0 && r->repetitions > 0 && r->repetitions <= CT__REPETITIONS;
}

static void ct__release(ct__buffers *b)
{
    for (int i = 0; i < 2; i++)
        free(b->counts[i]), free(b->displacements[i]);
    free(b->send), free(b->receive), free(b->expected);
}

static int ct__fill(const ct__request *r, ct__buffers *b)
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
    b->send = malloc(b->bytes[0] + 1), b->receive = calloc(b->bytes[1] + 1, 1), b->expected = calloc(b->bytes[1] + 1, 1);
    for (size_t i = 0; b->send != NULL && i < b->bytes[0]; i++)
        b->send[i] = (unsigned char)(i * 37 + (size_t)b->rank * 7919);
    return b->send && b->receive && b->expected ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int ct__call(const ct_alltoallv_choice *choice, ct__buffers *b, unsigned char *to)
{
    if (choice->algorithm == CT__TUNED)
        return ct_alltoallv(b->send, b->counts[0], b->displacements[0], MPI_BYTE, to, b->counts[1], b->displacements[1], MPI_BYTE,
                            b->comm);
    return ct_alltoallv_by(choice, b->send, b->counts[0], b->displacements[0], MPI_BYTE, to, b->counts[1],
                           b->displacements[1], MPI_BYTE, b->comm);
}

/* Once each, before the timing: warm, and against the library's result. */
static int ct__try(const ct__request *r, ct__buffers *b, int *wrong)
{
    ct_alltoallv_choice library = {0};
    int mine[CT__CHOICES];
    CT_TRY(ct__call(&library, b, b->expected));
    for (int i = 0; i < r->choice_count; i++) {
        memset(b->receive, 0xA5, b->bytes[1]);
        for (int k = 0; k < (r->choices[i].algorithm == CT__TUNED ? CT__SETTLED : 1); k++)
            CT_TRY(ct__call(&r->choices[i], b, b->receive));
        mine[i] = memcmp(b->receive, b->expected, b->bytes[1]) != 0;
    }
    return MPI_Allreduce(mine, wrong, r->choice_count, MPI_INT, MPI_MAX, b->part);
}

static int ct__time(const ct__request *r, ct__buffers *b, double *times)
{
    for (int repetition = 0; repetition < r->repetitions; repetition++)
        for (int k = 0; k < r->choice_count; k++) {
            int i = (k + repetition) % r->choice_count; /* who comes after whom changes */
            CT_TRY(MPI_Barrier(b->part));
            double began_s = MPI_Wtime();
            CT_TRY(ct__call(&r->choices[i], b, b->receive));
            times[i * r->repetitions + repetition] = MPI_Wtime() - began_s;
        }
    return MPI_SUCCESS;
}

/* What a program pays on a communicator before its first call by the table: the team, and an agreement. */
static int ct__time_set_up(long id, int rank)
{
    MPI_Comm comm;
    ct_state *state;
    ct_team *team;
    int64_t mine[2] = {0}, agreed[2];
    double took_s, longest_s;
    CT_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CT_TRY(MPI_Barrier(comm));
    double began_s = MPI_Wtime();
    CT_TRY(ct_state_need(comm, &state));
    CT_TRY(ct_state_team(state, &team));
    CT_TRY(MPI_Allreduce(mine, agreed, 2, MPI_INT64_T, MPI_MAX, team->comm));
    took_s = MPI_Wtime() - began_s;
    CT_TRY(MPI_Reduce(&took_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        printf("setup %ld %.9g\ndone %ld\n", id, longest_s, id);
        fflush(stdout);
    }
    return MPI_Comm_free(&comm);
}

static int ct__measure(const ct__request *r, MPI_Comm part)
{
    ct__buffers b = {.part = part, .comm = part};
    CT_TRY(MPI_Comm_rank(part, &b.rank));
    CT_TRY(MPI_Comm_size(part, &b.size));
    int wrong[CT__CHOICES] = {0}, count = r->choice_count * r->repetitions;
    double *mine = malloc(sizeof(double) * (size_t)count), *all = malloc(sizeof(double) * (size_t)count);
    int code = mine && all ? ct__fill(r, &b) : MPI_ERR_NO_MEM;
    bool tuned = false;
    for (int i = 0; i < r->choice_count; i++)
        tuned |= r->choices[i].algorithm == CT__TUNED;
    if (code == MPI_SUCCESS && tuned)
        code = MPI_Comm_dup(part, &b.comm);
    if (code == MPI_SUCCESS)
        code = ct__try(r, &b, wrong);
    if (code == MPI_SUCCESS)
        code = ct__time(r, &b, mine);
    if (code == MPI_SUCCESS)
        code = MPI_Reduce(mine, all, count, MPI_DOUBLE, MPI_MAX, 0, part);
    for (int i = 0; code == MPI_SUCCESS && b.rank == 0 && i < r->choice_count; i++) {
        printf(wrong[i] ? "wrong %ld %d" : "time %ld %d", r->id, i);
        for (int k = 0; !wrong[i] && k < r->repetitions; k++)
            printf(" %.9g", all[i * r->repetitions + k]);
        printf("\n");
    }
    if (b.rank == 0 && code == MPI_SUCCESS) {
        printf("done %ld\n", r->id);
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

static int ct__refuse(const ct__request *r, int rank, const char *why)
{
    if (rank == 0) {
        printf("unfit %ld %s\ndone %ld\n", r->id, why, r->id);
        fflush(stdout);
    }
    return MPI_SUCCESS;
}

/* One line for all ranks of the job. */
static int ct__serve(char *line, const ct_team *world)
{
    static ct__request request;
    MPI_Comm part;
    if (sscanf(line, "setup %ld", &request.id) == 1)
        return ct__time_set_up(request.id, world->rank);
    if (!ct__parse(line, &request)) {
        if (world->rank == 0)
            fprintf(stderr, "cannot read the request: %s", line);
        return MPI_ERR_ARG;
    }
    int code = ct_part_get(world, request.nodes, request.ppn, &part);
    if (code == MPI_ERR_ARG)
        return ct__refuse(&request, world->rank, "the job has no such part");
    if (code != MPI_SUCCESS || part == MPI_COMM_NULL)
        return code;
    code = ct__measure(&request, part);
    return code == MPI_ERR_FILE ? ct__refuse(&request, world->rank, ct_blocks_why()) : code;
}

/* The nodes of the job; for tests those that are pretended. */
static int ct__world(ct_team **world)
{
    MPI_Comm comm;
    const char *every = getenv("COLLTUNE_ALLTOALLV_NODE");
    CT_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    return ct_team_adopt(comm, every ? atoi(every) : 0, world);
}

int main(int argc, char **argv)
{
    static char line[CT__LINE];
    ct_team *world;
    MPI_Init(&argc, &argv);
    ct_blocks_files(argc - 1, argv + 1);
    int code = ct__world(&world);
    if (code == MPI_SUCCESS && world->rank == 0) {
        printf("ready ranks=%d\n", world->size);
        fflush(stdout);
    }
    while (code == MPI_SUCCESS && (code = ct__share(line, world->rank)) == MPI_SUCCESS && line[0] != '\0')
        code = ct__serve(line, world);
    if (code == MPI_SUCCESS)
        code = ct_part_forget();
    if (code == MPI_SUCCESS)
        code = ct_team_free(world);
    if (code != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
