#include "switchback.h"

#include <math.h>

/* A block takes about so long: what a choice does to the calls and the computing after it lies in the same block. */
static const double CT__BLOCK_NS = 20e6;
/* And so many times as long as meeting and agreeing in a round. */
static const double CT__BLOCK_AGREEMENTS = 10.0;
/* From so many rounds on, rounds get longer: the share of blocks by default falls as what is known grows. */
enum { CT__STEADY = 64, CT__MOST_DOUBLINGS = 10, CT__GROWTH = 4 };
/* They also do from so many pairs on, with each time that the standard error of the mean halves below this. */
enum { CT__KNOWN_PAIRS = 16 };
static const double CT__KNOWN_ERROR = 0.01;
/* The first rounds are the least there can be while tuned blocks are slower more often than chance has it: harm is to be
 * found within 200 calls. */
enum { CT__QUICK_ROUNDS = 24, CT__LOOK_PAIRS = 4, CT__ODDS = 3 };
/* The chance that a rule which is not slower is ever switched off is at most one in so many; of a candidate, which nothing
 * is lost without. */
static const double CT__SURE = 1000.0, CT__SURE_OF_CANDIDATE = 20.0;
/* So many pairs say something, and so many counts what earlier runs say. */
enum { CT__EXPECTED_PAIRS = 2 };
/* Of the blocks of a candidate's round, one in so many at most is tuned; and there are no more than this. The first round, which
 * earlier runs may have earned, is shorter where a run has few calls; but it does not begin with the pair. */
enum { CT__FEWEST_BLOCKS = 20, CT__SHORTEST = 3 };
static const double CT__MOST_BLOCKS = 4294967296.0;
static const double CT__STAKES[CT_SWITCH_BETS] = {0.2, 0.5, 0.8};

