/* Times settings of the non-uniform all-to-all on a simulated cluster (SimGrid's SMPI), one simulation for all of them.
 *
 *     smpirun ... sweep REQUESTS PPN SEED
 *
 * A line of REQUESTS: algorithm radix batch direct_above distribution largest_bytes. Linear has no blocks to forward; there
 * `direct_above`, if not 0, is the number of peers, evenly spread, that are simulated of all size - 1. Answers, on standard output: the same,
 * the simulated seconds from a common start until the last rank is done, mean and largest block in bytes, the peers of the
 * busiest rank, the standard deviation and skewness of blocks, their quartiles, and the CPU seconds that the simulation took.
 *
 * All ranks share one send and one receive buffer: data are not checked here (tests/native/alltoallv_property.c does),
 * but every header is real. Copying takes simulated time, by the two constants below; computing takes none. */
#include "algorithms.h"
#include "call.h"

#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/barrier.h>
#include <simgrid/engine.h>
#include <smpi/smpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Per block that is copied on its own, and per byte; measured with bench_alltoallv.py --copying. */
static const double CT__BLOCK_S = 8e-9, CT__BYTE_S = 0.15e-9;

enum { CT__SAMPLE = 1 << 14 };

typedef struct {
    char algorithm[32], distribution[16];
    ct_alltoallv_choice choice;
    int largest;
} ct__request;

typedef struct {
    double mean, largest, deviation, skewness, quartile_1, quartile_3;
} ct__shape;

/* What all ranks share: they are threads of one process. */
static struct {
    sg_bar_t barrier;
    char *send, *receive;
    size_t bytes;
    FILE *requests;
    ct__request request;
    bool more;
    double began_cpu_s;
} ct__shared;

/* Sleeping, not computing: each rank has a core of its own, and the simulator has less to solve. */
void ct_charge(int64_t blocks, int64_t bytes)
{
    sg_actor_sleep_for((double)blocks * CT__BLOCK_S + (double)bytes * CT__BYTE_S);
}

static uint64_t ct__mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

static double ct__cpu_s(void) /* SMPI replaces clock_gettime by the simulated clock */
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Bytes of the block from one rank to another: the same wherever it is asked. */
static int ct__bytes(const ct__request *r, uint64_t seed, int from, int to)
{
    uint64_t draw = ct__mix(seed ^ ct__mix((uint64_t)from << 32 | (uint64_t)to));
    double unit = (double)(draw >> 11) * 0x1p-53;
    if (strcmp(r->distribution, "constant") == 0)
        return r->largest;
    if (strcmp(r->distribution, "sparse") == 0) /* a tenth of the pairs */
        return unit < 0.9 ? 0 : 1 + (int)((unit - 0.9) * 10.0 * r->largest);
    if (strcmp(r->distribution, "empty") == 0) /* a fiftieth */
        return unit < 0.98 ? 0 : 1 + (int)((unit - 0.98) * 50.0 * r->largest);
    if (strcmp(r->distribution, "power") == 0) {
        double bytes = 1.0 / sqrt(1.0 - unit * (1.0 - 1.0 / ((double)r->largest * r->largest)));
        return (int)bytes;
    }
    if (strcmp(r->distribution, "skewed") == 0) /* rank 0 gets and sends ten times as much as others */
        return (int)(unit * (from == 0 || to == 0 ? 1.0 : 0.1) * r->largest);
    return 1 + (int)(unit * r->largest); /* uniform */
}

