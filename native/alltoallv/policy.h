/* When the ranks of a communicator agree on a statistic, and which choice each call takes: the same on every rank.
 *
 * Nothing here is read but the number of calls so far and what was agreed; both are equal on all ranks of a communicator,
 * since MPI demands the same order of collectives there. docs/design/alltoallv.md has the argument, and a test walks
 * through every interleaving of a few ranks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CT_AGREE_NOT,    /* the choice stands; no message */
    CT_AGREE_NOW,    /* there is no choice yet: agree before the exchange */
    CT_AGREE_BESIDE, /* there is one, which may be used in this call yet: agree in it, or before it as well */
} ct_agreement;

enum {
    CT_POLICY_LIBRARY = 0,          /* index of the library's own among the choices */
    CT_POLICY_INTERVAL_FIRST = 3,   /* calls from the first agreement to the next, which are four times as rare each time */
    CT_POLICY_INTERVAL_CHANGING = 11, /* no rarer while one of the last agreements changed the choice */
    CT_POLICY_INTERVAL_MOST = 683,  /* the most of them */
    CT_POLICY_REST_FIRST = 64,      /* calls with the library where the choice changes too often */
    CT_POLICY_REST_MOST = 65536
};

typedef struct {
    int64_t calls;
    int64_t next; /* the call that agrees */
    int64_t rest_until;
    int32_t interval, rest;
    int32_t choice; /* index; -1: none yet */
    uint32_t changes; /* a bit for each of the last agreements: whether it changed the choice */
} ct_policy;

void ct_policy_start(ct_policy *policy);
/* Begins a call. *choice is what it runs, but for CT_AGREE_NOW, where ct_policy_agreed tells. */
ct_agreement ct_policy_begin(ct_policy *policy, int *choice);
/* The choice for the statistic that was agreed on in this call. */
void ct_policy_agreed(ct_policy *policy, int choice);
