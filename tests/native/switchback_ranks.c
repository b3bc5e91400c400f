/* switchback_ranks SEED CASES [own | periodic | try PERCENT | keep PERCENT]: many ranks, each with a clock of its own, follow the sequence of an experiment.
 *
 * A case is a communicator of 1 to 64 ranks, a few cells on it, and a random order of their calls, which all ranks share.
 * Each rank's calls take times of its own, which the first rank hears as sums. Prints, over all cases: calls, calls in
 * which two ranks differed, calls by default, rounds, pairs with the default first, cells that were switched off, calls in which the
 * parts of a block were not as they must be. With "own" each rank decides by its own times, which must end in calls that differ. With
 * "periodic" a case is one cell of one rank whose tuned and default calls are alike, and in whose program eight calls that take
 * longer follow on eight that do not, over and over. With "try" a case is one candidate on one rank, whose tuned calls take
 * PERCENT of the time of those by default; tuned calls, and what trying cost as millionths of the time in all calls by
 * default, on average over the cases, are printed too. With "keep" a case is one rule on one rank, whose tuned calls take PERCENT of
 * the time of those by default. */
#include "switchback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 64, CELLS = 5, CALLS = 3000 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

typedef struct {
    ct_switch at;
    ct_switch_evidence evidence;
    double pair_ns[2];
    unsigned timed[2];
} cell_of_rank;

static cell_of_rank cells[RANKS][CELLS];
static unsigned long long calls, differing, by_default, rounds, default_first, off, misplaced, tuned, cost;
static const double RISK = 0.001, AGREE_NS = 2e4;

/* A candidate of which nothing is known but what its calls take by default. */
static void begin_candidate(cell_of_rank *here, double call_ns, uint64_t seed)
{
    ct_switch_known known = {.error = -1, .call_ns = (int64_t)call_ns, .agree_ns = (int64_t)AGREE_NS, .calls = CALLS};
    ct_switch_decision first = ct_switch_first(&known, RISK, seed);
    ct_switch_begin(&here->at, true);
    ct_switch_obey(&here->at, &first);
    ct_switch_expect(&here->evidence, &known);
}

static void decide(int cell, int ranks, unsigned percent, int own, double agree_ns)
{
    double sum[2] = {0.0, 0.0};
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < 2; i++)
            sum[i] += cells[rank][cell].pair_ns[i] / ranks;
    ct_switch_decision said = {0, 0, 0, 0};
    for (int rank = 0; rank < ranks; rank++) {
        cell_of_rank *here = &cells[rank][cell];
        const double *heard = own ? here->pair_ns : sum;
        if (rank == 0 || own) {
            bool is_pair = here->at.round > 0;
            double cycle_ns = (heard[0] + heard[1]) / 2.0 / ct_switch_timed(here->at.length);
            uint64_t seed = is_pair ? here->at.seed : own ? 7u + (unsigned)rank : state;
            if (is_pair && !here->at.candidate)
                ct_switch_learn(&here->evidence, heard[1], heard[0]);
            ct_switch_trial trial = {ct_switch_timed(here->at.length), {heard[0], heard[1]}, {heard[0], heard[1]}, agree_ns};
            said = here->at.candidate ? ct_switch_try(&here->at, &here->evidence, RISK, &trial, seed)
                                      : ct_switch_plan(&here->at, &here->evidence, percent, cycle_ns, agree_ns, seed);
        }
        default_first += rank == 0 && here->at.round > 0 && here->at.default_first;
        ct_switch_obey(&here->at, &said);
        memset(here->pair_ns, 0, sizeof here->pair_ns);
        memset(here->timed, 0, sizeof here->timed);
    }
    rounds++;
    off += said.off != 0;
}

/* Whether the parts of a block of the first rank come in their order, as many as there must be. */
static void check(cell_of_rank *here, ct_switch_call now)
{
    if (now.part >= CT_SWITCH_TIMED)
        here->timed[now.timed_default]++;
    if (now.part == CT_SWITCH_LAST)
        misplaced += here->timed[now.timed_default] != ct_switch_timed(here->at.length);
    if (now.ends_round)
        misplaced += here->timed[0] == 0 || here->timed[0] != here->timed[1];
}

