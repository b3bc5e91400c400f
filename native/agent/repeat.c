/* How often each choice of a point is repeated, and in what order. */
#include "agent.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Calls of one choice in a row: an application repeats a call too, and the first after a change runs colder. */
enum { CT__BURST = 4 };
/* Repetitions of a long call where more were asked for. Where so many were at most, a first look, one is enough of what
 * fills its time box by itself: what a moment does to times lasts for longer than a few calls. */
enum { CT__LEAST = 3 };
/* A choice whose interval lies above this multiple of the best one's is not measured more finely. */
static double const CT__DOMINATED = 1.5;
/* Time boxes that the fewest repetitions may take. */
static double const CT__PATIENCE = 20.0;
/* A call that takes longer than this many time boxes is expensive. One that was this many times slower than the
 * best in its trial is hopeless, sooner so where calls are long: what is both is timed once. */
static double const CT__EXPENSIVE = 4.0, CT__HOPELESS = 3.0, CT__HOPELESS_LONG = 2.0;

/* xorshift64*: all ranks draw the same numbers, so all shuffle alike. */
static unsigned ct__draw(uint64_t *state, unsigned below)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (unsigned)((*state * 2685821657736338717ULL) >> 33) % below;
}

bool ct_point_long(const ct_point *point, double time_s)
{
    return time_s > CT__PATIENCE * point->request->box_s;
}

bool ct_point_once(const ct_point *point, double time_s)
{
    return ct_point_long(point, time_s) || (point->request->most <= CT__LEAST && time_s > point->request->box_s);
}

static bool ct__cannot_win(const ct_point *point, double time_s, double best_s)
{
    return time_s > (ct_point_long(point, time_s) ? CT__HOPELESS_LONG : CT__HOPELESS) * best_s;
}

/* Repetitions that a choice gets at least, however long they take: fewer than asked only where they would take many
 * times its time box, as on ranks that share cores. */
static int ct__fewest(const ct_point *point, const ct_choice_state *state)
{
    int fewest = point->request->fewest;
    if (state->hopeless || (fewest <= CT__LEAST && ct_point_once(point, state->estimate_s)))
        return 1;
    double fitting = CT__PATIENCE * point->request->box_s / (state->estimate_s + 1e-9);
    return fitting >= fewest || fewest <= CT__LEAST ? fewest : fitting < CT__LEAST ? CT__LEAST : (int)fitting;
}

/* Of the choices that are long to wait for, those that cannot be the best. All ranks agreed on the estimates. */
void ct_point_give_up(ct_point *point)
{
    double best_s = INFINITY, expensive_s = CT__EXPENSIVE * point->request->box_s;
    for (int i = 0; i < point->request->choice_count; i++)
        if (point->states[i].live && point->states[i].estimate_s < best_s)
            best_s = point->states[i].estimate_s;
    for (int i = 0; i < point->request->choice_count; i++) {
        double estimate_s = point->states[i].estimate_s;
        point->states[i].hopeless = estimate_s > expensive_s && ct__cannot_win(point, estimate_s, best_s);
    }
}

/* One burst of every live choice, in an order drawn anew. */
static int ct__round(ct_point *point)
{
    int *order = point->order, count = 0;
    for (int i = 0; i < point->request->choice_count; i++)
        if (point->states[i].live && point->states[i].count < point->states[i].quota)
            order[count++] = i;
    for (int i = count - 1; i > 0; i--) {
        int other = (int)ct__draw(&point->random, (unsigned)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < count; i++) {
        ct_choice_state *state = &point->states[order[i]];
        ct_point_alive(point);
        CT_TRY(ct_point_attend(point));
        double start = MPI_Wtime();
        CT_TRY(ct_point_give_back(point, order[i]));
        long faults = ct_heap_faults();
        int before = state->count;
        for (int call = 0; call < CT__BURST && state->count < state->quota; call++) {
            double elapsed = 0.0;
            CT_TRY(ct_point_run(point, order[i], &elapsed));
            state->own_sum_s += elapsed;
            state->times[state->count++] = elapsed;
        }
        /* The least of all bursts: memory that is touched for the first time makes a single call fault. */
        double each = (double)(ct_heap_faults() - faults) / (state->count - before);
        state->own_faults = state->own_faults < 0.0 || each < state->own_faults ? each : state->own_faults;
        state->cost_s += MPI_Wtime() - start;
    }
    return MPI_SUCCESS;
}

/* The slowest rank's time of the repetitions that are not yet reduced replaces this rank's own, and all agree on the page
 * faults: one call for all choices. */
static int ct__reduce(ct_point *point, double *scratch)
{
    int total = 0, choices = point->request->choice_count;
    for (int i = 0; i < choices; i++)
        for (int r = point->states[i].reduced; r < point->states[i].count; r++)
            scratch[total++] = point->states[i].times[r];
    for (int i = 0; i < choices; i++)
        scratch[total++] = point->states[i].own_faults;
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, scratch, total, MPI_DOUBLE, MPI_MAX, point->group->comm));
    total = 0;
    for (int i = 0; i < choices; i++)
        for (int r = point->states[i].reduced; r < point->states[i].count; r++)
            point->states[i].times[r] = scratch[total++];
    for (int i = 0; i < choices; i++)
        point->states[i].faults = scratch[total++];
    return MPI_SUCCESS;
}

