/* Scatter, allgather and reduce-scatter inside other collectives, and the folding to a power of two. */
#include "call.h"

#include <algorithm>

/* Down a binomial tree; rank r ends with part r of `data`, and whoever hands parts on with those as well. */
void ct_scatter_binomial(const ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element)
{
    auto at = [&](int part) { return ct_part(bytes, call.ranks, std::min(part, call.ranks), element); };
    int reach = 1;
    while (reach < call.ranks && call.rank / reach % 2 == 0)
        reach *= 2;
    if (call.rank > 0)
        ct_receive(call, call.rank - reach, data + at(call.rank), at(call.rank + reach) - at(call.rank));
    for (int step = reach / 2; step >= 1; step /= 2) {
        int child = call.rank + step;
        if (child < call.ranks)
            ct_send(call, child, data + at(child), at(child + step) - at(child));
    }
}

/* Rank r begins with part (r + first) % ranks of `data`, and all end with all. */
void ct_allgather_ring(ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element, int first)
{
    int n = call.ranks, right = (call.rank + 1) % n, left = (call.rank + n - 1) % n;
    auto at = [&](int part) { return ct_part(bytes, n, part, element); };
    ct_stepper steps(call, n - 1, CT_CYCLIC);
    for (int j = 0; j < steps.count(); j++) {
        int mine = (call.rank + first - j + n + n) % n, next = (mine + n - 1) % n;
        ct_send_and_receive(call, right, data + at(mine), at(mine + 1) - at(mine), left, data + at(next),
                    at(next + 1) - at(next));
        steps.done(j);
    }
}

/* Any number of ranks: ranks beyond the power of two get the whole at the end, and hand theirs over first. */
void ct_allgather_doubling(const ct_simulated_call &call, char *data, std::size_t bytes, std::size_t element)
{
    int n = call.ranks, power = 1;
    while (power * 2 <= n)
        power *= 2;
    auto at = [&](int part) { return ct_part(bytes, n, std::min(part, n), element); };
    int rest = n - power;
    if (call.rank >= power) {
        ct_send(call, call.rank - power, data + at(call.rank), at(call.rank + 1) - at(call.rank));
        ct_receive(call, call.rank - power, data, bytes);
        return;
    }
    if (call.rank < rest)
        ct_receive(call, call.rank + power, data + at(call.rank + power),
                   at(call.rank + power + 1) - at(call.rank + power));
    for (int step = 1; step < power; step *= 2) {
        int peer = call.rank ^ step, mine = call.rank / step * step, theirs = peer / step * step;
        ct_send_and_receive(call, peer, data + at(mine), at(mine + step) - at(mine), peer, data + at(theirs),
                    at(theirs + step) - at(theirs));
        /* The parts of the ranks beyond the power stand apart from the others. */
        int mine_last = std::min(mine + step, rest), theirs_last = std::min(theirs + step, rest);
        std::size_t out = mine < mine_last ? at(mine_last + power) - at(mine + power) : 0;
        std::size_t in = theirs < theirs_last ? at(theirs_last + power) - at(theirs + power) : 0;
        if (out > 0 || in > 0)
            ct_send_and_receive(call, peer, data + at(std::min(mine, rest) + power), out, peer,
                        data + at(std::min(theirs, rest) + power), in);
    }
    if (call.rank < rest)
        ct_send(call, call.rank + power, data, bytes);
}

/* A part goes around the ring, and ends after ranks - 1 steps. */
void ct_reduce_scatter_ring(ct_simulated_call &call, char *data, std::size_t bytes, int last)
{
    int n = call.ranks, right = (call.rank + 1) % n, left = (call.rank + n - 1) % n;
    auto at = [&](int part) { return ct_part(bytes, n, part, 4); };
    ct_stepper steps(call, n - 1, CT_CYCLIC);
    for (int j = 0; j < steps.count(); j++) {
        int mine = (call.rank + last - 1 - j + n + n) % n, next = (mine + n - 1) % n;
        ct_send_and_receive(call, right, data + at(mine), at(mine + 1) - at(mine), left, call.scratch,
                    at(next + 1) - at(next));
        ct_combine(call, data + at(next), call.scratch, at(next + 1) - at(next));
        steps.done(j);
    }
}

ct_fold ct_fold_of(int rank, int ranks)
{
    ct_fold fold;
    while (fold.power * 2 <= ranks)
        fold.power *= 2;
    fold.rest = ranks - fold.power;
    if (rank >= 2 * fold.rest)
        fold.place = rank - fold.rest;
    else if (rank % 2 == 1)
        fold.place = rank / 2;
    return fold;
}

void ct_fold_in(const ct_simulated_call &call, const ct_fold &fold, char *data, std::size_t bytes)
{
    if (call.rank >= 2 * fold.rest)
        return;
    if (fold.place < 0) {
        ct_send(call, call.rank + 1, data, bytes);
    } else {
        ct_receive(call, call.rank - 1, call.scratch, bytes);
        ct_combine(call, data, call.scratch, bytes);
    }
}

void ct_fold_out(const ct_simulated_call &call, const ct_fold &fold, char *data, std::size_t bytes)
{
    if (call.rank >= 2 * fold.rest)
        return;
    if (fold.place < 0)
        ct_receive(call, call.rank + 1, data, bytes);
    else
        ct_send(call, call.rank - 1, data, bytes);
}

void ct_halve(const ct_simulated_call &call, const ct_fold &fold, char *data, const std::function<std::size_t(int)> &at)
{
    int first = 0;
    for (int step = fold.power / 2; step >= 1; step /= 2) {
        int peer = fold.rank_of(fold.place ^ step);
        bool upper = (fold.place & step) != 0;
        int mine = upper ? first + step : first, theirs = upper ? first : first + step;
        ct_send_and_receive(call, peer, data + at(theirs), at(theirs + step) - at(theirs), peer, call.scratch,
                    at(mine + step) - at(mine));
        ct_combine(call, data + at(mine), call.scratch, at(mine + step) - at(mine));
        first = mine;
    }
}

void ct_allreduce_doubling(const ct_simulated_call &call, char *data, std::size_t bytes)
{
    ct_fold fold = ct_fold_of(call.rank, call.ranks);
    ct_fold_in(call, fold, data, bytes);
    if (fold.place >= 0)
        for (int step = 1; step < fold.power; step *= 2) {
            int peer = fold.rank_of(fold.place ^ step);
            ct_send_and_receive(call, peer, data, bytes, peer, call.scratch, bytes);
            ct_combine(call, data, call.scratch, bytes);
        }
    ct_fold_out(call, fold, data, bytes);
}

/* Halving down to one part per rank of the power of two, then doubling back. */
void ct_allreduce_rabenseifner(const ct_simulated_call &call, char *data, std::size_t bytes)
{
    ct_fold fold = ct_fold_of(call.rank, call.ranks);
    auto at = [&](int part) { return ct_part(bytes, fold.power, part, 4); };
    ct_fold_in(call, fold, data, bytes);
    if (fold.place >= 0) {
        ct_halve(call, fold, data, at);
        for (int step = 1; step < fold.power; step *= 2) {
            int peer = fold.rank_of(fold.place ^ step);
            int mine = fold.place / step * step, theirs = (fold.place ^ step) / step * step;
            ct_send_and_receive(call, peer, data + at(mine), at(mine + step) - at(mine), peer, data + at(theirs),
                        at(theirs + step) - at(theirs));
        }
    }
    ct_fold_out(call, fold, data, bytes);
}
