/* Three networks: which links a message takes, each by one path that its two ends name. */
#include "cluster.h"

#include <string.h>

/* ---- fat tree: leaf switches of 16 nodes, each with half as many links upwards ---- */
enum { CT__LEAF = 16, CT__UP = 8 };

static int ct__fat_tree_links(int nodes) { return 2 * nodes + 2 * CT__UP * ((nodes + CT__LEAF - 1) / CT__LEAF); }

/* Cards are 0 to 2 nodes - 1, out and in; then those of the leaves, the destination names which. */
static int ct__fat_tree_route(int nodes, int from, int to, int links[CT_ROUTE_MOST])
{
    int count = 0, first = 2 * nodes;
    links[count++] = from;
    if (from / CT__LEAF != to / CT__LEAF) {
        links[count++] = first + (from / CT__LEAF * 2 * CT__UP) + to % CT__UP;
        links[count++] = first + (to / CT__LEAF * 2 * CT__UP) + CT__UP + to % CT__UP;
    }
    links[count++] = nodes + to;
    return count;
}

/* ---- dragonfly: groups of 8 routers with 4 nodes each, all routers of a group linked, 4 links of a router to other groups ---- */
enum { CT__AT_ROUTER = 4, CT__ROUTERS = 8, CT__PORTS = 4, CT__OUT = CT__ROUTERS * CT__PORTS };

static int ct__groups(int nodes) { return (nodes + CT__AT_ROUTER * CT__ROUTERS - 1) / (CT__AT_ROUTER * CT__ROUTERS); }
static int ct__dragonfly_links(int nodes) { return 2 * nodes + ct__groups(nodes) * (CT__ROUTERS * CT__ROUTERS + CT__OUT); }

/* The number among the ports of group `from` of its link to group `to`, the `which`-th of several: ports are dealt out in turn. */
static int ct__port(int from, int to, int groups, int which)
{
    int others = groups - 1, first = (to - from - 1 + groups) % groups;
    int several = (CT__OUT - first + others - 1) / others;
    return first + others * (which % several);
}

/* Minimal: to the router that has the link, over it, to the router of the destination, which names the link. */
static int ct__dragonfly_route(int nodes, int from, int to, int links[CT_ROUTE_MOST])
{
    int count = 0, groups = ct__groups(nodes), local = 2 * nodes, global = local + groups * CT__ROUTERS * CT__ROUTERS;
    int here = from / CT__AT_ROUTER, there = to / CT__AT_ROUTER;
    int group = here / CT__ROUTERS, other = there / CT__ROUTERS;
    links[count++] = from;
    if (group != other) {
        int out = ct__port(group, other, groups, to), in = ct__port(other, group, groups, to);
        int gate = group * CT__ROUTERS + out / CT__PORTS;
        if (gate != here)
            links[count++] = local + here * CT__ROUTERS + gate % CT__ROUTERS;
        links[count++] = global + group * CT__OUT + out;
        here = other * CT__ROUTERS + in / CT__PORTS;
    }
    if (here != there)
        links[count++] = local + here * CT__ROUTERS + there % CT__ROUTERS;
    links[count++] = nodes + to;
    return count;
}

/* ---- torus: three dimensions, as equal as powers of two allow; a node has six links and no other ---- */
enum { CT__DIMENSIONS = 3 };

static void ct__sides(int nodes, int sides[CT__DIMENSIONS])
{
    for (int d = 0; d < CT__DIMENSIONS; d++)
        sides[d] = 1;
    for (int d = 0; sides[0] * sides[1] * sides[2] < nodes; d = (d + 1) % CT__DIMENSIONS)
        sides[d] *= 2;
}

static int ct__torus_links(int nodes)
{
    int sides[CT__DIMENSIONS];
    ct__sides(nodes, sides);
    return 2 * CT__DIMENSIONS * sides[0] * sides[1] * sides[2];
}

/* One dimension after the other, the shorter way round. */
static int ct__torus_route(int nodes, int from, int to, int links[CT_ROUTE_MOST])
{
    int sides[CT__DIMENSIONS], count = 0, at = from;
    ct__sides(nodes, sides);
    for (int d = 0, stride = 1; d < CT__DIMENSIONS; stride *= sides[d], d++) {
        int side = sides[d], mine = at / stride % side, goal = to / stride % side;
        int ahead = (goal - mine + side) % side, up = 2 * ahead <= side;
        for (; mine != goal; mine = (mine + (up ? 1 : side - 1)) % side) {
            links[count++] = (at * CT__DIMENSIONS + d) * 2 + up;
            at += ((mine + (up ? 1 : side - 1)) % side - mine) * stride;
        }
    }
    return count;
}

static const ct_network CT__NETWORKS[] = {
    {"fattree", 12.5e9, 300e-9, 8e9, 200e-9, 300e-9, ct__fat_tree_links, ct__fat_tree_route},
    {"dragonfly", 25e9, 150e-9, 8e9, 200e-9, 400e-9, ct__dragonfly_links, ct__dragonfly_route},
    {"torus", 6.75e9, 100e-9, 20e9, 200e-9, 800e-9, ct__torus_links, ct__torus_route},
};

const ct_network *ct_network_find(const char *name)
{
    for (size_t i = 0; i < sizeof CT__NETWORKS / sizeof *CT__NETWORKS; i++)
        if (strcmp(CT__NETWORKS[i].name, name) == 0)
            return &CT__NETWORKS[i];
    return NULL;
}
