/* Core numbers of an undirected graph: that of a vertex is the largest k for which it is in a part of the graph where every vertex
 * has k neighbours or more. Graph mining finds communities and spam by them.
 *
 *     mpicc -O2 k_core.c -o k_core      with graph.h beside it
 *     mpiexec -n 8 ./k_core [chain|random|grid|rmat [vertices [repeats [check]]]]
 *
 * Every vertex begins with its degree. In each step it becomes the h-index of its neighbours' numbers: the largest h such that h of
 * them are h or more. When no number changes, which is asked in every fourth step, they are the core numbers (Lü, Zhou, Zhang and
 * Stanley, Nature Communications 7, 10168, 2016). Vertices lie with their owners. In each step a rank sends the number of a vertex once
 * to every rank that owns neighbours of it, by MPI_Alltoallv; who needs what does not change. With `check`, one rank also takes
 * vertices away serially, fewest neighbours first, and the program fails where the numbers differ.
 *
 * Prints the largest core number, a hash of all, and how many steps there were; then what path_finding.c prints. */
#include "graph.h"

enum { ASKED = 4 }; /* of so many steps, one asks whether a number changed */

/* A rank's vertices are numbered from 0 in ascending order; the neighbours of v are at[first[v]] ... at[first[v + 1] - 1] in what
 * arrives. Vertices without neighbours are left out: their number is 0. */
typedef struct {
    uint32_t vertices, *vertex, *first, *at;
    int *send, *send_at, *receive, *receive_at; /* numbers to and from each rank */
    uint32_t *sent;                             /* whose number is sent, rank by rank */
    int sends, receives;
} part;

static int ascending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Sorted, and each only once. */
static void sort_set(list *l)
{
    size_t kept = 0;
    if (l->count > 0)
        qsort(l->path, l->count, sizeof *l->path, ascending);
    for (size_t i = 0; i < l->count; i++)
        if (kept == 0 || l->path[kept - 1] != l->path[i])
            l->path[kept++] = l->path[i];
    l->count = kept;
}

static void begin_at(const int *counts, int *at, int *total)
{
    *total = 0;
    for (int r = 0; r < ranks; *total += counts[r++])
        at[r] = *total;
}

/* Both directions of each edge from first to last, without loops, as a set. */
static list both_ways(const graph *g, uint64_t first, uint64_t last)
{
    list ends = {0};
    for (uint64_t i = first; i < last; i++) {
        uint64_t path = edge(g, i), from = path >> 32, to = (uint32_t)path;
        if (from != to)
            append(&ends, path), append(&ends, path_of(to, from));
    }
    sort_set(&ends);
    return ends;
}

/* Every rank draws a share of the edges, and sends each end to the owner of its vertex. */
static list own_ends(const graph *g, part *p)
{
    uint64_t all = g->edges, me = (uint64_t)rank, n = (uint64_t)ranks;
    list drawn = both_ways(g, all / n * me + all % n * me / n, all / n * (me + 1) + all % n * (me + 1) / n), own = {0};
    uint64_t *sorted = need(malloc((drawn.count + 1) * sizeof *sorted));
    memset(p->send, 0, sizeof(int) * (size_t)ranks);
    for (size_t i = 0; i < drawn.count; i++)
        p->send[owner((uint32_t)(drawn.path[i] >> 32))]++;
    begin_at(p->send, p->send_at, &p->sends);
    for (size_t i = 0; i < drawn.count; i++)
        sorted[p->send_at[owner((uint32_t)(drawn.path[i] >> 32))]++] = drawn.path[i];
    begin_at(p->send, p->send_at, &p->sends);
    MPI_Alltoall(p->send, 1, MPI_INT, p->receive, 1, MPI_INT, MPI_COMM_WORLD);
    begin_at(p->receive, p->receive_at, &p->receives);
    own.count = own.room = (size_t)p->receives;
    own.path = need(malloc((own.room + 1) * sizeof *own.path));
    MPI_Alltoallv(sorted, p->send, p->send_at, MPI_UINT64_T, own.path, p->receive, p->receive_at, MPI_UINT64_T, MPI_COMM_WORLD);
    sort_set(&own);
    free(drawn.path), free(sorted);
    return own;
}

