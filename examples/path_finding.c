/* Parallel path-finding: which vertex of a directed graph is reached from which, by joins that go on until nothing is new.
 *
 *     mpicc -O2 path_finding.c -o path_finding
 *     mpiexec -n 8 ./path_finding [chain|random|grid|rmat [vertices [repeats [check]]]]
 *
 * T(x,z) <- G(x,z); T(x,z) <- T(x,y), G(y,z). The edges of G lie with the owner of their first vertex, paths with that of
 * their last, so a join is local. Its paths go to their owners by MPI_Alltoallv, after MPI_Alltoall has told how many; only
 * those that were not known are joined next (semi-naive evaluation). Graphs are the same in every run. With `check`, one
 * rank also computes the closure serially, and the program fails where the two differ.
 *
 * Prints how many paths there are, a hash of them that their order does not change, and seconds of one closure by phase,
 * each of the slowest rank; then the blocks of MPI_Alltoallv: mean bytes, the most, and the share of empty ones. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOIN, COUNTS, ALLTOALLV, INSERT, REDUCE, PHASES };

typedef struct {
    uint64_t *path; /* from << 32 | to */
    size_t count, room;
} list;

typedef struct {
    uint64_t *slot; /* a path + 1; 0: free */
    size_t count, room; /* a power of two */
} set;

static int rank, ranks;
static double phase_s[PHASES];
static double sent_bytes, blocks, empty_blocks, largest_bytes;

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

static int owner(uint32_t vertex) { return (int)(mix(vertex + 1) % (unsigned)ranks); }
static uint64_t path_of(uint64_t from, uint64_t to) { return from << 32 | to; }

static void append(list *l, uint64_t path)
{
    if (l->count == l->room) {
        l->room = l->room ? 2 * l->room : 1024;
        l->path = need(realloc(l->path, l->room * sizeof *l->path));
    }
    l->path[l->count++] = path;
}

/* True if `path` was not there before. */
static int insert(set *s, uint64_t path)
{
    if (2 * s->count >= s->room) {
        set larger = {.room = s->room ? 2 * s->room : 4096};
        larger.slot = need(calloc(larger.room, sizeof *larger.slot));
        for (size_t i = 0; i < s->room; i++)
            if (s->slot[i] != 0)
                insert(&larger, s->slot[i] - 1);
        free(s->slot);
        *s = larger;
    }
    size_t at = mix(path) & (s->room - 1);
    while (s->slot[at] != 0 && s->slot[at] != path + 1)
        at = (at + 1) & (s->room - 1);
    if (s->slot[at] != 0)
        return 0;
    s->slot[at] = path + 1;
    s->count++;
    return 1;
}

