/* Times collectives beside others of the library that do the same, called one after the other: what a mock-up would
 * take. mock_ups REPETITIONS SIZE...; prints, from rank 0, lines "collective bytes variant seconds", of which "own" is
 * the library's own call. seconds: median over repetitions of the slowest rank, from a barrier on. The variants take
 * turns in each repetition, in an order that changes. Every result is compared with the library's own first.
 * A size is that of the buffer of each rank, in bytes of floats, and of the part of a rank where parts are meant. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIANTS = 4, MOST_SCRATCH = 4 << 20 };

static int rank, ranks, count;
static float *in, *out, *scratch;
static int *counts, *starts;

static void gather(void) { MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void gather_v(void) { MPI_Gatherv(in, count, MPI_FLOAT, out, counts, starts, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void gather_all(void)
{
    MPI_Allgather(in, count, MPI_FLOAT, rank == 0 ? out : scratch, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void scatter(void) { MPI_Scatter(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void scatter_v(void) { MPI_Scatterv(in, counts, starts, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void scatter_bcast(void)
{
    float *whole = rank == 0 ? in : scratch;
    MPI_Bcast(whole, count * ranks, MPI_FLOAT, 0, MPI_COMM_WORLD);
    memcpy(out, whole + (size_t)count * rank, sizeof(float) * count);
}
static void allreduce(void) { MPI_Allreduce(in, out, count * ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void allreduce_parts(void)
{
    MPI_Reduce_scatter_block(in, scratch, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgather(scratch, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void allreduce_root(void)
{
    MPI_Reduce(in, out, count * ranks, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, count * ranks, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void bcast(void) { MPI_Bcast(in, count * ranks, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void bcast_parts(void)
{
    MPI_Scatter(in, count, MPI_FLOAT, scratch, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    MPI_Allgather(scratch, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
}
static void allgather(void) { MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD); }
static void allgather_root(void)
{
    MPI_Gather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, count * ranks, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void allgather_v(void) { MPI_Allgatherv(in, count, MPI_FLOAT, out, counts, starts, MPI_FLOAT, MPI_COMM_WORLD); }
static void reduce(void) { MPI_Reduce(in, out, count * ranks, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void reduce_parts(void)
{
    MPI_Reduce_scatter_block(in, scratch, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(scratch, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void reduce_all(void)
{
    MPI_Allreduce(in, rank == 0 ? out : scratch, count * ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void block(void) { MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void block_v(void) { MPI_Reduce_scatter(in, out, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void block_root(void)
{
    MPI_Reduce(in, scratch, count * ranks, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Scatter(scratch, count, MPI_FLOAT, out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void block_all(void)
{
    MPI_Allreduce(in, scratch, count * ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    memcpy(out, scratch + (size_t)count * rank, sizeof(float) * count);
}
static void alltoall(void) { MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD); }
static void alltoall_v(void)
{
    MPI_Alltoallv(in, counts, starts, MPI_FLOAT, out, counts, starts, MPI_FLOAT, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    struct {
        const char *name;
        void (*call)(void);
    } variants[MOST_VARIANTS];
} collectives[] = {
    {"gather", {{"own", gather}, {"gatherv", gather_v}, {"allgather", gather_all}}},
    {"scatter", {{"own", scatter}, {"scatterv", scatter_v}, {"bcast", scatter_bcast}}},
    {"allreduce", {{"own", allreduce}, {"reduce_scatter_block+allgather", allreduce_parts}, {"reduce+bcast", allreduce_root}}},
    {"bcast", {{"own", bcast}, {"scatter+allgather", bcast_parts}}},
    {"allgather", {{"own", allgather}, {"gather+bcast", allgather_root}, {"allgatherv", allgather_v}}},
    {"reduce", {{"own", reduce}, {"reduce_scatter_block+gather", reduce_parts}, {"allreduce", reduce_all}}},
    {"reduce_scatter_block",
     {{"own", block}, {"reduce_scatter", block_v}, {"reduce+scatter", block_root}, {"allreduce", block_all}}},
    {"alltoall", {{"own", alltoall}, {"alltoallv", alltoall_v}}},
};

static int ascending(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static void compare_results(size_t c)
{
    size_t bytes = sizeof(float) * count * ranks;
    float *expected = malloc(bytes);
    int wrong = 0, any = 0;
    for (int v = 0; v < MOST_VARIANTS && collectives[c].variants[v].call != NULL; v++) {
        memset(out, 0, bytes);
        collectives[c].variants[v].call();
        if (v == 0)
            memcpy(expected, out, bytes);
        else if (strcmp(collectives[c].name, "bcast") != 0)
            wrong |= memcmp(expected, out, bytes) != 0;
    }
    free(expected);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        fprintf(stderr, "a result of %s is wrong\n", collectives[c].name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void measure(size_t c, int repetitions)
{
    int variants = 0;
    while (variants < MOST_VARIANTS && collectives[c].variants[variants].call != NULL)
        variants++;
    double *times = malloc(sizeof(double) * variants * repetitions), *worst = malloc(sizeof(double) * variants * repetitions);
    for (int r = 0; r < repetitions; r++)
        for (int turn = 0; turn < variants; turn++) {
            int v = r % 2 ? (turn + r / 2) % variants : (2 * variants - 1 - turn + r / 2) % variants;
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            collectives[c].variants[v].call();
            times[v * repetitions + r] = MPI_Wtime() - begun;
        }
    MPI_Reduce(times, worst, variants * repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int v = 0; v < variants && rank == 0; v++) {
        qsort(worst + v * repetitions, repetitions, sizeof(double), ascending);
        printf("%s %zu %s %.9f\n", collectives[c].name, sizeof(float) * count, collectives[c].variants[v].name,
               worst[v * repetitions + repetitions / 2]);
    }
    free(times);
    free(worst);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    in = malloc(MOST_SCRATCH);
    out = malloc(MOST_SCRATCH);
    scratch = malloc(MOST_SCRATCH);
    counts = malloc(sizeof(int) * ranks);
    starts = malloc(sizeof(int) * ranks);
    /* Small whole numbers: sums are the same in any order. */
    for (int i = 0; i < MOST_SCRATCH / (int)sizeof(float); i++)
        in[i] = (float)((i * 7 + rank) % 13);
    for (int s = 2; s < argc; s++) {
        count = atoi(argv[s]) / (int)sizeof(float);
        if (count < 1 || sizeof(float) * count * ranks > MOST_SCRATCH) {
            fprintf(stderr, "a size is %zu to %d bytes\n", sizeof(float), MOST_SCRATCH / ranks);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (int r = 0; r < ranks; r++) {
            counts[r] = count;
            starts[r] = r * count;
        }
        for (size_t c = 0; c < sizeof collectives / sizeof *collectives; c++) {
            compare_results(c);
            measure(c, atoi(argv[1]));
        }
    }
    MPI_Finalize();
    return 0;
}
