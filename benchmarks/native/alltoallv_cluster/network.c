/* Links that carry one message at a time, and the order of what happens on them. */
#include "cluster.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const double CT__LINK_BYTES_PER_S = 12.5e9, CT__LINK_S = 300e-9, CT__NODE_BYTES_PER_S = 8e9, CT__NODE_S = 200e-9;
enum { CT__LEAF = 16, CT__UP = 8 };

typedef struct {
    double time_s;
    uint64_t order; /* of equal times, the first that was asked for */
    ct_message *message;
    int hop;
} ct__event;

static struct {
    int ppn, nodes;
    double *free_s; /* of each link, from when it is free */
    ct__event *heap;
    size_t count, room;
    uint64_t order;
} ct__net;

void ct_network_make(int nodes, int ppn)
{
    int leaves = (nodes + CT__LEAF - 1) / CT__LEAF;
    ct__net.ppn = ppn, ct__net.nodes = nodes;
    ct__net.free_s = calloc((size_t)(2 * nodes + 2 * leaves * CT__UP), sizeof(double));
}

static bool ct__before(const ct__event *a, const ct__event *b)
{
    return a->time_s < b->time_s || (a->time_s == b->time_s && a->order < b->order);
}

static void ct__push(double time_s, ct_message *message, int hop)
{
    if (ct__net.count == ct__net.room) {
        ct__net.room = ct__net.room ? 2 * ct__net.room : 1 << 16;
        ct__net.heap = realloc(ct__net.heap, ct__net.room * sizeof(ct__event));
        if (ct__net.heap == NULL) {
            fprintf(stderr, "sweep: no memory for %zu events\n", ct__net.room);
            exit(1);
        }
    }
    ct__event event = {.time_s = time_s, .order = ct__net.order++, .message = message, .hop = hop};
    size_t at = ct__net.count++;
    for (; at > 0 && ct__before(&event, &ct__net.heap[(at - 1) / 2]); at = (at - 1) / 2)
        ct__net.heap[at] = ct__net.heap[(at - 1) / 2];
    ct__net.heap[at] = event;
}

static ct__event ct__pop(void)
{
    ct__event *heap = ct__net.heap, top = heap[0], last = heap[--ct__net.count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < ct__net.count) {
        if (child + 1 < ct__net.count && ct__before(&heap[child + 1], &heap[child]))
            child++;
        if (!ct__before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* The links from node to node, in order: cards are 0 to 2 nodes - 1, then those of the leaves. Returns how many. */
static int ct__route(int from, int to, int links[4])
{
    int count = 0, first = 2 * ct__net.nodes;
    links[count++] = from;
    if (from / CT__LEAF != to / CT__LEAF) {
        links[count++] = first + (from / CT__LEAF * 2 * CT__UP) + to % CT__UP;
        links[count++] = first + (to / CT__LEAF * 2 * CT__UP) + CT__UP + to % CT__UP;
    }
    links[count++] = ct__net.nodes + to;
    return count;
}

void ct_network_send(ct_message *message) { ct__push(message->time_s, message, 0); }

static void ct__arrive(ct_message *m, double time_s, ct_message **arrived)
{
    m->time_s = time_s;
    *arrived = m;
}

bool ct_network_step(ct_message **arrived)
{
    *arrived = NULL;
    if (ct__net.count == 0)
        return false;
    ct__event event = ct__pop();
    ct_message *m = event.message;
    int from = m->from / ct__net.ppn, to = m->to / ct__net.ppn, links[4];
    if (from == to) {
        ct__arrive(m, event.time_s + CT__NODE_S + m->bytes / CT__NODE_BYTES_PER_S, arrived);
        return true;
    }
    int count = ct__route(from, to, links);
    double *free_s = &ct__net.free_s[links[event.hop]], taken_s = m->bytes / CT__LINK_BYTES_PER_S;
    double start_s = *free_s > event.time_s ? *free_s : event.time_s;
    *free_s = start_s + taken_s;
    if (event.hop + 1 < count)
        ct__push(start_s + CT__LINK_S, m, event.hop + 1);
    else
        ct__arrive(m, start_s + CT__LINK_S + taken_s, arrived);
    return true;
}