static size_t find(const list *sorted, uint64_t path)
{
    const uint64_t *at = bsearch(&path, sorted->path, sorted->count, sizeof path, ascending);
    return (size_t)(at - sorted->path);
}

/* What a rank sends to another, its vertices with neighbours there, is what the other one needs: both have the edge. Either list is
 * in the order of the vertices. */
static void make_part(const list *ends, part *p)
{
    list to_rank = {0}, needed = {0};
    p->vertex = need(malloc((ends->count + 1) * sizeof *p->vertex));
    p->first = need(malloc((ends->count + 1) * sizeof *p->first));
    p->at = need(malloc((ends->count + 1) * sizeof *p->at));
    for (size_t i = 0; i < ends->count; i++) {
        uint32_t from = (uint32_t)(ends->path[i] >> 32), to = (uint32_t)ends->path[i];
        if (p->vertices == 0 || p->vertex[p->vertices - 1] != from)
            p->vertex[p->vertices] = from, p->first[p->vertices++] = (uint32_t)i;
        append(&to_rank, path_of((uint64_t)owner(to), p->vertices - 1));
        append(&needed, path_of((uint64_t)owner(to), to));
    }
    p->first[p->vertices] = (uint32_t)ends->count;
    sort_set(&to_rank), sort_set(&needed);
    memset(p->send, 0, sizeof(int) * (size_t)ranks), memset(p->receive, 0, sizeof(int) * (size_t)ranks);
    p->sent = need(malloc((to_rank.count + 1) * sizeof *p->sent));
    for (size_t i = 0; i < to_rank.count; i++)
        p->sent[i] = (uint32_t)to_rank.path[i], p->send[to_rank.path[i] >> 32]++;
    for (size_t i = 0; i < needed.count; i++)
        p->receive[needed.path[i] >> 32]++;
    for (size_t i = 0; i < ends->count; i++) {
        uint32_t to = (uint32_t)ends->path[i];
        p->at[i] = (uint32_t)find(&needed, path_of((uint64_t)owner(to), to));
    }
    begin_at(p->send, p->send_at, &p->sends), begin_at(p->receive, p->receive_at, &p->receives);
    free(to_rank.path), free(needed.path);
}

/* The largest h up to `most` such that h of the neighbours have h or more; `room` for most + 1 counts. */
static uint32_t h_index(const uint32_t *at, uint32_t degree, const uint32_t *arrived, uint32_t most, uint32_t *room)
{
    memset(room, 0, (most + 1) * sizeof *room);
    for (uint32_t i = 0; i < degree; i++)
        room[arrived[at[i]] < most ? arrived[at[i]] : most]++;
    for (uint32_t have = 0; most > 0 && (have += room[most]) < most;)
        most--;
    return most;
}

