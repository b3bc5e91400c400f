/* Makes some of a program's MPI_Allreduce and MPI_Alltoall calls longer by a known time: to preload behind libcolltune.so.
 *
 * CT_SLOW=default|tuned: which, CT_SLOW_US: by how much. After each call the ranks meet; then all wait, where the call is one
 * of these, and meet again. So ranks that share cores leave every call alike, and the program takes longer by what the clock
 * says of this time alone. In MPI_Finalize the first rank prints how many calls were longer, and by how much on
 * average: the mean of that time less its mean in the other calls. */
#include "tuned_calls.h"
#include <sched.h>

static bool known, inside;
static int64_t meetings[2][2]; /* of the other calls, of those that are longer: how many, nanoseconds */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void delay(bool tuned, MPI_Comm comm)
{
    const char *slow = getenv("CT_SLOW"), *us = getenv("CT_SLOW_US");
    known = slow != NULL && us != NULL;
    if (!known)
        return;
    bool longer = strcmp(slow, tuned ? "tuned" : "default") == 0;
    int64_t ns = longer ? (int64_t)(1000.0 * atof(us)) : 0;
    PMPI_Barrier(comm);
    int64_t began_ns = now_ns();
    while (now_ns() - began_ns < ns)
        sched_yield(); /* as a library that waits: a sleep would change the turns of ranks that share a core */
    PMPI_Barrier(comm);
    meetings[longer][0]++;
    meetings[longer][1] += now_ns() - began_ns;
}

/* libcolltune.so is before us: a call comes back as PMPI_, as soon as that has looked at it. A library may make one call by another:
 * only the outer one counts. */
#define CALL(NAME, SIGNATURE)                                          \
    int MPI_##NAME CT_PARAMETERS(SIGNATURE, BLOCKING, int, int)         \
    {                                                                  \
        return PMPI_##NAME CT_ARGUMENTS(SIGNATURE, BLOCKING);          \
    }                                                                  \
    int PMPI_##NAME CT_PARAMETERS(SIGNATURE, BLOCKING, int, int)        \
    {                                                                  \
        static int(*next) CT_PARAMETERS(SIGNATURE, BLOCKING, int, int); \
        if (next == NULL)                                              \
            find(&next, "PMPI_" #NAME);                                \
        if (inside)                                                    \
            return next CT_ARGUMENTS(SIGNATURE, BLOCKING);             \
        inside = true;                                                 \
        bool tuned = is_tuned(comm);                                   \
        int code = next CT_ARGUMENTS(SIGNATURE, BLOCKING);             \
        delay(tuned, comm);                                            \
        inside = false;                                                \
        return code;                                                   \
    }
CALL(Allreduce, ALLREDUCE)
CALL(Alltoall, ALLTOALL)

int MPI_Finalize(void)
{
    int64_t sums[2][2];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(meetings, sums, 4, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    double mean[2];
    for (int i = 0; i < 2; i++)
        mean[i] = sums[i][0] == 0 ? 0.0 : (double)sums[i][1] / (double)sums[i][0];
    if (rank == 0 && known)
        printf("delayed_calls %lld delayed_ns %.0f\n", (long long)sums[1][0], sums[1][0] == 0 ? 0.0 : mean[1] - mean[0]);
    return PMPI_Finalize();
}
