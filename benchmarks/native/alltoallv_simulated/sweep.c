/* The settings one after the other, as every rank runs them. */
#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per block that is copied on its own, and per byte; measured with bench_alltoallv.py --copying. */
static const double CT__BLOCK_S = 8e-9, CT__BYTE_S = 0.15e-9;

/* What all ranks share: they are threads of one process. */
static struct {
    char *send, *receive;
    size_t bytes;
    FILE *requests;
    ct_sweep_request request;
    bool more;
    double began_cpu_s;
} ct__shared;

/* Sleeping, not computing: each rank has a core of its own, and the simulator has less to solve. */
void ct_charge(int64_t blocks, int64_t bytes)
{
    ct_machine_sleep((double)blocks * CT__BLOCK_S + (double)bytes * CT__BYTE_S);
}

static bool ct__read(ct_sweep_request *r)
{
    ct_alltoallv_choice *c = &r->choice;
    int read = fscanf(ct__shared.requests, "%31s %d %d %d %15s %d %d", r->algorithm, &c->radix, &c->batch, &c->direct_above,
                      r->distribution, &r->largest, &r->peers);
    c->algorithm = ct_alltoallv_find(r->algorithm);
    if (read == 7 && c->algorithm < 0)
        fprintf(stderr, "sweep: no algorithm %s\n", r->algorithm);
    return read == 7 && c->algorithm >= 0;
}

/* The next request, read by rank 0, and buffers that hold any block of it. */
static void ct__next(int rank, int size, uint64_t seed)
{
    ct_machine_barrier();
    if (rank == 0) {
        ct_sweep_request *r = &ct__shared.request;
        ct__shared.more = ct__read(r);
        int largest = ct__shared.more && r->peers >= 0 ? ct_pattern_draw(r, seed, size) : r->largest;
        ct__shared.more = ct__shared.more && largest >= 0;
        if (ct__shared.more && (size_t)largest + 1 > ct__shared.bytes) {
            ct__shared.bytes = (size_t)largest + 1;
            ct__shared.send = realloc(ct__shared.send, ct__shared.bytes);
            ct__shared.receive = realloc(ct__shared.receive, ct__shared.bytes);
        }
        ct__shared.began_cpu_s = ct_machine_cpu_s();
    }
    ct_machine_barrier();
}

/* The library's: runs of peers, each awaited before the next begins. */
int ct_sweep_library(ct_team *team, const ct_exchange *x)
{
    enum { THROTTLE = 32 };
    MPI_Request requests[2 * THROTTLE];
    for (int first = 1; first < team->size; first += THROTTLE) {
        int last = first + THROTTLE < team->size ? first + THROTTLE : team->size, count = 0;
        for (int offset = first; offset < last; offset++) {
            int from = (team->rank + offset) % team->size;
            if (ct_side_bytes(&x->receive, from) > 0)
                CT_TRY(ct_block_receive(&x->receive, from, from, CT_TAG_LINEAR, team->comm, &requests[count++]));
        }
        for (int offset = first; offset < last; offset++) {
            int to = (team->rank - offset + team->size) % team->size;
            if (ct_side_bytes(&x->send, to) > 0)
                CT_TRY(ct_block_send(&x->send, to, to, CT_TAG_LINEAR, team->comm, &requests[count++]));
        }
        CT_TRY(PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    }
    return MPI_SUCCESS;
}

static int ct__carry_out(ct_team *team, const ct_sweep_request *r, const ct_exchange *x)
{
    ct_alltoallv_choice normal = ct_choice_normal(&r->choice, team->size);
    ct_statistic statistic = ct_exchange_statistic(x, team->rank, team->size);
    if (r->choice.algorithm == CT_ALLTOALLV_LIBRARY)
        return ct_sweep_library(team, x);
    return ct_run(team, x, &normal, &statistic);
}

static double ct__time(ct_team *team, const ct_sweep_request *r, int *counts[2], int *zeros)
{
    ct_exchange x;
    ct_side_set(&x.send, ct__shared.send, counts[0], zeros, MPI_BYTE, false);
    ct_side_set(&x.receive, ct__shared.receive, counts[1], zeros, MPI_BYTE, false);
    ct_machine_barrier();
    double began_s = ct_machine_clock_s();
    int code = ct__carry_out(team, r, &x);
    if (code != MPI_SUCCESS)
        fprintf(stderr, "sweep: %s failed on rank %d with code %d\n", r->algorithm, team->rank, code);
    ct_machine_barrier();
    return ct_machine_clock_s() - began_s;
}

static void ct__serve(ct_team *team, uint64_t seed)
{
    size_t bytes = sizeof(int) * (size_t)team->size;
    int *counts[2] = {malloc(bytes), malloc(bytes)}, *zeros = calloc(1, bytes);
    for (ct__next(team->rank, team->size, seed); ct__shared.more; ct__next(team->rank, team->size, seed)) {
        ct_sweep_request r = ct__shared.request;
        for (int peer = 0; peer < team->size; peer++) {
            counts[0][peer] = ct_pattern_bytes(&r, seed, team->rank, peer, team->size);
            counts[1][peer] = ct_pattern_bytes(&r, seed, peer, team->rank, team->size);
        }
        double time_s = ct__time(team, &r, counts, zeros);
        if (team->rank != 0)
            continue;
        int peers = 0;
        for (int peer = 0; peer < team->size; peer++)
            peers += counts[0][peer] > 0;
        ct_sweep_shape s = ct_pattern_shape(&r, seed, team->size);
        printf("%s %d %d %d %s %d %.9g %.6g %.6g %d %.6g %.4g %.6g %.6g %.3f\n", r.algorithm, r.choice.radix, r.choice.batch,
               r.choice.direct_above, r.distribution, r.largest, time_s, s.mean, s.largest, peers, s.deviation, s.skewness,
               s.quartile_1, s.quartile_3, ct_machine_cpu_s() - ct__shared.began_cpu_s);
        fflush(stdout);
    }
    free(counts[0]), free(counts[1]), free(zeros);
}

bool ct_sweep_open(const char *path) { return (ct__shared.requests = fopen(path, "r")) != NULL; }

int ct_sweep_leaders(const void *ppn, MPI_Comm comm, int *leaders)
{
    int size;
    CT_TRY(PMPI_Comm_size(comm, &size));
    for (int rank = 0; rank < size; rank++)
        leaders[rank] = rank - rank % *(const int *)ppn;
    return MPI_SUCCESS;
}

int ct_sweep(MPI_Comm comm, int ppn, uint64_t seed)
{
    ct_team *team;
    CT_TRY(ct_team_make(comm, ct_sweep_leaders, &ppn, &team));
    ct__serve(team, seed);
    ct_team_free(team);
    return MPI_SUCCESS;
}