/* The core numbers of this rank's vertices into `core`. Returns the number of steps. */
static int decompose(const part *p, uint32_t *core, uint32_t *out, uint32_t *arrived, uint32_t *room)
{
    int steps = 0;
    for (uint32_t v = 0; v < p->vertices; v++)
        core[v] = p->first[v + 1] - p->first[v];
    for (uint64_t changed = 1; changed > 0;) {
        double now_s = MPI_Wtime();
        for (int i = 0; i < p->sends; i++)
            out[i] = core[p->sent[i]];
        note_blocks(p->send, sizeof *out);
        now_s = lap(COMPUTE, now_s);
        MPI_Alltoallv(out, p->send, p->send_at, MPI_UINT32_T, arrived, p->receive, p->receive_at, MPI_UINT32_T, MPI_COMM_WORLD);
        now_s = lap(ALLTOALLV, now_s);
        uint64_t own = 0;
        for (uint32_t v = 0; v < p->vertices; v++) {
            uint32_t h = h_index(p->at + p->first[v], p->first[v + 1] - p->first[v], arrived, core[v], room);
            own += h != core[v], core[v] = h;
        }
        now_s = lap(COMPUTE, now_s);
        if (++steps % ASKED == 0)
            MPI_Allreduce(&own, &changed, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        lap(REDUCE, now_s);
    }
    return steps;
}

/* A hash of the core numbers: of k = 1, 2 and so on, what has fewer than k neighbours left goes, until nothing does. */
static uint64_t serial_cores(const graph *g)
{
    list ends = both_ways(g, 0, g->edges), gone = {0};
    uint32_t *first = need(calloc((size_t)g->vertices + 1, sizeof *first)), *left = need(calloc(g->vertices, sizeof *left));
    uint64_t hash = 0;
    for (size_t i = 0; i < ends.count; i++)
        first[(ends.path[i] >> 32) + 1]++, left[ends.path[i] >> 32]++;
    for (uint32_t v = 0; v < g->vertices; v++)
        first[v + 1] += first[v];
    for (uint32_t k = 1; gone.count < g->vertices; k++) {
        for (uint32_t v = 0; v < g->vertices; v++)
            if (left[v] != UINT32_MAX && left[v] < k)
                append(&gone, path_of(k - 1, v)), left[v] = UINT32_MAX;
        for (size_t i = 0; i < gone.count; i++)
            for (uint32_t v = (uint32_t)gone.path[i], e = first[v]; gone.path[i] >> 32 == k - 1 && e < first[v + 1]; e++) {
                uint32_t to = (uint32_t)ends.path[e];
                if (left[to] != UINT32_MAX && --left[to] < k)
                    append(&gone, path_of(k - 1, to)), left[to] = UINT32_MAX;
            }
    }
    for (size_t i = 0; i < gone.count; i++)
        hash += gone.path[i] >> 32 ? mix(gone.path[i]) : 0;
    free(ends.path), free(gone.path), free(first), free(left);
    return hash;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *name = argc > 1 ? argv[1] : "random";
    int vertices = argc > 2 ? atoi(argv[2]) : 4096, repeats = argc > 3 ? atoi(argv[3]) : 1, steps = 0, wrong = 0;
    if (repeats < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    graph g = make_graph(name, vertices, 20, 16); /* R-MAT as in Graph500 */
    part p = {.send = need(malloc(4 * sizeof(int) * (size_t)ranks))};
    p.send_at = p.send + ranks, p.receive = p.send + 2 * ranks, p.receive_at = p.send + 3 * ranks;
    list ends = own_ends(&g, &p);
    make_part(&ends, &p);
    uint32_t *core = need(malloc(4 * (ends.count + 1) * sizeof *core)), *out = core + ends.count + 1;
    uint32_t *arrived = out + ends.count + 1, *room = arrived + ends.count + 1;
    double total_s = 0.0;
    for (int i = 0; i < repeats; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start_s = MPI_Wtime();
        steps = decompose(&p, core, out, arrived, room);
        total_s += MPI_Wtime() - start_s;
    }
    uint64_t own[2] = {0}, hash, most;
    for (uint32_t v = 0; v < p.vertices; v++)
        own[0] += mix(path_of(core[v], p.vertex[v])), own[1] = core[v] > own[1] ? core[v] : own[1];
    MPI_Allreduce(&own[0], &hash, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&own[1], &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("core %llu hash %016llx steps %d\n", (unsigned long long)most, (unsigned long long)hash, steps);
    static const char *const phases[PHASES] = {"index_s", NULL, "alltoallv_s", NULL, "reduce_s"};
    report(phases, repeats, total_s);
    if (argc > 4 && strcmp(argv[4], "check") == 0 && rank == 0) {
        uint64_t serial = serial_cores(&g);
        wrong = serial != hash;
        printf("serially, hash %016llx: %s\n", (unsigned long long)serial, wrong ? "WRONG" : "the same");
    }
    free(ends.path), free(core), free(p.vertex), free(p.first), free(p.at), free(p.sent), free(p.send);
    MPI_Finalize();
    return wrong;
}
