/* Calls every collective in every way that MPI allows and that selection files tend to forget: in place, with user
 * operations that do not commute, irregular counts, no elements at all, each root, every number of ranks up to the
 * job's, and communicators made by duplication and by splitting. Checks each result.
 *
 * Prints "ok N calls" on rank 0, or a line for each wrong result and exits with 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 9000

/* An affine map x -> a*x + b modulo 2^32; composing two of them is associative and does not commute. */
typedef struct {
    unsigned a, b;
} map_t;

static int failures, calls;
static MPI_Datatype map_type;
static MPI_Op compose_op, user_sum_op;
static const int counts[] = { 0, 1, 2, 3, 5, 8, 17, 1000, LARGEST };
#define N_COUNTS ((int) (sizeof(counts) / sizeof(counts[0])))

static void compose(void *in, void *inout, int *len, MPI_Datatype * type)
{
    map_t *left = in, *right = inout;
    (void) type;
    for (int i = 0; i < *len; i++) {
        map_t l = left[i], r = right[i];
        right[i].a = l.a * r.a;
        right[i].b = l.b * r.a + r.b;
    }
}

static void user_sum(void *in, void *inout, int *len, MPI_Datatype * type)
{
    int *a = in, *b = inout;
    (void) type;
    for (int i = 0; i < *len; i++)
        b[i] += a[i];
}

static void check(int good, const char *what, MPI_Comm comm, int count)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    calls++;
    if (!good) {
        failures++;
        printf("wrong result: %s, %d ranks, rank %d, count %d\n", what, size, rank, count);
        fflush(stdout);
    }
}

static int value(int rank, int i)
{
    return rank * 1000003 + i * 7 + 1;
}

static map_t map_of(int rank, int i)
{
    map_t m = { 2u * (unsigned) (rank * 31 + i) + 3u, (unsigned) (rank * 17 + i * 5 + 1) };
    return m;
}

static int equal_ints(const int *a, const int *b, long n)
{
    return n == 0 || memcmp(a, b, (size_t) n * sizeof(int)) == 0;
}

static int *ints(long n)
{
    int *p = malloc((size_t) (n + 1) * sizeof(int));
    if (p == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(p, 0x5a, (size_t) (n + 1) * sizeof(int));
    return p;
}

static void test_bcast(MPI_Comm comm, int rank, int size, int count)
{
    int *buf = ints(count), *want = ints(count);
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < count; i++) {
            want[i] = value(root, i);
            buf[i] = rank == root ? want[i] : -1;
        }
        MPI_Bcast(buf, count, MPI_INT, root, comm);
        check(equal_ints(buf, want, count), "bcast", comm, count);
    }
    free(buf);
    free(want);
}

static void test_allgather(MPI_Comm comm, int rank, int size, int count)
{
    long n = (long) count * size;
    int *in = ints(count), *out = ints(n), *want = ints(n);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            want[(long) r * count + i] = value(r, i);
    memcpy(in, want + (long) rank * count, (size_t) count * sizeof(int));
    MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
    check(equal_ints(out, want, n), "allgather", comm, count);
    memset(out, 0, (size_t) n * sizeof(int));
    memcpy(out + (long) rank * count, in, (size_t) count * sizeof(int));
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, MPI_INT, comm);
    check(equal_ints(out, want, n), "allgather in place", comm, count);
    free(in);
    free(out);
    free(want);
}

/* Block r has (r * 3 + shift) % (count + 1) elements; the displacements leave gaps. */
static void test_allgatherv(MPI_Comm comm, int rank, int size, int count, int shift)
{
    int *blocks = ints(size), *displs = ints(size), total = 0;
    for (int r = 0; r < size; r++) {
        blocks[r] = (r * 3 + shift) % (count + 1);
        displs[r] = total;
        total += blocks[r] + 1;
    }
    int *in = ints(count), *out = ints(total), *want = ints(total);
    for (int i = 0; i < total; i++)
        out[i] = want[i] = -7;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < blocks[r]; i++)
            want[displs[r] + i] = value(r, i);
    memcpy(in, want + displs[rank], (size_t) blocks[rank] * sizeof(int));
    MPI_Allgatherv(in, blocks[rank], MPI_INT, out, blocks, displs, MPI_INT, comm);
    check(equal_ints(out, want, total), "allgatherv", comm, count);
    for (int i = 0; i < total; i++)
        out[i] = -7;
    memcpy(out + displs[rank], in, (size_t) blocks[rank] * sizeof(int));
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, blocks, displs, MPI_INT, comm);
    check(equal_ints(out, want, total), "allgatherv in place", comm, count);
    free(blocks);
    free(displs);
    free(in);
    free(out);
    free(want);
}

