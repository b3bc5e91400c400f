/* Non-blocking calls with a computation beside them (docs/design/nonblocking.md). */
#include "agent.h"

#include <sched.h>
#include <time.h>

/* Calls of one choice at most, without a computation and with one that looks at the request. */
enum { CT__VIEWS = 16 };
/* Exchanges by which the computation is calibrated. */
enum { CT__EXCHANGES = 9 };
/* How often a computation that looks at the request does so. */
enum { CT__TESTS = 8 };

static double ct__now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Computes for so long by the clock, without a call of MPI. Where ranks share a core the others get it meanwhile: it stands
 * for a computation on a core of its own, which does not put off what another rank does. Returns the seconds it took. */
static double ct__compute(double seconds)
{
    static volatile double value; /* so that the compiler leaves the work in place */
    double began = ct__now(), passed;
    do {
        for (int i = 0; i < 16; i++)
            value = value * 0.999 + 0.5;
        sched_yield();
        passed = ct__now() - began;
    } while (passed < seconds);
    return passed;
}

int ct_point_overlapped(ct_point *point, MPI_Comm comm, int tests, double *seen_s)
{
    MPI_Request request;
    double computed = 0.0, start = ct__now();
    int code = ct_call_start(point->call, comm, &request);
    if (code != MPI_SUCCESS) {
        *seen_s = ct__now() - start;
        return code;
    }
    for (int part = 0; part <= tests; part++) {
        computed += ct__compute(point->compute_s / (tests + 1));
        int done;
        if (part < tests && code == MPI_SUCCESS)
            code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    /* A request that a test completed is the null request, for which a wait returns at once. */
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    *seen_s = ct__now() - start - computed;
    return code;
}

int ct_point_calibrate(ct_point *point)
{
    double times[CT__EXCHANGES], low, high;
    int wanted = CT__EXCHANGES;
    if (!ct_call_overlaps(point->call))
        return MPI_SUCCESS;
    /* The first one touches the buffers and connects the ranks. */
    for (int i = -1; i < wanted; i++) {
        CT_TRY(ct_synchronise(point->group->comm));
        double start = ct__now();
        CT_TRY(ct_call_spread(point->call, point->group->part));
        double taken = ct__now() - start;
        CT_TRY(MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, point->group->comm));
        if (i < 0 && taken > 0.25 * point->request->box_s)
            wanted = 1;
        if (i >= 0)
            times[i] = taken;
        ct_point_alive(point);
    }
    point->compute_s = ct_median_interval(times, wanted, &low, &high);
    return MPI_SUCCESS;
}

int ct_point_views(ct_point *point, int index)
{
    ct_choice_state *state = &point->states[index];
    double own[2 * CT__VIEWS], low, high, began = ct__now();
    int calls = ct_point_calls_beside(point, state->estimate_s + point->compute_s, CT__VIEWS);
    for (int i = 0; i < 2 * calls; i++)
        CT_TRY(ct_point_run_with(point, index, i < calls ? -1 : CT__TESTS, &own[i]));
    CT_TRY(MPI_Allreduce(MPI_IN_PLACE, own, 2 * calls, MPI_DOUBLE, MPI_MAX, point->group->comm));
    state->pure_s = ct_median_interval(own, calls, &low, &high);
    state->tested_s = ct_median_interval(own + calls, calls, &low, &high);
    state->cost_s += ct__now() - began;
    return MPI_SUCCESS;
}
