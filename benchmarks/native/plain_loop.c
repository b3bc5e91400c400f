/* One collective in a loop, as a program of its own that knows nothing of colltune.
 *
 *   plain_loop COLLECTIVE BYTES [SECONDS]
 *
 * BYTES as the scenarios count them: of a block, or of the whole vector of a reduction. The heap is that of a fresh program:
 * nothing but MPI and the calls themselves changes it. Prints two numbers: the seconds of a call, which are the mean of the
 * slowest rank's, and the page faults of a call on the rank that has most. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { WARM_UP = 20, FEWEST = 20, MOST = 20000, PARTS = 5 };

static const char *const NAMES[] = {"allgather", "allgatherv", "allreduce", "alltoall", "barrier", "bcast", "exscan",
                                    "gather", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter"};
enum { ALLGATHER, ALLGATHERV, ALLREDUCE, ALLTOALL, BARRIER, BCAST, EXSCAN, GATHER, REDUCE, REDUCE_SCATTER,
       REDUCE_SCATTER_BLOCK, SCAN, SCATTER, KINDS };

static int kind, size, *counts, *displacements;
static char *from, *to;

static void call(int bytes)
{
    int elements = bytes / (int)sizeof(float);
    MPI_Comm all = MPI_COMM_WORLD;
    switch (kind) {
    case ALLGATHER: MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all); break;
    case ALLGATHERV: MPI_Allgatherv(from, bytes, MPI_BYTE, to, counts, displacements, MPI_BYTE, all); break;
    case ALLREDUCE: MPI_Allreduce(from, to, elements, MPI_FLOAT, MPI_SUM, all); break;
    case ALLTOALL: MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all); break;
    case BARRIER: MPI_Barrier(all); break;
    case BCAST: MPI_Bcast(from, bytes, MPI_BYTE, 0, all); break;
    case EXSCAN: MPI_Exscan(from, to, elements, MPI_FLOAT, MPI_SUM, all); break;
    case GATHER: MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all); break;
    case REDUCE: MPI_Reduce(from, to, elements, MPI_FLOAT, MPI_SUM, 0, all); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter(from, to, counts, MPI_FLOAT, MPI_SUM, all); break;
    case REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(from, to, elements / size, MPI_FLOAT, MPI_SUM, all); break;
    case SCAN: MPI_Scan(from, to, elements, MPI_FLOAT, MPI_SUM, all); break;
    case SCATTER: MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all); break;
    default: break;
    }
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Seconds of a call of the slowest rank, over `calls` of them with nothing between. */
static double loop(int bytes, int calls)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        call(bytes);
    double each = (MPI_Wtime() - start) / calls, slowest = each;
    MPI_Allreduce(&each, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (argc > 2 && kind < KINDS && strcmp(argv[1], NAMES[kind]) != 0)
        kind++;
    int bytes = argc > 2 ? atoi(argv[2]) : -1;
    double seconds = argc > 3 ? atof(argv[3]) : 0.2;
    if (argc < 3 || kind == KINDS || bytes < 0) {
        fprintf(stderr, "usage: plain_loop COLLECTIVE BYTES [SECONDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int elements = bytes / (int)sizeof(float), reduces = kind == REDUCE_SCATTER;
    counts = malloc(sizeof(int) * (size_t)size), displacements = malloc(sizeof(int) * (size_t)size);
    for (int i = 0; i < size; i++) {
        counts[i] = reduces ? elements / size + (i < elements % size) : bytes;
        displacements[i] = i * bytes;
    }
    size_t most = (size_t)bytes * (size_t)size + 64;
    from = malloc(most), to = malloc(most);
    memset(from, 0, most), memset(to, 0, most);
    double parts[PARTS], each = loop(bytes, WARM_UP);
    int calls = (int)(seconds / PARTS / (each + 1e-9));
    calls = calls < FEWEST ? FEWEST : calls > MOST ? MOST : calls;
    MPI_Bcast(&calls, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double before = (double)faults();
    for (int i = 0; i < PARTS; i++)
        parts[i] = loop(bytes, calls);
    double own = ((double)faults() - before) / calls / PARTS, worst = own;
    MPI_Allreduce(&own, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(parts, PARTS, sizeof *parts, by_value);
    if (rank == 0)
        printf("%.9g %.3f\n", parts[PARTS / 2], worst);
    MPI_Finalize();
    return 0;
}
