/* The non-uniform all-to-all as the agent times it: blocks that are drawn, or of a matrix that is read, by the algorithm that the
 * variables of ours name. Each request has a communicator of its own, since what is set up for one stays with it. */
#include "agent.h"
#include "mock_ups.h"
#include "private_comm.h"
#include "team.h"
#include "weights.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CT__TUNED = CT_ALLTOALLV_ALGORITHMS }; /* what a program gets by the table in force, COLLTUNE_ALLTOALLV */
enum { CT__SETTLED = 30 };                    /* calls after which agreements are rare */

struct ct_blocks_state {
    bool sets_up;  /* not the exchange is timed, but what a communicator needs before its first by a table */
    MPI_Comm comm; /* of the request's ranks; MPI_COMM_NULL: none so far */
    bool settled;
    int leaders[]; /* [size] the first rank of each rank's node */
};

static char **ct__files; /* with matrices of bytes, in text, a row for each sender */
static int ct__file_count;

void ct_blocks_files(int count, char **paths) { ct__file_count = count, ct__files = paths; }

static bool ct__scan(const char *path, int *cells, size_t count)
{
    size_t read = 0;
    int more;
    FILE *file = fopen(path, "r");
    while (file != NULL && read < count && fscanf(file, "%d", &cells[read]) == 1 && cells[read] >= 0)
        read++;
    bool whole = file != NULL && read == count && fscanf(file, "%d", &more) != 1;
    if (file != NULL)
        fclose(file);
    return whole;
}

/* How large each block of this rank is beside others, sent and received, from a matrix of all or as `drawn` says. */
static void ct__weigh(const ct_blocks *drawn, const int *matrix, int rank, int size, double *sent, double *received)
{
    for (int other = 0; other < size; other++) {
        if (matrix != NULL) {
            sent[other] = matrix[(size_t)rank * (size_t)size + (size_t)other];
            received[other] = matrix[(size_t)other * (size_t)size + (size_t)rank];
            continue;
        }
        sent[other] = ct_weight_is_peer(drawn, (other - rank + size) % size, size) ? ct_weight(drawn, rank, other) : 0.0;
        received[other] = ct_weight_is_peer(drawn, (rank - other + size) % size, size) ? ct_weight(drawn, other, rank) : 0.0;
    }
}

/* Sizes such that of the rank that sends or receives most the blocks for others have `average` bytes; a matrix is as it is. */
static int ct__size(const double *weights[2], double average, bool as_is, int rank, int size, MPI_Comm comm, ct_timed_blocks *b)
{
    double sums[2] = {-weights[0][rank], -weights[1][rank]};
    for (int i = 0; i < 2; i++)
        for (int other = 0; other < size; other++)
            sums[i] += weights[i][other];
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_MAX, comm));
    double busiest = sums[0] > sums[1] ? sums[0] : sums[1];
    double unit = as_is ? 1.0 : busiest > 0.0 ? average * (size - 1.0) / busiest : 0.0;
    for (int i = 0; i < 2; i++)
        for (int other = 0; other < size; other++) { /* what is not empty stays so */
            b->counts[i][other] = (int)ceil(weights[i][other] * unit);
            b->places[i][other] = (int)b->bytes[i];
            b->bytes[i] += (size_t)b->counts[i][other];
        }
    return MPI_SUCCESS;
}