static void test_alltoall(MPI_Comm comm, int rank, int size, int count)
{
    long n = (long) count * size;
    int *in = ints(n), *out = ints(n), *want = ints(n);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) {
            in[(long) r * count + i] = value(rank * 64 + r, i);
            want[(long) r * count + i] = value(r * 64 + rank, i);
        }
    MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
    check(equal_ints(out, want, n), "alltoall", comm, count);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, count, MPI_INT, comm);
    check(equal_ints(in, want, n), "alltoall in place", comm, count);
    free(in);
    free(out);
    free(want);
}

static void test_gather_scatter(MPI_Comm comm, int rank, int size, int count)
{
    long n = (long) count * size;
    int *all = ints(n), *want = ints(n), *one = ints(count), *mine = ints(count);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            want[(long) r * count + i] = value(r, i);
    memcpy(mine, want + (long) rank * count, (size_t) count * sizeof(int));
    for (int root = 0; root < size; root++) {
        MPI_Gather(mine, count, MPI_INT, rank == root ? all : NULL, rank == root ? count : 0, MPI_INT, root, comm);
        check(rank != root || equal_ints(all, want, n), "gather", comm, count);
        if (rank == root)
            MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, root, comm);
        else
            MPI_Gather(mine, count, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, comm);
        check(rank != root || equal_ints(all, want, n), "gather in place", comm, count);
        memset(one, 0, (size_t) count * sizeof(int));
        if (rank == root)
            MPI_Scatter(want, count, MPI_INT, one, count, MPI_INT, root, comm);
        else
            MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, one, count, MPI_INT, root, comm);
        check(equal_ints(one, mine, count), "scatter", comm, count);
        if (rank == root)
            MPI_Scatter(want, count, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm);
        else
            MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, one, count, MPI_INT, root, comm);
        check(equal_ints(one, mine, count), "scatter in place", comm, count);
    }
    free(all);
    free(want);
    free(one);
    free(mine);
}

static void test_sums(MPI_Comm comm, int rank, int size, int count, MPI_Op op)
{
    int *in = ints(count), *out = ints(count), *want = ints(count);
    for (int i = 0; i < count; i++) {
        unsigned sum = 0;
        for (int r = 0; r < size; r++)
            sum += (unsigned) value(r, i);
        want[i] = (int) sum;
        in[i] = value(rank, i);
    }
    MPI_Allreduce(in, out, count, MPI_INT, op, comm);
    check(equal_ints(out, want, count), "allreduce", comm, count);
    memcpy(out, in, (size_t) count * sizeof(int));
    MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, op, comm);
    check(equal_ints(out, want, count), "allreduce in place", comm, count);
    for (int root = 0; root < size; root++) {
        MPI_Reduce(in, rank == root ? out : NULL, count, MPI_INT, op, root, comm);
        check(rank != root || equal_ints(out, want, count), "reduce", comm, count);
        memcpy(out, in, (size_t) count * sizeof(int));
        MPI_Reduce(rank == root ? MPI_IN_PLACE : in, rank == root ? out : NULL, count, MPI_INT, op, root, comm);
        check(rank != root || equal_ints(out, want, count), "reduce in place", comm, count);
    }
    free(in);
    free(out);
    free(want);
}

static void test_scattered_sums(MPI_Comm comm, int rank, int size, int count, MPI_Op op, int shift)
{
    int *blocks = ints(size), total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        blocks[r] = shift < 0 ? count : (r * 3 + shift) % (count + 1);
        before += r < rank ? blocks[r] : 0;
        total += blocks[r];
    }
    int *in = ints(total), *out = ints(total), *want = ints(total);
    for (int i = 0; i < total; i++) {
        unsigned sum = 0;
        for (int r = 0; r < size; r++)
            sum += (unsigned) value(r, i);
        want[i] = (int) sum;
        in[i] = value(rank, i);
    }
    MPI_Reduce_scatter(in, out, blocks, MPI_INT, op, comm);
    check(equal_ints(out, want + before, blocks[rank]), "reduce_scatter", comm, count);
    memcpy(out, in, (size_t) total * sizeof(int));
    MPI_Reduce_scatter(MPI_IN_PLACE, out, blocks, MPI_INT, op, comm);
    check(equal_ints(out, want + before, blocks[rank]), "reduce_scatter in place", comm, count);
    if (shift < 0) {
        MPI_Reduce_scatter_block(in, out, count, MPI_INT, op, comm);
        check(equal_ints(out, want + before, count), "reduce_scatter_block", comm, count);
        memcpy(out, in, (size_t) total * sizeof(int));
        MPI_Reduce_scatter_block(MPI_IN_PLACE, out, count, MPI_INT, op, comm);
        check(equal_ints(out, want + before, count), "reduce_scatter_block in place", comm, count);
    }
    free(blocks);
    free(in);
    free(out);
    free(want);
}

