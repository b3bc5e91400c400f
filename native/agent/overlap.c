/* Non-blocking calls with a computation beside them (docs/design/nonblocking.md). */
#include "agent.h"

#include <sched.h>
#include <time.h>

/* Exchanges by which the computation is calibrated. */
enum { CT__EXCHANGES = 9 };

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

int ct_point_overlapped(ct_point *point, MPI_Comm comm, double *seen_s)
{
    MPI_Request request;
    double computed = 0.0, start = ct__now();
    int code = ct_call_start(point->call, comm, &request);
    if (code == MPI_SUCCESS) {
        computed = ct__compute(point->compute_s);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    *seen_s = ct__now() - start - computed;
    return code;
}

int ct_point_calibrate(ct_point *point)
{
    double times[CT__EXCHANGES], low, high;
    int exchanges = CT__EXCHANGES;
    if (!ct_call_overlaps(point->call))
        return MPI_SUCCESS;
    /* The first one touches the buffers and connects the ranks. */
    for (int i = -1; i < exchanges; i++) {
        CT_TRY(ct_synchronise(point->group->comm));
        double start = ct__now();
        CT_TRY(ct_call_spread(point->call, point->group->part));
        double taken = ct__now() - start;
        CT_TRY(MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, point->group->comm));
        if (i < 0 && taken > 0.25 * point->request->box_s)
            exchanges = 1;
        if (i >= 0)
            times[i] = taken;
        ct_point_alive(point);
    }
    point->compute_s = ct_median_interval(times, exchanges, &low, &high);
    return MPI_SUCCESS;
}
