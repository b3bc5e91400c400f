/* What the programs on graphs share: graphs that are the same in every run, the owner of a vertex, lists of pairs of vertices, and
 * what is printed of the time. */
#ifndef GRAPH_H
#define GRAPH_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    enum { CHAIN, RANDOM, GRID, RMAT } kind;
    uint32_t vertices, side, scale; /* side: of a grid; scale: R-MAT has 2^scale vertices */
    uint64_t edges;
} graph;

typedef struct {
    uint64_t *path; /* from << 32 | to */
    size_t count, room;
} list;

enum { COMPUTE, COUNTS, ALLTOALLV, INSERT, REDUCE, PHASES };

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

/* The graph called `name` with at most so many vertices; a random graph has `random_tenths` tenths of an edge for each, R-MAT
 * `rmat_edges`. */
static graph make_graph(const char *name, int vertices, int random_tenths, int rmat_edges)
{
    static const char *const names[] = {"chain", "random", "grid", "rmat"};
    graph g = {.vertices = (uint32_t)vertices, .side = 1};
    while (g.kind <= RMAT && strcmp(names[g.kind], name) != 0)
        g.kind++;
    if (vertices < 1 || g.kind > RMAT) {
        if (rank == 0)
            fprintf(stderr, "no graph is called %s and has %d vertices: give chain, random, grid or rmat, and 1 or more\n", name, vertices);
        MPI_Barrier(MPI_COMM_WORLD); /* or another rank ends the job before it is said */
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (g.kind == CHAIN)
        g.edges = g.vertices - 1;
    if (g.kind == RANDOM)
        g.edges = (uint64_t)g.vertices * (uint64_t)random_tenths / 10;
    if (g.kind == GRID) { /* to the right and down */
        while ((g.side + 1) * (g.side + 1) <= g.vertices)
            g.side++;
        g.vertices = g.side * g.side;
        g.edges = 2 * (uint64_t)g.side * (g.side - 1);
    }
    if (g.kind == RMAT) {
        while ((2u << g.scale) <= g.vertices)
            g.scale++;
        g.vertices = 1u << g.scale;
        g.edges = (uint64_t)g.vertices * (uint64_t)rmat_edges;
    }
    return g;
}

/* Edge `i` of the graph. */
static uint64_t edge(const graph *g, uint64_t i)
{
    if (g->kind == CHAIN)
        return path_of(i, i + 1);
    if (g->kind == RANDOM)
        return path_of(mix(2 * i + 1) % g->vertices, mix(2 * i + 2) % g->vertices);
    if (g->kind == GRID) {
        uint64_t half = g->edges / 2, from = i < half ? i / (g->side - 1) * g->side + i % (g->side - 1) : i - half;
        return path_of(from, from + (i < half ? 1 : g->side));
    }
    uint64_t from = 0, to = 0; /* quarters of the matrix by 0.57, 0.19, 0.19, 0.05 */
    for (uint32_t bit = 0; bit < g->scale; bit++) {
        uint64_t percent = mix(i * g->scale + bit + 1) % 100;
        from = 2 * from + (percent >= 76), to = 2 * to + ((percent >= 57 && percent < 76) || percent >= 95);
    }
    return path_of(from, to);
}

static double lap(int phase, double since_s)
{
    double now_s = MPI_Wtime();
    phase_s[phase] += now_s - since_s;
    return now_s;
}

/* `counts`: elements of `bytes` that go to each rank. */
static void note_blocks(const int *counts, double bytes)
{
    for (int to = 0; to < ranks; to++) {
        sent_bytes += bytes * counts[to], blocks++, empty_blocks += counts[to] == 0;
        largest_bytes = bytes * counts[to] > largest_bytes ? bytes * counts[to] : largest_bytes;
    }
}

/* Rank 0 prints seconds, each of the slowest rank and of one of `repeats`, of the phases that have a name; then the blocks. */
static void report(const char *const names[PHASES], int repeats, double total_s)
{
    double own[PHASES + 2] = {total_s}, worst[PHASES + 2], mine[3] = {sent_bytes, blocks, empty_blocks}, all[3];
    memcpy(own + 1, phase_s, sizeof phase_s);
    own[PHASES + 1] = largest_bytes;
    MPI_Reduce(own, worst, PHASES + 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("total_s %.6g ", worst[0] / repeats);
    for (int i = 0; i < PHASES; i++)
        if (names[i] != NULL)
            printf("%s %.6g ", names[i], worst[i + 1] / repeats);
    printf("mean_bytes %.4g largest_bytes %.0f empty %.3f\n", all[0] / all[1], worst[PHASES + 1], all[2] / all[1]);
}

#endif