static void run(int own)
{
    int ranks = 1 + (int)draw(RANKS), count = 1 + (int)draw(CELLS);
    unsigned percent = 1 + (unsigned)draw(50);
    double base_ns[CELLS], harm[CELLS];
    for (int cell = 0; cell < count; cell++) {
        base_ns[cell] = 1e3 * (double)(1 + draw(1u << draw(14)));
        harm[cell] = draw(3) == 0 ? 1.5 : 0.9;
        bool candidate = draw(4) == 0;
        uint64_t seed = state;
        for (int rank = 0; rank < ranks; rank++) {
            memset(&cells[rank][cell], 0, sizeof cells[rank][cell]);
            ct_switch_begin(&cells[rank][cell].at, false);
            if (candidate)
                begin_candidate(&cells[rank][cell], base_ns[cell], seed);
        }
    }
    for (int i = 0; i < CALLS; i++, calls++) {
        int cell = (int)draw((uint64_t)count);
        ct_switch_call first = ct_switch_look(&cells[0][cell].at);
        int agree = 1;
        for (int rank = 0; rank < ranks; rank++) {
            cell_of_rank *here = &cells[rank][cell];
            ct_switch_call now = ct_switch_look(&here->at);
            agree = agree && now.by_default == first.by_default && now.ends_round == first.ends_round && now.part == first.part;
            double noise = 0.5 + (double)draw(1000) / 1000.0 + (draw(50) == 0 ? 20.0 : 0.0);
            if (now.part >= CT_SWITCH_TIMED)
                here->pair_ns[now.timed_default] += base_ns[cell] * noise * (now.by_default ? 1.0 : harm[cell]);
            if (rank == 0)
                check(here, now);
            ct_switch_advance(&here->at);
        }
        differing += !agree;
        by_default += first.by_default && !cells[0][cell].at.off;
        if (!agree)
            return; /* as ranks that differ hang */
        if (first.ends_round)
            decide(cell, ranks, percent, own, (double)draw(1u << draw(24)));
    }
}

/* Blocks of four calls, two of them in a round: all second blocks of one round and all first ones of the next take longer. */
static void repeat(void)
{
    cell_of_rank *here = &cells[0][0];
    memset(here, 0, sizeof *here);
    ct_switch_begin(&here->at, false);
    for (int i = 0; i < CALLS; i++, calls++) {
        ct_switch_call now = ct_switch_look(&here->at);
        if (now.part >= CT_SWITCH_TIMED)
            here->pair_ns[now.timed_default] += i % 16 >= 4 && i % 16 < 12 ? 2e8 : 1e8;
        by_default += now.by_default && !here->at.off;
        ct_switch_advance(&here->at);
        if (now.ends_round)
            decide(0, 1, 50, 0, AGREE_NS);
        if (here->at.off)
            return;
    }
}

/* What a candidate costs: its calls, and the time to meet and agree at the end of each round. */
static void try(double ratio)
{
    enum { TRIES = 2000000 };
    cell_of_rank *here = &cells[0][0];
    memset(here, 0, sizeof *here);
    double base_ns = 1e3 * (double)(1 + draw(1000)), lost_ns = 0.0;
    begin_candidate(here, base_ns, state);
    for (int i = 0; i < TRIES; i++, calls++) {
        ct_switch_call now = ct_switch_look(&here->at);
        double noise = 0.8 + (double)draw(400) / 1000.0;
        if (now.part >= CT_SWITCH_TIMED)
            here->pair_ns[now.timed_default] += base_ns * noise * (now.by_default ? 1.0 : ratio);
        lost_ns += now.by_default ? 0.0 : base_ns * (ratio - 1.0);
        tuned += !now.by_default;
        check(here, now);
        ct_switch_advance(&here->at);
        if (!now.ends_round)
            continue;
        decide(0, 1, 0, 0, AGREE_NS);
        lost_ns += AGREE_NS;
    }
    double share = 1e6 * lost_ns / (base_ns * TRIES);
    cost += share > 0.0 ? (unsigned long long)share : 0;
}

/* A rule of `KEPT` calls whose tuned ones take `ratio` times as long, beside noise: of single calls, of blocks of four, and now
 * and then a long one. */
static void keep(double ratio)
{
    enum { KEPT = 100000 };
    cell_of_rank *here = &cells[0][0];
    memset(here, 0, sizeof *here);
    ct_switch_begin(&here->at, false);
    double base_ns = 2e4 * (double)(1 + draw(50)), weather = 1.0;
    for (int i = 0; i < KEPT; i++, calls++) {
        ct_switch_call now = ct_switch_look(&here->at);
        weather = i % 4 == 0 ? 0.8 + (double)draw(400) / 1000.0 + (draw(20) == 0 ? 2.0 : 0.0) : weather;
        double noise = weather * (0.8 + (double)draw(400) / 1000.0);
        if (now.part >= CT_SWITCH_TIMED)
            here->pair_ns[now.timed_default] += base_ns * noise * (now.by_default ? 1.0 : ratio);
        tuned += !now.by_default;
        by_default += now.by_default && !here->at.off;
        ct_switch_advance(&here->at);
        if (now.ends_round)
            decide(0, 1, 5, 0, AGREE_NS);
    }
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) | 1 : 1;
    int cases = argc > 2 ? atoi(argv[2]) : 100;
    const char *kind = argc > 3 ? argv[3] : "";
    for (int i = 0; i < cases; i++) {
        if (strcmp(kind, "periodic") == 0)
            draw(2), repeat();
        else if (strcmp(kind, "try") == 0)
            try(argc > 4 ? 0.01 * atof(argv[4]) : 1.0);
        else if (strcmp(kind, "keep") == 0)
            keep(argc > 4 ? 0.01 * atof(argv[4]) : 1.0);
        else
            run(strcmp(kind, "own") == 0);
    }
    printf("calls=%llu differing=%llu by_default=%llu rounds=%llu default_first=%llu off=%llu misplaced=%llu tuned=%llu cost=%llu\n",
           calls, differing, by_default, rounds, default_first, off, misplaced, tuned, cost / (cases > 0 ? (unsigned)cases : 1));
    return 0;
}