static void test_composed(MPI_Comm comm, int rank, int size, int count, int shift)
{
    int *blocks = ints(size), total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        blocks[r] = shift < 0 ? count : (r * 3 + shift) % (count + 1);
        before += r < rank ? blocks[r] : 0;
        total += blocks[r];
    }
    size_t bytes = (size_t) (total + 1) * sizeof(map_t);
    map_t *in = malloc(bytes), *out = malloc(bytes), *want = malloc(bytes);
    if (in == NULL || out == NULL || want == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < total; i++) {
        want[i] = map_of(0, i);
        for (int r = 1, one = 1; r < size; r++) {
            map_t left = want[i];
            want[i] = map_of(r, i);
            compose(&left, &want[i], &one, NULL);
        }
        in[i] = map_of(rank, i);
    }
    size_t mine = (size_t) blocks[rank] * sizeof(map_t);
    MPI_Reduce_scatter(in, out, blocks, map_type, compose_op, comm);
    check(memcmp(out, want + before, mine) == 0, "reduce_scatter of maps", comm, count);
    memcpy(out, in, bytes);
    MPI_Reduce_scatter(MPI_IN_PLACE, out, blocks, map_type, compose_op, comm);
    check(memcmp(out, want + before, mine) == 0, "reduce_scatter of maps in place", comm, count);
    if (shift < 0) {
        MPI_Reduce_scatter_block(in, out, count, map_type, compose_op, comm);
        check(memcmp(out, want + before, mine) == 0, "reduce_scatter_block of maps", comm, count);
    }
    MPI_Allreduce(in, out, total, map_type, compose_op, comm);
    check(memcmp(out, want, (size_t) total * sizeof(map_t)) == 0, "allreduce of maps", comm, total);
    memcpy(out, in, bytes);
    MPI_Allreduce(MPI_IN_PLACE, out, total, map_type, compose_op, comm);
    check(memcmp(out, want, (size_t) total * sizeof(map_t)) == 0, "allreduce of maps in place", comm, total);
    for (int root = 0; root < size; root++) {
        MPI_Reduce(in, out, total, map_type, compose_op, root, comm);
        check(rank != root || memcmp(out, want, (size_t) total * sizeof(map_t)) == 0, "reduce of maps", comm, total);
    }
    free(blocks);
    free(in);
    free(out);
    free(want);
}

static void test_all(MPI_Comm comm, int largest)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int c = 0; c < N_COUNTS && counts[c] <= largest; c++) {
        int count = counts[c];
        MPI_Barrier(comm);
        test_bcast(comm, rank, size, count);
        test_allgather(comm, rank, size, count);
        test_alltoall(comm, rank, size, count);
        test_gather_scatter(comm, rank, size, count);
        test_sums(comm, rank, size, count, MPI_SUM);
        test_sums(comm, rank, size, count, user_sum_op);
        for (int shift = -1; shift < 2; shift++) {
            test_scattered_sums(comm, rank, size, count, MPI_SUM, shift);
            test_scattered_sums(comm, rank, size, count, user_sum_op, shift);
            test_composed(comm, rank, size, count, shift);
            test_allgatherv(comm, rank, size, count, shift + 1);
        }
    }
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    int provided, rank, size, total, thread_level = argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE;
    int largest = argc > 2 ? atoi(argv[2]) : LARGEST;
    MPI_Init_thread(&argc, &argv, thread_level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &map_type);
    MPI_Type_commit(&map_type);
    MPI_Op_create(compose, 0, &compose_op);
    MPI_Op_create(user_sum, 1, &user_sum_op);
    test_all(MPI_COMM_WORLD, largest);
    for (int ranks = 1; ranks < size; ranks++) {
        MPI_Comm comm;
        /* Backwards, so that the ranks of a node are not in the job's order. */
        MPI_Comm_split(MPI_COMM_WORLD, rank < ranks ? 0 : MPI_UNDEFINED, -rank, &comm);
        if (comm != MPI_COMM_NULL) {
            test_all(comm, largest);
            MPI_Comm_free(&comm);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    test_all(twin, 8);
    MPI_Comm_free(&twin);
    test_all(MPI_COMM_SELF, 8);
    MPI_Op_free(&compose_op);
    MPI_Op_free(&user_sum_op);
    MPI_Type_free(&map_type);
    MPI_Reduce(&failures, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && total == 0)
        printf("ok %d calls\n", calls);
    MPI_Finalize();
    return failures != 0;
}
