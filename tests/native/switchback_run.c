/* One run of a program that tries a candidate in `calls` calls, by the sequence of the experiment and times that are given. */
#include "switchback.h"

#include <string.h>

typedef struct {
    double call_ns, between_ns, agree_ns; /* a call by default, what follows it, meeting and agreeing */
    double ratio, warming_ns;             /* of a tuned call; what the first tuned one takes longer */
} times_of_run;

/* Fills `pairs` with timed calls; in the calls, tuned and by default; with all between, the same; agreeing. `factors`: of each
 * call, its noise. `known`: the fields of ct_switch_known. Returns how many pairs there are; `tuned`: how many calls were. */
int switchback_run(const int64_t *known, double risk, uint64_t seed, int calls, const times_of_run *times,
                   const double *factors, double (*pairs)[6], int most, int *tuned)
{
    ct_switch_known before;
    memcpy(&before, known, sizeof before);
    ct_switch at;
    ct_switch_evidence evidence;
    ct_switch_decision said = ct_switch_first(&before, risk, seed);
    ct_switch_begin(&at, true);
    ct_switch_obey(&at, &said);
    ct_switch_expect(&evidence, &before);
    double call_ns[2] = {0}, wall_ns[2] = {0}, warm_ns = 0.0, warming_ns = times->warming_ns;
    int count = 0;
    *tuned = 0;
    for (int i = 0; i < calls; i++) {
        ct_switch_call now = ct_switch_look(&at);
        double took_ns = times->call_ns * factors[i] * (now.by_default ? 1.0 : times->ratio);
        if (!now.by_default) {
            took_ns += warming_ns;
            warming_ns = 0.0;
            ++*tuned;
        }
        if (now.part >= CT_SWITCH_TIMED) {
            call_ns[now.timed_default] += took_ns;
            wall_ns[now.timed_default] += took_ns + times->between_ns;
        } else if (now.part > CT_SWITCH_PLAIN && !now.timed_default)
            warm_ns += took_ns;
        ct_switch_advance(&at);
        if (!now.ends_round)
            continue;
        uint32_t timed = ct_switch_timed(at.length);
        double longer_ns = warm_ns - (at.length - timed) * call_ns[1] / timed;
        ct_switch_trial trial = {timed, {call_ns[0], call_ns[1]}, {wall_ns[0], wall_ns[1]},
                                 times->agree_ns + (longer_ns > 0.0 ? longer_ns : 0.0)};
        if (count < most) {
            double row[6] = {timed, call_ns[0], call_ns[1], wall_ns[0], wall_ns[1], trial.agree_ns};
            memcpy(pairs[count++], row, sizeof row);
        }
        said = ct_switch_try(&at, &evidence, risk, &trial, at.seed);
        ct_switch_obey(&at, &said);
        call_ns[0] = call_ns[1] = wall_ns[0] = wall_ns[1] = warm_ns = 0.0;
    }
    return count;
}