/* Which choices need no more repetitions. The times are the same on all ranks by now, so the verdict is too. */
static void ct__judge(ct_point *point, double *scratch)
{
    const ct_request *request = point->request;
    double best_high = INFINITY, best_s = INFINITY;
    for (int i = 0; i < request->choice_count; i++) {
        ct_choice_state *state = &point->states[i];
        if (state->status != CT_OK || state->count == 0)
            continue;
        memcpy(scratch, state->times, sizeof(double) * (size_t)state->count);
        state->middle_s = ct_median_interval(scratch, state->count, &state->low_s, &state->high_s);
        best_high = state->high_s < best_high ? state->high_s : best_high;
        best_s = state->middle_s < best_s ? state->middle_s : best_s;
    }
    for (int i = 0; i < request->choice_count; i++) {
        ct_choice_state *state = &point->states[i];
        /* One that looked hopeless in its trial and then was not: the trial met a disturbance. */
        if (state->live && state->count > 0 && !ct__cannot_win(point, state->times[0], best_s))
            state->hopeless = false;
        if (!state->live || state->count < ct__fewest(point, state))
            continue;
        double spent = 0.0;
        for (int r = 0; r < state->count; r++)
            spent += state->times[r];
        bool known = state->high_s - state->low_s <= request->relative_width * state->middle_s;
        bool enough = known || spent >= request->box_s || state->count >= request->most || state->hopeless;
        state->dominated = !enough && state->low_s > CT__DOMINATED * best_high;
        state->live = !enough && !state->dominated;
    }
}

int ct_point_repeat(ct_point *point, double *scratch)
{
    const ct_request *request = point->request;
    for (;;) {
        bool any = false;
        int rounds = 0;
        for (int i = 0; i < request->choice_count; i++) {
            ct_choice_state *state = &point->states[i];
            state->reduced = state->quota = state->count;
            if (!state->live)
                continue;
            any = true;
            int fewest = ct__fewest(point, state);
            int grown = ct_point_once(point, state->estimate_s) ? state->count : state->count * 2;
            state->quota = state->hopeless ? 1 : grown < fewest ? fewest : grown > request->most ? request->most : grown;
            int needed = (state->quota - state->count + CT__BURST - 1) / CT__BURST;
            rounds = needed > rounds ? needed : rounds;
        }
        if (!any)
            return MPI_SUCCESS;
        for (int i = 0; i < rounds; i++)
            CT_TRY(ct__round(point));
        CT_TRY(ct__reduce(point, scratch));
        ct__judge(point, scratch);
    }
}

static int ct__compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double ct_median_interval(double *values, int count, double *low, double *high)
{
    qsort(values, (size_t)count, sizeof *values, ct__compare);
    /* Order statistics around the median: the number of values below it is binomial(count, 1/2), so 1.96 standard
     * deviations of that number reach as far as the 95% interval (normal approximation, no model of the times). */
    int reach = (int)ceil(0.98 * sqrt((double)count));
    int first = (count - 1) / 2 - reach, last = count / 2 + reach;
    *low = values[first < 0 ? 0 : first];
    *high = values[last > count - 1 ? count - 1 : last];
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}
