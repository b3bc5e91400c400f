/* Links that carry one message at a time, and the order of what happens on them. */
#include "cluster.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    double time_s;
    uint64_t order; /* of equal times, the first that was asked for */
    ct_message *message;
    int hop;
} ct__event;

static struct {
    ct_network kind;
    int ppn, nodes, apart;
    double *free_s; /* of each link, from when it is free */
    ct__event *heap;
    size_t count, room;
    uint64_t order;
} ct__net;

bool ct_network_make(const char *text, int nodes, int ppn)
{
    char routes[32], speeds[32];
    int apart = 1, read = sscanf(text, "%31[^,],%31[^,],%d", routes, speeds, &apart);
    const ct_network *ways = read >= 1 ? ct_network_find(routes) : NULL, *speed = read >= 2 ? ct_network_find(speeds) : ways;
    if (ways == NULL || speed == NULL || apart < 1)
        return false;
    ct__net.kind = *speed, ct__net.kind.links = ways->links, ct__net.kind.route = ways->route;
    ct__net.ppn = ppn, ct__net.nodes = nodes * apart, ct__net.apart = apart;
    ct__net.free_s = calloc((size_t)ways->links(ct__net.nodes), sizeof(double));
    return true;
}

double ct_network_message_s(void) { return ct__net.kind.message_s; }

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
    const ct_network *kind = &ct__net.kind;
    int from = m->from / ct__net.ppn * ct__net.apart, to = m->to / ct__net.ppn * ct__net.apart, links[CT_ROUTE_MOST];
    if (from == to) {
        ct__arrive(m, event.time_s + kind->node_s + m->bytes / kind->node_bytes_per_s, arrived);
        return true;
    }
    int count = kind->route(ct__net.nodes, from, to, links);
    double *free_s = &ct__net.free_s[links[event.hop]], taken_s = m->bytes / kind->link_bytes_per_s;
    double start_s = *free_s > event.time_s ? *free_s : event.time_s;
    *free_s = start_s + taken_s;
    if (event.hop + 1 < count)
        ct__push(start_s + kind->link_s, m, event.hop + 1);
    else
        ct__arrive(m, start_s + kind->link_s + taken_s, arrived);
    return true;
}