static uint64_t ct__hash(uint64_t seed, uint64_t value)
{
    value = seed + (value + 1) * 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

static void ct__start_round(ct_switch *at)
{
    at->call = 0;
    if (at->blocks == 0)
        return;
    /* That of a candidate comes when the round has earned it, for a run may end before: the length of the round is drawn. */
    at->pair_at = at->candidate ? at->blocks - 2 : ct__hash(at->seed, 2 * at->round) % (at->blocks - 1);
    /* One order and then the other, so that a steady drift goes out of rounds 1 and 2, 3 and 4, ...; which is first is
     * left to chance. In rounds of two blocks the pair always lies at the same place. A program that repeats itself every
     * two rounds would make both of them say the same there, so each has an order of its own. */
    uint64_t drawn = at->blocks > 2 ? (at->round - 1) | 1 : at->round;
    at->default_first = ((ct__hash(at->seed, 2 * drawn + 1) >> 32 ^ (drawn != at->round)) & 1) != 0;
}

void ct_switch_begin(ct_switch *at, bool candidate)
{
    *at = (ct_switch){.blocks = candidate ? 0 : 2, .length = CT_SWITCH_FEWEST, .candidate = candidate};
    ct__start_round(at);
}

ct_switch_call ct_switch_look(const ct_switch *at)
{
    if (at->off || at->blocks == 0)
        return (ct_switch_call){.by_default = at->off || at->candidate};
    uint64_t block = at->call / at->length, within = at->call % at->length;
    ct_switch_call call = {.by_default = at->candidate, .ends_round = at->call + 1 == at->blocks * at->length};
    if (block != at->pair_at && block != at->pair_at + 1)
        return call;
    uint32_t warm = at->length - ct_switch_timed(at->length);
    call.timed_default = (block == at->pair_at) == at->default_first;
    call.by_default = at->round > 0 && call.timed_default;
    call.part = within + 1 < warm          ? CT_SWITCH_WARM
                : within + 1 == warm       ? CT_SWITCH_LAST_WARM
                : within + 1 == at->length ? CT_SWITCH_LAST
                                           : CT_SWITCH_TIMED;
    return call;
}

void ct_switch_advance(ct_switch *at) { at->call++; }

void ct_switch_obey(ct_switch *at, const ct_switch_decision *decision)
{
    at->seed = decision->seed;
    at->length = (uint32_t)decision->length;
    at->blocks = decision->blocks;
    at->off = decision->off != 0;
    at->round++;
    ct__start_round(at);
}

static uint32_t ct__length(uint32_t length, double cycle_ns, double agree_ns)
{
    double block_ns = CT__BLOCK_AGREEMENTS * agree_ns > CT__BLOCK_NS ? CT__BLOCK_AGREEMENTS * agree_ns : CT__BLOCK_NS;
    double fitting = block_ns / (cycle_ns < 1.0 ? 1.0 : cycle_ns);
    /* Stays as it is while it is right but for a factor of two: blocks of one cell are to be alike. */
    while (length > CT_SWITCH_FEWEST && fitting < 0.5 * length)
        length /= 2;
    /* Not at once: the default may take far longer than the tuned calls that are known. */
    for (uint32_t most = length * CT__GROWTH; length < most && length < CT_SWITCH_MOST && fitting > 2.0 * length;)
        length *= 2;
    return length;
}

void ct_switch_expect(ct_switch_evidence *evidence, const ct_switch_known *known)
{
    double mean = 1e-6 * (double)known->mean, error = 1e-6 * (double)known->error;
    *evidence = (ct_switch_evidence){.agreed_ns = (double)known->lost_ns, .by_default_ns = (double)known->by_default_ns};
    if (error < 0.0)
        return;
    evidence->pairs = CT__EXPECTED_PAIRS;
    evidence->mean = mean;
    evidence->squares = error * error * CT__EXPECTED_PAIRS * (CT__EXPECTED_PAIRS - 1);
    for (int i = 0; i < CT_SWITCH_BETS; i++)
        evidence->wealth[i] = 1.0;
}

void ct_switch_learn(ct_switch_evidence *evidence, double default_ns, double tuned_ns)
{
    for (int i = 0; i < CT_SWITCH_BETS; i++) {
        if (evidence->pairs == 0)
            evidence->wealth[i] = 1.0;
        evidence->wealth[i] *= tuned_ns > default_ns   ? 1.0 + CT__STAKES[i]
                               : tuned_ns < default_ns ? 1.0 - CT__STAKES[i]
                                                       : 1.0;
    }
    evidence->pairs++;
    evidence->slower += tuned_ns > default_ns;
    double ratio = log((default_ns < 1.0 ? 1.0 : default_ns) / (tuned_ns < 1.0 ? 1.0 : tuned_ns));
    double off = ratio - evidence->mean;
    evidence->mean += off / (double)evidence->pairs;
    evidence->squares += off * (ratio - evidence->mean);
}

static bool ct__is_harmful(const ct_switch_evidence *evidence, double sure)
{
    double wealth = 0.0;
    for (int i = 0; i < CT_SWITCH_BETS; i++)
        wealth += evidence->wealth[i] / CT_SWITCH_BETS;
    /* The orders of two rounds belong together, so one looks after two. */
    return evidence->pairs > 0 && evidence->pairs % 2 == 0 && wealth >= sure;
}

/* Whether the next round is as short as can be. Ends for good when tuned blocks are not slower often enough. */
static bool ct__is_quick(const ct_switch *at, ct_switch_evidence *evidence)
{
    uint64_t faster = evidence->pairs - evidence->slower;
    if (at->round >= CT__QUICK_ROUNDS || (evidence->pairs >= CT__LOOK_PAIRS && CT__ODDS * faster > evidence->slower))
        evidence->settled = true;
    return !evidence->settled;
}

/* The standard error of the mean; two pairs at least. */
static double ct__error(const ct_switch_evidence *evidence)
{
    double pairs = (double)evidence->pairs;
    return sqrt(evidence->squares / (pairs - 1.0) / pairs);
}

/* Whether the rule rather looks slower: then half of its calls run by default, and pairs come ten times as fast as else. */
static bool ct__is_suspect(const ct_switch_evidence *evidence)
{
    return evidence->pairs >= CT__LOOK_PAIRS && evidence->mean < -ct__error(evidence);
}

/* By how many factors of two rounds are longer than at first: by their number, and by how well the mean is known. */
static int ct__doublings(uint64_t round, const ct_switch_evidence *evidence)
{
    int by_round = 0, by_error = 0;
    for (uint64_t reach = 2 * CT__STEADY; round >= reach && by_round < CT__MOST_DOUBLINGS; reach *= 2)
        by_round++;
    if (evidence->pairs >= CT__KNOWN_PAIRS) {
        double error = ct__error(evidence);
        for (double reach = CT__KNOWN_ERROR; error < reach && by_error < CT__MOST_DOUBLINGS; reach /= 2.0)
            by_error++;
    }
    return by_round > by_error ? by_round : by_error;
}

ct_switch_decision ct_switch_plan(const ct_switch *at, ct_switch_evidence *evidence, unsigned percent, double cycle_ns,
                                  double agree_ns, uint64_t seed)
{
    ct_switch_decision decision = {.seed = seed, .length = CT_SWITCH_FEWEST, .blocks = 2, .off = ct__is_harmful(evidence, CT__SURE)};
    int doublings = ct__doublings(at->round + 1, evidence);
    evidence->doublings = doublings > evidence->doublings ? doublings : evidence->doublings;
    if (ct__is_quick(at, evidence))
        return decision;
    percent = percent < 1 ? 1 : percent > 50 ? 50 : percent;
    if (!ct__is_suspect(evidence))
        decision.blocks = (uint64_t)((100 + percent / 2) / percent) << evidence->doublings;
    decision.length = ct__length(at->length, cycle_ns, agree_ns);
    return decision;
}

/* How much longer tuned calls may take than those by default, as a share: what the pairs say and one standard error more. */
static double ct__excess(const ct_switch_evidence *evidence)
{
    if (evidence->pairs < CT__EXPECTED_PAIRS)
        return 1.0; /* nothing is known: twice as long */
    double excess = exp(ct__error(evidence) - evidence->mean) - 1.0;
    return excess > 0.0 ? excess : 0.0;
}

/* The next round of a candidate is to earn what is lost by then, agreeing included, so that blocks need not be longer for its
 * sake. The calls of a rank come one after the other: all candidates together lose no more than this share of the runs. */
static ct_switch_decision ct__earning(const ct_switch_evidence *evidence, double risk, uint32_t length, double call_ns,
                                      double cycle_ns, double agree_ns, uint64_t fewest, uint64_t seed, uint64_t round)
{
    double lost_ns = evidence->lost_call_ns > evidence->lost_wall_ns ? evidence->lost_call_ns : evidence->lost_wall_ns;
    lost_ns = evidence->agreed_ns + (lost_ns > 0.0 ? lost_ns : 0.0);
    /* Of a call, with what lies between two where that was measured. */
    double longer_ns = ct__excess(evidence) * (evidence->pairs < CT__EXPECTED_PAIRS ? call_ns : cycle_ns);
    while (length > CT_SWITCH_FEWEST && longer_ns * length > agree_ns) /* no block is to cost more than meeting for it */
        length /= 2;
    double block_ns = (double)length * call_ns, next_ns = longer_ns * length + agree_ns;
    double blocks = ceil(((lost_ns + next_ns) / risk - evidence->by_default_ns) / block_ns);
    blocks = (blocks > (double)fewest ? blocks : (double)fewest) + (double)(ct__hash(seed, 2 * round) % (fewest / 2 + 1));
    return (ct_switch_decision){seed, length, (uint64_t)(blocks < CT__MOST_BLOCKS ? blocks : CT__MOST_BLOCKS), 0};
}

/* While nothing is known a block is as short as can be: it may take twice as long, which has to be earned. */
static uint32_t ct__length_tried(const ct_switch_evidence *evidence, uint32_t length, double cycle_ns)
{
    return evidence->pairs < CT__EXPECTED_PAIRS ? CT_SWITCH_FEWEST : ct__length(length, cycle_ns, 0.0);
}

ct_switch_decision ct_switch_first(const ct_switch_known *known, double risk, uint64_t seed)
{
    ct_switch_evidence evidence;
    ct_switch_expect(&evidence, known);
    if (known->call_ns <= 0)
        return (ct_switch_decision){.length = CT_SWITCH_FEWEST};
    uint32_t length = CT_SWITCH_FEWEST;
    if (known->length >= CT_SWITCH_FEWEST && known->length <= CT_SWITCH_MOST)
        length = ct__length_tried(&evidence, (uint32_t)known->length, (double)known->cycle_ns);
    while (length > CT_SWITCH_FEWEST && 2 * CT__SHORTEST * (int64_t)length > known->calls)
        length /= 2;
    int64_t half = known->calls / 2 / length; /* of a run */
    half = half < CT__SHORTEST ? CT__SHORTEST : half > CT__FEWEST_BLOCKS ? CT__FEWEST_BLOCKS : half;
    return ct__earning(&evidence, risk, length, (double)known->call_ns, (double)known->cycle_ns, (double)known->agree_ns,
                       (uint64_t)half, seed, 0);
}

ct_switch_decision ct_switch_try(const ct_switch *at, ct_switch_evidence *evidence, double risk,
                                 const ct_switch_trial *trial, uint64_t seed)
{
    double timed = trial->timed > 0 ? trial->timed : 1;
    double call_ns = trial->call_ns[1] < timed ? 1.0 : trial->call_ns[1] / timed;
    double cycle_ns = (trial->wall_ns[0] + trial->wall_ns[1]) / 2.0 / timed;
    ct_switch_learn(evidence, trial->wall_ns[1], trial->wall_ns[0]);
    evidence->lost_call_ns += trial->call_ns[0] - trial->call_ns[1];
    evidence->lost_wall_ns += trial->wall_ns[0] - trial->wall_ns[1];
    evidence->agreed_ns += trial->agree_ns;
    evidence->by_default_ns += (double)at->blocks * at->length * call_ns;
    uint32_t length = ct__length_tried(evidence, at->length, cycle_ns);
    ct_switch_decision decision =
        ct__earning(evidence, risk, length, call_ns, cycle_ns, trial->agree_ns, CT__FEWEST_BLOCKS, seed, at->round);
    decision.off = ct__is_harmful(evidence, CT__SURE_OF_CANDIDATE);
    return decision;
}
