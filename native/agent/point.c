/* One timed call of a choice, and what has to be done between two of them; a non-blocking one has a computation beside it
 * (docs/design/nonblocking.md). */
#include "agent.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

/* Seconds after which the host, which takes long silence for a hang, hears that slow calls are still under way. */
static double const CT__ALIVE_S = 1.0;
/* Seconds between two looks at what others want of rank 0. */
static double const CT__ATTEND_S = 1e-3;

int ct_synchronise(MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int distance = 1; distance < size; distance *= 2)
        CT_TRY(MPI_Sendrecv(NULL, 0, MPI_BYTE, (rank + distance) % size, CT_TAG_SYNC, NULL, 0, MPI_BYTE,
                            (rank - distance + size) % size, CT_TAG_SYNC, comm, MPI_STATUS_IGNORE));
    return MPI_SUCCESS;
}

int ct_point_steer(const ct_point *point, const ct_choice *choice, bool on)
{
    if (ct_settings_by_communicator(ct_call_overlaps(point->call)) &&
        !ct_settings_ours(choice->settings, choice->setting_count))
        return MPI_SUCCESS;
    return on ? ct_settings_write(choice->settings, choice->setting_count)
              : ct_settings_restore(choice->settings, choice->setting_count);
}

int ct_point_run(ct_point *point, int index, double *elapsed_s)
{
    const ct_choice *choice = &point->request->choices[index];
    CT_TRY(ct_synchronise(point->group->comm));
    int code = ct_point_steer(point, choice, true);
    double start = MPI_Wtime();
    if (code == MPI_SUCCESS && ct_call_overlaps(point->call)) {
        code = ct_point_overlapped(point, point->states[index].comm, elapsed_s);
    } else {
        if (code == MPI_SUCCESS)
            code = ct_call_run(point->call, point->states[index].comm);
        *elapsed_s = MPI_Wtime() - start;
    }
    point->inside_s += *elapsed_s;
    ct_keep_first(&code, ct_point_steer(point, choice, false));
    return code;
}

void ct_point_tell(ct_point *point, int choice)
{
    if (point->rank == 0)
        point->notice(point->context, point->request->id, choice);
    point->noticed_s = MPI_Wtime();
    alarm((unsigned)point->request->limit_s);
}

void ct_point_alive(ct_point *point)
{
    if (MPI_Wtime() - point->noticed_s >= CT__ALIVE_S)
        ct_point_tell(point, -1);
}

/* Between timed calls, and not often: all ranks of this group wait meanwhile. */
int ct_point_attend(ct_point *point)
{
    double now_s = MPI_Wtime();
    if (point->attend == NULL || now_s - point->attended_s < CT__ATTEND_S)
        return MPI_SUCCESS;
    point->attended_s = now_s;
    return point->attend(point->context);
}

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
