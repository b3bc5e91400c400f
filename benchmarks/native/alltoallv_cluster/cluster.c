/* Ranks as coroutines: each runs until it has to wait; if all do, what they wait for goes on. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { CT__STACK = 256 << 10 }; /* bytes; only pages that are touched take memory */

static struct {
    int ranks, me;
    ct_rank *rank;
    ucontext_t *context, main;
    int *ready, ready_first, ready_count; /* a ring */
    int at_barrier, ended;
    double barrier_s;
    void (*body)(void *);
    void *argument;
} ct__all;

int ct_cluster_ranks(void) { return ct__all.ranks; }
int ct_cluster_me(void) { return ct__all.me; }
int ct_cluster_others_ready(void) { return ct__all.ready_count; }
ct_rank *ct_cluster_rank(int rank) { return &ct__all.rank[rank]; }

void ct_cluster_ready(int rank)
{
    ct__all.ready[(ct__all.ready_first + ct__all.ready_count++) % ct__all.ranks] = rank;
}

static void ct__switch_out(void) { swapcontext(&ct__all.context[ct__all.me], &ct__all.main); }

void ct_cluster_sleep_until_complete(void)
{
    if (ct__all.rank[ct__all.me].missing > 0)
        ct__switch_out();
}

void ct_cluster_barrier(void)
{
    ct_rank *mine = &ct__all.rank[ct__all.me];
    if (mine->clock_s > ct__all.barrier_s)
        ct__all.barrier_s = mine->clock_s;
    if (++ct__all.at_barrier < ct__all.ranks) {
        ct__switch_out();
        return;
    }
    ct__all.at_barrier = 0;
    for (int rank = 0; rank < ct__all.ranks; rank++) {
        ct__all.rank[rank].clock_s = ct__all.barrier_s;
        if (rank != ct__all.me)
            ct_cluster_ready(rank);
    }
}

static void ct__begin(void)
{
    ct__all.body(ct__all.argument);
    ct__all.ended++;
    ct__switch_out();
}

static void ct__start(int rank)
{
    ucontext_t *context = &ct__all.context[rank];
    getcontext(context);
    context->uc_stack.ss_size = CT__STACK;
    context->uc_stack.ss_sp = mmap(NULL, CT__STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (context->uc_stack.ss_sp == MAP_FAILED) {
        fprintf(stderr, "sweep: no memory for the stacks of %d ranks\n", ct__all.ranks);
        exit(1);
    }
    makecontext(context, ct__begin, 0);
    ct_cluster_ready(rank);
}

void ct_cluster_run(int ranks, void (*body)(void *), void *argument, bool (*go_on)(void))
{
    ct__all.ranks = ranks, ct__all.body = body, ct__all.argument = argument;
    ct__all.rank = calloc((size_t)ranks, sizeof(ct_rank));
    ct__all.context = calloc((size_t)ranks, sizeof(ucontext_t));
    ct__all.ready = calloc((size_t)ranks, sizeof(int));
    for (int rank = 0; rank < ct__all.ranks; rank++)
        ct__start(rank);
    while (ct__all.ended < ct__all.ranks) {
        if (ct__all.ready_count > 0) {
            ct__all.me = ct__all.ready[ct__all.ready_first];
            ct__all.ready_first = (ct__all.ready_first + 1) % ct__all.ranks;
            ct__all.ready_count--;
            swapcontext(&ct__all.main, &ct__all.context[ct__all.me]);
        } else if (!go_on()) {
            fprintf(stderr, "sweep: deadlock, %d ranks wait for messages that nobody sends\n", ct__all.ranks - ct__all.ended);
            exit(3);
        }
    }
}
