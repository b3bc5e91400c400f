/* Parallel path-finding: which vertex of a directed graph is reached from which, by joins that go on until nothing is new.
 *
 *     mpicc -O2 path_finding.c -o path_finding      with graph.h beside it
 *     mpiexec -n 8 ./path_finding [chain|random|grid|rmat [vertices [repeats [check]]]]
 *
 * T(x,z) <- G(x,z); T(x,z) <- T(x,y), G(y,z). The edges of G lie with the owner of their first vertex, paths with that of
 * their last, so a join is local. Its paths go to their owners by MPI_Alltoallv, after MPI_Alltoall has told how many; only
 * those that were not known are joined next (semi-naive evaluation). Graphs are the same in every run. With `check`, one
 * rank also computes the closure serially, and the program fails where the two differ.
 *
 * Prints how many paths there are, a hash of them that their order does not change, and seconds of one closure by phase,
 * each of the slowest rank; then the blocks of MPI_Alltoallv: mean bytes, the most, and the share of empty ones. */
#include "graph.h"

typedef struct {
    uint64_t *slot; /* a path + 1; 0: free */
    size_t count, room; /* a power of two */
} set;

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
        now_s = lap(COMPUTE, now_s);
        MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
        now_s = lap(COUNTS, now_s);
        arrived.count = 0;
        for (int r = 0; r < ranks; arrived.count += (size_t)receive[r++])
            receive_at[r] = (int)arrived.count;
        if (arrived.count > arrived.room) {
            arrived.room = 2 * arrived.count;
            arrived.path = need(realloc(arrived.path, arrived.room * sizeof *arrived.path));
        }
        note_blocks(send, sizeof(uint64_t));
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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *name = argc > 1 ? argv[1] : "random";
    int vertices = argc > 2 ? atoi(argv[2]) : 1000, repeats = argc > 3 ? atoi(argv[3]) : 1, joins = 0, wrong = 0;
    if (repeats < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    graph g = make_graph(name, vertices, 13, 3); /* random: degree 1.3, most vertices are on long ways */
    list edges = {0};
    for (uint64_t i = 0; i < g.edges; i++)
        append(&edges, edge(&g, i));
    uint32_t *first, *to;
    own_edges(&edges, g.vertices, &first, &to);
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
    if (rank == 0)
        printf("paths %llu hash %016llx joins %d\n", (unsigned long long)sums[0], (unsigned long long)sums[1], joins);
    static const char *const phases[] = {"join_s", "counts_s", "alltoallv_s", "insert_s", "reduce_s"};
    report(phases, repeats, total_s);
    if (argc > 4 && strcmp(argv[4], "check") == 0 && rank == 0) {
        serial_closure(&edges, g.vertices, serial);
        wrong = memcmp(serial, sums, sizeof sums) != 0;
        printf("serially %llu paths, hash %016llx: %s\n", (unsigned long long)serial[0], (unsigned long long)serial[1],
               wrong ? "WRONG" : "the same");
    }
    free(edges.path), free(first), free(to);
    MPI_Finalize();
    return wrong;
}