static int ct__compare(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* The shape of the distribution, from a sample of the pairs. */
static ct__shape ct__measure(const ct__request *r, uint64_t seed, int size)
{
    int *sample = malloc(sizeof(int) * CT__SAMPLE);
    ct__shape shape = {0};
    for (int i = 0; i < CT__SAMPLE; i++) {
        uint64_t pair = ct__mix((uint64_t)i + 17);
        sample[i] = ct__bytes(r, seed, (int)(pair % (unsigned)size), (int)(pair / (unsigned)size % (unsigned)size));
        shape.mean += sample[i] / (double)CT__SAMPLE;
    }
    double second = 0.0, third = 0.0;
    for (int i = 0; i < CT__SAMPLE; i++) {
        double away = sample[i] - shape.mean;
        second += away * away / CT__SAMPLE, third += away * away * away / CT__SAMPLE;
    }
    qsort(sample, CT__SAMPLE, sizeof(int), ct__compare);
    shape.largest = sample[CT__SAMPLE - 1], shape.deviation = sqrt(second);
    shape.skewness = second > 0.0 ? third / (second * sqrt(second)) : 0.0;
    shape.quartile_1 = sample[CT__SAMPLE / 4], shape.quartile_3 = sample[3 * CT__SAMPLE / 4];
    free(sample);
    return shape;
}

static bool ct__read(ct__request *r)
{
    ct_alltoallv_choice *c = &r->choice;
    int read = fscanf(ct__shared.requests, "%31s %d %d %d %15s %d", r->algorithm, &c->radix, &c->batch, &c->direct_above,
                      r->distribution, &r->largest);
    c->algorithm = ct_alltoallv_find(r->algorithm);
    if (read == 6 && c->algorithm < 0)
        fprintf(stderr, "sweep: no algorithm %s\n", r->algorithm);
    return read == 6 && c->algorithm >= 0;
}

/* The next request, read by rank 0, and buffers that hold any block of it. */
static void ct__next(int rank)
{
    sg_barrier_wait(ct__shared.barrier);
    if (rank == 0) {
        ct__shared.more = ct__read(&ct__shared.request);
        if (ct__shared.more && (size_t)ct__shared.request.largest + 1 > ct__shared.bytes) {
            ct__shared.bytes = (size_t)ct__shared.request.largest + 1;
            ct__shared.send = realloc(ct__shared.send, ct__shared.bytes);
            ct__shared.receive = realloc(ct__shared.receive, ct__shared.bytes);
        }
        ct__shared.began_cpu_s = ct__cpu_s();
    }
    sg_barrier_wait(ct__shared.barrier);
}

/* Spread-out to `steps` of the peers: all its steps are alike, so that their number tells what all of them take. */
static int ct__linear_part(ct_team *team, const ct_exchange *x, int batch, int steps)
{
    MPI_Request *requests = malloc(sizeof *requests * 2 * (size_t)steps);
    int code = MPI_SUCCESS;
    if (batch <= 0 || batch > steps)
        batch = steps;
    for (int i = 0; i < steps && code == MPI_SUCCESS; i++) {
        int offset = 1 + (int)((int64_t)i * (team->size - 1) / steps);
        int to = (team->rank + offset) % team->size, from = (team->rank - offset + team->size) % team->size;
        if (i >= batch)
            code = PMPI_Waitall(2, &requests[2 * (i - batch)], MPI_STATUSES_IGNORE);
        requests[2 * i] = requests[2 * i + 1] = MPI_REQUEST_NULL;
        if (code == MPI_SUCCESS && ct_side_bytes(&x->receive, from) > 0)
            code = ct_block_receive(&x->receive, from, from, CT_TAG_LINEAR, team->comm, &requests[2 * i]);
        if (code == MPI_SUCCESS && ct_side_bytes(&x->send, to) > 0)
            code = ct_block_send(&x->send, to, to, CT_TAG_LINEAR, team->comm, &requests[2 * i + 1]);
    }
    if (code == MPI_SUCCESS)
        code = PMPI_Waitall(2 * batch, &requests[2 * (steps - batch)], MPI_STATUSES_IGNORE);
    free(requests);
    return code;
}

static int ct__carry_out(ct_team *team, const ct__request *r, const ct_a2av_call *call, const ct_exchange *x)
{
    ct_alltoallv_choice normal = ct_choice_normal(&r->choice, team->size);
    ct_statistic statistic = ct_exchange_statistic(x, team->size);
    if (r->choice.algorithm == CT_ALLTOALLV_LIBRARY)
        return ct_call_library(call);
    if (r->choice.algorithm == CT_ALLTOALLV_LINEAR && r->choice.direct_above > 0 && r->choice.direct_above < team->size)
        return ct__linear_part(team, x, r->choice.batch, r->choice.direct_above);
    return ct_run(team, x, &normal, &statistic);
}

static double ct__time(ct_team *team, const ct__request *r, int *counts[2], int *zeros)
{
    ct_a2av_call call = {.send = ct__shared.send, .send_counts = counts[0], .send_displacements = zeros, .send_type = MPI_BYTE,
                         .receive = ct__shared.receive, .receive_counts = counts[1], .receive_displacements = zeros,
                         .receive_type = MPI_BYTE, .comm = team->comm};
    ct_exchange x;
    ct_side_set(&x.send, ct__shared.send, counts[0], zeros, MPI_BYTE, false);
    ct_side_set(&x.receive, ct__shared.receive, counts[1], zeros, MPI_BYTE, false);
    sg_barrier_wait(ct__shared.barrier);
    double began_s = simgrid_get_clock();
    int code = ct__carry_out(team, r, &call, &x);
    if (code != MPI_SUCCESS)
        fprintf(stderr, "sweep: %s failed on rank %d with code %d\n", r->algorithm, team->rank, code);
    sg_barrier_wait(ct__shared.barrier);
    return simgrid_get_clock() - began_s;
}

static void ct__serve(ct_team *team, uint64_t seed)
{
    size_t bytes = sizeof(int) * (size_t)team->size;
    int *counts[2] = {malloc(bytes), malloc(bytes)}, *zeros = calloc(1, bytes);
    for (ct__next(team->rank); ct__shared.more; ct__next(team->rank)) {
        ct__request r = ct__shared.request;
        for (int peer = 0; peer < team->size; peer++) {
            counts[0][peer] = ct__bytes(&r, seed, team->rank, peer);
            counts[1][peer] = ct__bytes(&r, seed, peer, team->rank);
        }
        double time_s = ct__time(team, &r, counts, zeros);
        if (team->rank != 0)
            continue;
        int peers = 0;
        for (int peer = 0; peer < team->size; peer++)
            peers += counts[0][peer] > 0;
        ct__shape s = ct__measure(&r, seed, team->size);
        printf("%s %d %d %d %s %d %.9g %.6g %.6g %d %.6g %.4g %.6g %.6g %.3f\n", r.algorithm, r.choice.radix, r.choice.batch,
               r.choice.direct_above, r.distribution, r.largest, time_s, s.mean, s.largest, peers, s.deviation, s.skewness,
               s.quartile_1, s.quartile_3, ct__cpu_s() - ct__shared.began_cpu_s);
        fflush(stdout);
    }
    free(counts[0]), free(counts[1]), free(zeros);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    ct_team *team;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4 || (rank == 0 && (ct__shared.requests = fopen(argv[1], "r")) == NULL)) {
        fprintf(stderr, "usage: sweep REQUESTS PPN SEED\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (rank == 0)
        ct__shared.barrier = sg_barrier_init((unsigned)size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (ct_team_adopt(MPI_COMM_WORLD, atoi(argv[2]), &team) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    ct__serve(team, strtoull(argv[3], NULL, 10));
    team->comm = MPI_COMM_NULL; /* borrowed */
    ct_team_free(team);
    MPI_Finalize();
    return 0;
}