static bool ct__draw(const ct_blocks *drawn, size_t average, MPI_Comm comm, ct_timed_blocks *b, char *why, size_t why_size)
{
    int rank, size, file = strncmp(drawn->distribution, "counts", 6) == 0 ? atoi(drawn->distribution + 6) : -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    size_t ranks = (size_t)size, cells = file >= 0 ? ranks * ranks : 0;
    double *weights = calloc(2 * ranks, sizeof *weights);
    int *matrix = file >= 0 ? malloc(cells * sizeof *matrix) : NULL, *counts = b->counts[0] = calloc(4 * ranks, sizeof *counts);
    b->state = calloc(1, sizeof *b->state + ranks * sizeof(int));
    bool fine = weights != NULL && counts != NULL && b->state != NULL && (file < 0 || matrix != NULL);
    snprintf(why, why_size, "no-memory-on-a-rank");
    if (fine && rank == 0 && file >= 0 && !(fine = file < ct__file_count && ct__scan(ct__files[file], matrix, cells)))
        snprintf(why, why_size, "not-%dx%d-numbers-of-bytes:%s", size, size, file < ct__file_count ? ct__files[file] : "?");
    if (b->state != NULL)
        b->state->comm = MPI_COMM_NULL;
    fine = ct_all(comm, fine) && (file < 0 || MPI_Bcast(matrix, (int)cells, MPI_INT, 0, comm) == MPI_SUCCESS);
    if (fine) {
        b->counts[1] = counts + size, b->places[0] = counts + 2 * size, b->places[1] = counts + 3 * size;
        ct__weigh(drawn, matrix, rank, size, weights, weights + size);
        fine = ct__size((const double *[]){weights, weights + size}, (double)average, file >= 0, rank, size, comm, b) == MPI_SUCCESS;
    }
    free(weights);
    free(matrix);
    return fine;
}

bool ct_blocks_make(const ct_request *request, MPI_Comm comm, ct_timed_blocks *b, char *why, size_t why_size)
{
    ct_blocks drawn;
    int size;
    *b = (ct_timed_blocks){.state = NULL};
    MPI_Comm_size(comm, &size);
    /* Together they have to be counted with an int, and those for oneself may be as large as all others. */
    if (!ct_blocks_parse(request->collective, &drawn) || request->size_bytes > (size_t)INT_MAX / 2 / (size_t)size) {
        snprintf(why, why_size, "no-such-blocks");
        return false;
    }
    bool fine = ct__draw(&drawn, request->size_bytes, comm, b, why, why_size);
    if (fine)
        b->state->sets_up = strcmp(drawn.distribution, "set_up") == 0;
    return fine;
}

void ct_blocks_free(ct_timed_blocks *b)
{
    if (b->state != NULL && b->state->comm != MPI_COMM_NULL)
        MPI_Comm_free(&b->state->comm);
    free(b->state);
    free(b->counts[0]);
}

static int ct__leaders(const void *of, MPI_Comm comm, int *leaders)
{
    int size, code = MPI_Comm_size(comm, &size);
    memcpy(leaders, ((const ct_blocks_state *)of)->leaders, sizeof(int) * (size_t)size);
    return code;
}

/* What a program pays on a communicator before its first call by the table: the team, and an agreement. Where ranks are is known. */
static int ct__set_up(const ct_blocks_state *state)
{
    MPI_Comm private_comm;
    ct_team *team;
    int64_t mine[2] = {0}, agreed[2];
    CT_TRY(ct_private_comm(state->comm, true, &private_comm));
    CT_TRY(ct_team_make(private_comm, ct__leaders, state, &team));
    CT_TRY(MPI_Allreduce(mine, agreed, 2, MPI_INT64_T, MPI_MAX, team->comm));
    ct_team_free(team);
    return ct_private_comm_free(&private_comm);
}

int ct_blocks_exchange(ct_timed_blocks *b, const void *send, void *receive, MPI_Comm comm)
{
    ct_alltoallv_choice choice = {ct_mock_up_get(CT_ALLTOALLV_ALGORITHM), ct_mock_up_get(CT_ALLTOALLV_RADIX),
                                  ct_mock_up_get(CT_ALLTOALLV_BATCH), ct_mock_up_get(CT_ALLTOALLV_DIRECT)};
    ct_blocks_state *state = b->state;
    if (state->comm == MPI_COMM_NULL) {
        CT_TRY(MPI_Comm_dup(comm, &state->comm));
        CT_TRY(ct_nodes_leaders(state->comm, state->leaders));
    }
    if (state->sets_up)
        return ct__set_up(state);
    if (choice.algorithm != CT__TUNED)
        return ct_alltoallv_by(&choice, send, b->counts[0], b->places[0], MPI_BYTE, receive, b->counts[1], b->places[1], MPI_BYTE,
                               state->comm);
    for (int calls = state->settled ? 1 : CT__SETTLED; calls > 0; calls--)
        CT_TRY(ct_alltoallv(send, b->counts[0], b->places[0], MPI_BYTE, receive, b->counts[1], b->places[1], MPI_BYTE, state->comm));
    state->settled = true;
    return MPI_SUCCESS;
}
