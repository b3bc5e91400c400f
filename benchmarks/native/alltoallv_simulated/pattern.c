/* What is exchanged: the bytes of each block by distribution, and the shape of that. */
#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CT__SAMPLE = 1 << 14 };

static uint64_t ct__mix(uint64_t v)
{
    v ^= v >> 33, v *= 0xff51afd7ed558ccdULL, v ^= v >> 33, v *= 0xc4ceb9fe1a85ec53ULL;
    return v ^ v >> 33;
}

static double ct__weight(const ct_sweep_request *r, int from, int to, int size)
{
    return r->is_peer[(to - from + size) % size] ? ct_weight(&r->blocks, from, to) : 0.0;
}

int ct_pattern_draw(ct_sweep_request *r, uint64_t seed, int size)
{
    double *received = calloc((size_t)size, sizeof *received), busiest = 0.0, largest = 0.0;
    r->blocks = (ct_blocks){.peers = r->peers, .seed = (unsigned)seed};
    memcpy(r->blocks.distribution, r->distribution, sizeof r->blocks.distribution);
    r->is_peer = realloc(r->is_peer, (size_t)size);
    if (received == NULL || r->is_peer == NULL) {
        free(received);
        return -1;
    }
    for (int distance = 0; distance < size; distance++)
        r->is_peer[distance] = ct_weight_is_peer(&r->blocks, distance, size);
    for (int from = 0; from < size; from++) {
        double sent = 0.0;
        for (int to = 0; to < size; to++) {
            double weight = ct__weight(r, from, to, size);
            largest = weight > largest ? weight : largest;
            sent += to != from ? weight : 0.0, received[to] += to != from ? weight : 0.0;
        }
        busiest = sent > busiest ? sent : busiest;
    }
    for (int to = 0; to < size; to++)
        busiest = received[to] > busiest ? received[to] : busiest;
    free(received);
    r->unit = busiest > 0.0 ? r->largest * (size - 1.0) / busiest : 0.0;
    return (int)ceil(largest * r->unit);
}

/* Bytes of the block from one rank to another: the same wherever it is asked. */
int ct_pattern_bytes(const ct_sweep_request *r, uint64_t seed, int from, int to, int size)
{
    if (r->peers >= 0)
        return (int)ceil(ct__weight(r, from, to, size) * r->unit);
    uint64_t draw = ct__mix(seed ^ ct__mix((uint64_t)from << 32 | (uint64_t)to));
    double unit = (double)(draw >> 11) * 0x1p-53;
    if (strcmp(r->distribution, "constant") == 0)
        return r->largest;
    if (strcmp(r->distribution, "sparse") == 0) /* a tenth of the pairs */
        return unit < 0.9 ? 0 : 1 + (int)((unit - 0.9) * 10.0 * r->largest);
    if (strcmp(r->distribution, "empty") == 0) /* a fiftieth */
        return unit < 0.98 ? 0 : 1 + (int)((unit - 0.98) * 50.0 * r->largest);
    if (strcmp(r->distribution, "power") == 0) {
        double bytes = 1.0 / sqrt(1.0 - unit * (1.0 - 1.0 / ((double)r->largest * r->largest)));
        return (int)bytes;
    }
    if (strcmp(r->distribution, "skewed") == 0) /* rank 0 gets and sends ten times as much as others */
        return (int)(unit * (from == 0 || to == 0 ? 1.0 : 0.1) * r->largest);
    return 1 + (int)(unit * r->largest); /* uniform */
}

static int ct__compare(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

/* The shape of the distribution, from a sample of the pairs. */
ct_sweep_shape ct_pattern_shape(const ct_sweep_request *r, uint64_t seed, int size)
{
    int *sample = malloc(sizeof(int) * CT__SAMPLE);
    ct_sweep_shape shape = {0};
    for (int i = 0; i < CT__SAMPLE; i++) {
        uint64_t pair = ct__mix((uint64_t)i + 17);
        sample[i] = ct_pattern_bytes(r, seed, (int)(pair % (unsigned)size), (int)(pair / (unsigned)size % (unsigned)size), size);
        shape.mean += sample[i] / (double)CT__SAMPLE;
    }
    double second = 0.0, third = 0.0;
    for (int i = 0; i < CT__SAMPLE; i++) {
        double away = sample[i] - shape.mean;
        second += away * away / CT__SAMPLE, third += away * away * away / CT__SAMPLE;
    }
    qsort(sample, CT__SAMPLE, sizeof(int), ct__compare);
    shape.largest = sample[CT__SAMPLE - 1], shape.deviation = sqrt(second);
    shape.skewness = second > 0.0 ? third / (second * sqrt(second)) : 0.0;
    shape.quartile_1 = sample[CT__SAMPLE / 4], shape.quartile_3 = sample[3 * CT__SAMPLE / 4];
    free(sample);
    return shape;
}
