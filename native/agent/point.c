/* One timed call of a choice, and what has to be done between two of them. */
#include "agent.h"

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
