/* The sequence of a switchback experiment: which calls of a rule run tuned, and which by the library's default.
 *
 * The calls of a cell (one rule and one class of sizes on one communicator) are cut into blocks of equally many calls, and
 * blocks into rounds. A round holds one pair: a block by default and a tuned one, neighbours, in random order. All other
 * blocks are tuned. The first calls of either block warm up and are not timed. A candidate is a choice that is not proven:
 * its calls run by default but for the tuned block of each pair, and rounds are so long that what it may cost stays a
 * small part of the time in its calls, of this run and of earlier ones.
 *
 * Everything follows from the count of the cell's calls, from what the first rank of the communicator decided at the end
 * of a round, in a call that all ranks make, and of a candidate's first round from what the first rank of the job decided. No
 * rank looks at a clock or a table of its own to find out where it is (docs/design/switchback.md). No MPI in here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CT_SWITCH_FEWEST = 4, CT_SWITCH_MOST = 1 << 16, CT_SWITCH_BETS = 3 };

typedef struct {
    uint64_t seed;
    uint64_t round;     /* 0: all tuned, to learn how long calls take; a candidate begins with 1 */
    uint64_t call;      /* of this round */
    uint64_t blocks;    /* of this round; 0: nothing is compared, every call is as most are */
    uint64_t pair_at;   /* the block with which the pair of this round begins */
    uint32_t length;    /* calls of a block */
    bool default_first; /* the order of the pair */
    bool candidate;
    bool off;           /* the rule is slower here: every call by default from now on */
} ct_switch;

/* PLAIN: of no pair. LAST_WARM: its end is where the timed part of a block begins. LAST: the last call of a block. */
typedef enum { CT_SWITCH_PLAIN, CT_SWITCH_WARM, CT_SWITCH_LAST_WARM, CT_SWITCH_TIMED, CT_SWITCH_LAST } ct_switch_part;

/* What is to be done with the next call. */
typedef struct {
    bool by_default;
    bool ends_round;     /* after it, all ranks hear a decision */
    ct_switch_part part;
    bool timed_default;  /* of a pair: whether its block is counted as the one by default */
} ct_switch_call;

/* What the first rank decides for all, of the next round. */
typedef struct {
    uint64_t seed, length, blocks, off;
} ct_switch_decision;

/* What earlier runs say of a candidate's calls on one communicator. */
typedef struct {
    int64_t mean, error;      /* of log(default / tuned), in millionths; an error below 0: nothing is known of it */
    int64_t call_ns, cycle_ns; /* of a call by default, alone and with what lies between two; 0: it is not to be tried */
    int64_t agree_ns;         /* what meeting and agreeing take for a pair */
    int64_t by_default_ns, lost_ns; /* in all calls of its kind by default; by trying all candidates of its kind */
    int64_t calls, length;    /* those of a run; of the latest block, 0 before the first */
} ct_switch_known;

/* What the first rank has heard. Zero at first. */
typedef struct {
    double wealth[CT_SWITCH_BETS]; /* of a gambler who bets that tuned blocks take longer, at several bet sizes */
    uint64_t pairs, slower;
    double mean, squares; /* of log(default / tuned) over the pairs: the mean, and the sum of squared deviations */
    bool settled;         /* the quick look for harm is over */
    int doublings;        /* of the blocks of a round, since all the more is known */
    double lost_call_ns, lost_wall_ns; /* by blocks of a candidate, in the calls and with all between: less than 0 is a gain */
    double agreed_ns, by_default_ns;   /* of a candidate: what else was lost; its calls, if all ran by default; over all runs */
} ct_switch_evidence;

/* What the first rank of a communicator heard of a round of a candidate: times of `timed` calls, tuned and by default. */
typedef struct {
    uint32_t timed;
    double call_ns[2], wall_ns[2];
    double agree_ns; /* what meeting and agreeing took, and warming up longer than calls by default */
} ct_switch_trial;

void ct_switch_begin(ct_switch *at, bool candidate);
ct_switch_call ct_switch_look(const ct_switch *at);
/* The call was made. At the end of a round ct_switch_obey must follow. */
void ct_switch_advance(ct_switch *at);
void ct_switch_obey(ct_switch *at, const ct_switch_decision *decision);
static inline uint32_t ct_switch_timed(uint32_t length) { return length - (length >= 8 ? length / 4 : 1); }

/* On the first rank alone, of a candidate before its first round. */
void ct_switch_expect(ct_switch_evidence *evidence, const ct_switch_known *known);
/* That round, which is to be obeyed right after ct_switch_begin: on the first rank of the job, for all. */
ct_switch_decision ct_switch_first(const ct_switch_known *known, double risk, uint64_t seed);
/* On the first rank alone. A pair of round 1 or later was measured. */
void ct_switch_learn(ct_switch_evidence *evidence, double default_ns, double tuned_ns);
/* What comes after the round of `at`. `percent`: the share of blocks by default at first, 1 to 50; `cycle_ns`: of one call and
 * what lies between two; `agree_ns`: what meeting and agreeing took in the round; `seed`: for the places of pairs. */
ct_switch_decision ct_switch_plan(const ct_switch *at, ct_switch_evidence *evidence, unsigned percent, double cycle_ns,
                                  double agree_ns, uint64_t seed);
/* The same after a round of a candidate. `risk`: of the time in its calls, what trying it may cost, as far as is known. */
ct_switch_decision ct_switch_try(const ct_switch *at, ct_switch_evidence *evidence, double risk,
                                 const ct_switch_trial *trial, uint64_t seed);