/* Edges of the graph called `name` with at most `vertices`, the same on every rank. Returns how many vertices it has. */
static uint32_t make_graph(const char *name, uint32_t vertices, list *edges)
{
    uint32_t side = 1, scale = 0;
    uint64_t draw = 1;
    if (strcmp(name, "chain") == 0) {
        for (uint32_t v = 0; v + 1 < vertices; v++)
            append(edges, path_of(v, v + 1));
    } else if (strcmp(name, "random") == 0) { /* degree 1.3: most vertices are on long ways */
        for (uint64_t i = 0; i < (uint64_t)vertices * 13 / 10; i++, draw += 2)
            append(edges, path_of(mix(draw) % vertices, mix(draw + 1) % vertices));
    } else if (strcmp(name, "grid") == 0) { /* to the right and down */
        while ((side + 1) * (side + 1) <= vertices)
            side++;
        vertices = side * side;
        for (uint32_t v = 0; v < vertices; v++) {
            if (v % side + 1 < side)
                append(edges, path_of(v, v + 1));
            if (v + side < vertices)
                append(edges, path_of(v, v + side));
        }
    } else if (strcmp(name, "rmat") == 0) { /* quarters of the matrix by 0.57, 0.19, 0.19, 0.05; three edges for a vertex */
        while ((2u << scale) <= vertices)
            scale++;
        vertices = 1u << scale;
        for (uint64_t i = 0; i < 3 * (uint64_t)vertices; i++) {
            uint64_t from = 0, to = 0;
            for (uint32_t bit = 0; bit < scale; bit++) {
                uint64_t percent = mix(draw++) % 100;
                from = 2 * from + (percent >= 76), to = 2 * to + ((percent >= 57 && percent < 76) || percent >= 95);
            }
            append(edges, path_of(from, to));
        }
    } else {
        if (rank == 0)
            fprintf(stderr, "no graph is called %s: chain, random, grid or rmat\n", name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return vertices;
}

/* This rank's edges by their first vertex: those of v end in to[first[v]] ... to[first[v + 1] - 1]. */
static void own_edges(const list *edges, uint32_t vertices, uint32_t **first, uint32_t **to)
{
    *first = need(calloc((size_t)vertices + 2, sizeof **first));
    *to = need(malloc((edges->count + 1) * sizeof **to));
    for (size_t i = 0; i < edges->count; i++)
        (*first)[(edges->path[i] >> 32) + 2] += owner((uint32_t)(edges->path[i] >> 32)) == rank;
    for (uint32_t v = 0; v < vertices; v++)
        (*first)[v + 2] += (*first)[v + 1];
    for (size_t i = 0; i < edges->count; i++)
        if (owner((uint32_t)(edges->path[i] >> 32)) == rank)
            (*to)[(*first)[(edges->path[i] >> 32) + 1]++] = (uint32_t)edges->path[i];
}

static double lap(int phase, double since_s)
{
    double now_s = MPI_Wtime();
    phase_s[phase] += now_s - since_s;
    return now_s;
}

static void note_blocks(const int *counts)
{
    for (int to = 0; to < ranks; to++) {
        double bytes = 8.0 * counts[to];
        sent_bytes += bytes, blocks++, empty_blocks += counts[to] == 0;
        largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
    }
}

/* The paths of `news`, each longer by an edge, in the order of their owners; counts[r] of them go to rank r. */
static void join(const list *news, const uint32_t *first, const uint32_t *to, list *joined, int *counts, int *at)
{
    memset(counts, 0, sizeof(int) * (size_t)ranks);
    for (size_t i = 0; i < news->count; i++)
        for (uint32_t e = first[(uint32_t)news->path[i]]; e < first[(uint32_t)news->path[i] + 1]; e++)
            counts[owner(to[e])]++;
    size_t total = 0;
    for (int r = 0; r < ranks; total += (size_t)counts[r++])
        at[r] = (int)total;
    if (total > joined->room) {
        joined->room = 2 * total;
        joined->path = need(realloc(joined->path, joined->room * sizeof *joined->path));
    }
    for (size_t i = 0; i < news->count; i++)
        for (uint32_t e = first[(uint32_t)news->path[i]]; e < first[(uint32_t)news->path[i] + 1]; e++)
            joined->path[at[owner(to[e])]++] = path_of(news->path[i] >> 32, to[e]);
    for (int r = 0; r < ranks; r++)
        at[r] -= counts[r];
}

/* All paths into `known`, those that end in this rank's vertices. Returns the number of joins. */
static int closure(const list *edges, const uint32_t *first, const uint32_t *to, set *known)
{
    int *send = need(malloc(4 * sizeof *send * (size_t)ranks)), *send_at = send + ranks, *receive = send + 2 * ranks;
    int *receive_at = send + 3 * ranks, joins = 0;
    list news = {0}, joined = {0}, arrived = {0};
    for (size_t i = 0; i < edges->count; i++)
        if (owner((uint32_t)edges->path[i]) == rank && insert(known, edges->path[i]))
            append(&news, edges->path[i]);
    for (uint64_t found = 1; found > 0; joins++) {
        double now_s = MPI_Wtime();
        join(&news, first, to, &joined, send, send_at);
        now_s = lap(JOIN, now_s);
        MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
        now_s = lap(COUNTS, now_s);
        arrived.count = 0;
        for (int r = 0; r < ranks; arrived.count += (size_t)receive[r++])
            receive_at[r] = (int)arrived.count;
        if (arrived.count > arrived.room) {
            arrived.room = 2 * arrived.count;
            arrived.path = need(realloc(arrived.path, arrived.room * sizeof *arrived.path));
        }
        note_blocks(send);
        now_s = lap(INSERT, now_s);
        MPI_Alltoallv(joined.path, send, send_at, MPI_UINT64_T, arrived.path, receive, receive_at, MPI_UINT64_T, MPI_COMM_WORLD);
        now_s = lap(ALLTOALLV, now_s);
        news.count = 0;
        for (size_t i = 0; i < arrived.count; i++)
            if (insert(known, arrived.path[i]))
                append(&news, arrived.path[i]);
        uint64_t own = news.count;
        now_s = lap(INSERT, now_s);
        MPI_Allreduce(&own, &found, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        lap(REDUCE, now_s);
    }
    free(send), free(news.path), free(joined.path), free(arrived.path);
    return joins;
}

/* Number and hash of all paths by Warshall's algorithm on rows of bits. */
static void serial_closure(const list *edges, uint32_t vertices, uint64_t sums[2])
{
    size_t words = (vertices + 63) / 64;
    uint64_t *row = need(calloc(vertices * words, sizeof *row));
    for (size_t i = 0; i < edges->count; i++)
        row[(edges->path[i] >> 32) * words + (uint32_t)edges->path[i] / 64] |= 1ULL << (edges->path[i] % 64);
    for (uint32_t by = 0; by < vertices; by++)
        for (uint32_t from = 0; from < vertices; from++)
            if (row[from * words + by / 64] >> (by % 64) & 1)
                for (size_t w = 0; w < words; w++)
                    row[from * words + w] |= row[by * words + w];
    sums[0] = sums[1] = 0;
    for (uint32_t from = 0; from < vertices; from++)
        for (uint32_t to = 0; to < vertices; to++)
            if (row[from * words + to / 64] >> (to % 64) & 1)
                sums[0]++, sums[1] += mix(path_of(from, to));
    free(row);
}

/* Rank 0 prints; times are of one closure of `repeats`. */
static void report(int joins, int repeats, double total_s, const uint64_t sums[2])
{
    double own[PHASES + 2] = {total_s}, worst[PHASES + 2], mine[3] = {sent_bytes, blocks, empty_blocks}, all[3];
    memcpy(own + 1, phase_s, sizeof phase_s);
    own[PHASES + 1] = largest_bytes;
    MPI_Reduce(own, worst, PHASES + 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    static const char *const names[] = {"total_s", "join_s", "counts_s", "alltoallv_s", "insert_s", "reduce_s"};
    printf("paths %llu hash %016llx joins %d\n", (unsigned long long)sums[0], (unsigned long long)sums[1], joins);
    for (int i = 0; i <= PHASES; i++)
        printf("%s %.6g ", names[i], worst[i] / repeats);
    printf("mean_bytes %.4g largest_bytes %.0f empty %.3f\n", all[0] / all[1], worst[PHASES + 1], all[2] / all[1]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *name = argc > 1 ? argv[1] : "random";
    int wanted = argc > 2 ? atoi(argv[2]) : 1000, repeats = argc > 3 ? atoi(argv[3]) : 1, joins = 0, wrong = 0;
    if (wanted < 1 || repeats < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    list edges = {0};
    uint32_t vertices = make_graph(name, (uint32_t)wanted, &edges), *first, *to;
    own_edges(&edges, vertices, &first, &to);
    uint64_t own[2] = {0}, sums[2], serial[2];
    double total_s = 0.0;
    for (int i = 0; i < repeats; i++) {
        set known = {0};
        MPI_Barrier(MPI_COMM_WORLD);
        double start_s = MPI_Wtime();
        joins = closure(&edges, first, to, &known);
        total_s += MPI_Wtime() - start_s;
        own[0] = known.count, own[1] = 0;
        for (size_t at = 0; at < known.room; at++)
            own[1] += known.slot[at] != 0 ? mix(known.slot[at] - 1) : 0;
        free(known.slot);
    }
    MPI_Allreduce(own, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    report(joins, repeats, total_s, sums);
    if (argc > 4 && strcmp(argv[4], "check") == 0 && rank == 0) {
        serial_closure(&edges, vertices, serial);
        wrong = memcmp(serial, sums, sizeof sums) != 0;
        printf("serially %llu paths, hash %016llx: %s\n", (unsigned long long)serial[0], (unsigned long long)serial[1],
               wrong ? "WRONG" : "the same");
    }
    free(edges.path), free(first), free(to);
    MPI_Finalize();
    return wrong;
}
