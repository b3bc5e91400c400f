/* Parallel sample sort: keys go once, by MPI_Alltoallv, to the rank whose range they are in.
 *
 *     mpicc -O2 sample_sort.c -o sample_sort
 *     mpiexec -n 8 ./sample_sort [keys per rank [uniform|skewed [repeats]]]
 *
 * Every rank sorts its keys and shows OVER * ranks of them; from all that are shown come the limits of the ranks' ranges.
 * Of `skewed` keys most are small and one in four is 0, so that blocks differ. Checked: each rank's keys are in order and
 * none is below those of the rank before, and all together are those that there were, by number and hash. Prints keys, the
 * hash, and seconds of one sort: whole, exchange of counts, MPI_Alltoallv; each of the slowest rank. Last come the seconds of
 * a repeat with all that is around the sort: drawing keys, a barrier, checking. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OVER = 8 }; /* keys that a rank shows for each rank */

static int rank, ranks;
static double counts_s, alltoallv_s;

static void *need(void *memory)
{
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 12);
    return memory;
}

static uint64_t mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void draw(uint64_t *keys, size_t count, int skewed)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t drawn = mix(((uint64_t)rank << 40) + i + 1);
        keys[i] = !skewed ? drawn : drawn % 4 == 0 ? 0 : (drawn >> 32) * (drawn & 0xffff) >> (drawn >> 16 & 31);
    }
}

/* limit[r]: the first key that goes to a rank after r. `keys` are in order. */
static void find_limits(const uint64_t *keys, size_t count, uint64_t *limit)
{
    int shown = OVER * ranks;
    uint64_t *mine = need(malloc(sizeof *mine * (size_t)shown)), *all = need(malloc(sizeof *all * (size_t)(shown * ranks)));
    for (int i = 0; i < shown; i++)
        mine[i] = count > 0 ? keys[(size_t)i * count / (size_t)shown] : 0;
    MPI_Allgather(mine, shown, MPI_UINT64_T, all, shown, MPI_UINT64_T, MPI_COMM_WORLD);
    qsort(all, (size_t)(shown * ranks), sizeof *all, compare);
    for (int r = 0; r + 1 < ranks; r++)
        limit[r] = all[shown * (r + 1)];
    free(mine), free(all);
}

/* The keys of this rank's range, in order; the caller frees them. */
static uint64_t *sort(uint64_t *keys, size_t count, size_t *found)
{
    int *send = need(calloc(4 * (size_t)ranks, sizeof *send)), *send_at = send + ranks, *receive = send + 2 * ranks;
    int *receive_at = send + 3 * ranks, to = 0;
    uint64_t *limit = need(malloc(sizeof *limit * (size_t)ranks));
    qsort(keys, count, sizeof *keys, compare);
    find_limits(keys, count, limit);
    for (size_t i = 0; i < count; i++) {
        while (to + 1 < ranks && keys[i] >= limit[to])
            to++;
        send[to]++;
    }
    double start_s = MPI_Wtime();
    MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
    double told_s = MPI_Wtime();
    *found = (size_t)receive[0];
    for (int r = 1; r < ranks; *found += (size_t)receive[r++])
        send_at[r] = send_at[r - 1] + send[r - 1], receive_at[r] = (int)*found;
    uint64_t *sorted = need(malloc((*found + 1) * sizeof *sorted));
    double ready_s = MPI_Wtime();
    MPI_Alltoallv(keys, send, send_at, MPI_UINT64_T, sorted, receive, receive_at, MPI_UINT64_T, MPI_COMM_WORLD);
    alltoallv_s += MPI_Wtime() - ready_s, counts_s += told_s - start_s;
    qsort(sorted, *found, sizeof *sorted, compare);
    free(send), free(limit);
    return sorted;
}

/* Into sums[0] the number of keys, into sums[1] a hash; returns 1 if this rank's keys are not in order. */
static int check(const uint64_t *keys, size_t count, uint64_t sums[2])
{
    int wrong = 0;
    uint64_t own[2] = {count, 0}, top = count > 0 ? keys[count - 1] : 0, before = 0;
    for (size_t i = 0; i < count; i++) {
        own[1] += mix(keys[i] + 1);
        wrong |= i > 0 && keys[i] < keys[i - 1];
    }
    MPI_Exscan(&top, &before, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(own, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return wrong | (rank > 0 && count > 0 && keys[0] < before);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int wanted = argc > 1 ? atoi(argv[1]) : 100000, repeats = argc > 3 ? atoi(argv[3]) : 1, wrong = 0, any;
    const char *kind = argc > 2 ? argv[2] : "uniform";
    if (wanted < 0 || repeats < 1 || (strcmp(kind, "uniform") != 0 && strcmp(kind, "skewed") != 0))
        MPI_Abort(MPI_COMM_WORLD, 2);
    size_t count = (size_t)wanted, found;
    uint64_t *keys = need(malloc((count + 1) * sizeof *keys)), sums[2], before[2];
    double own[4] = {0.0}, worst[4], began_s = MPI_Wtime();
    for (int i = 0; i < repeats; i++) {
        draw(keys, count, strcmp(kind, "skewed") == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        double start_s = MPI_Wtime();
        uint64_t *sorted = sort(keys, count, &found);
        own[0] += MPI_Wtime() - start_s;
        check(keys, count, before);
        wrong |= check(sorted, found, sums) || memcmp(sums, before, sizeof sums) != 0;
        free(sorted);
    }
    own[1] = counts_s, own[2] = alltoallv_s, own[3] = MPI_Wtime() - began_s;
    MPI_Reduce(own, worst, 4, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("keys %llu hash %016llx %s\ntotal_s %.6g counts_s %.6g alltoallv_s %.6g step_s %.6g\n", (unsigned long long)sums[0],
               (unsigned long long)sums[1], any ? "WRONG" : "sorted", worst[0] / repeats, worst[1] / repeats, worst[2] / repeats,
               worst[3] / repeats);
    free(keys);
    MPI_Finalize();
    return any;
}
