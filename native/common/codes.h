/* Error codes of MPI, what all ranks say, levels of threads, and lists that grow. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Goes on if an MPI call succeeded, and hands its error code to the caller if not. */
#define CT_TRY(call)               \
    do {                           \
        int ct_code_ = (call);     \
        if (ct_code_ != MPI_SUCCESS) \
            return ct_code_;       \
    } while (0)

/* Where one error must not keep the other ranks waiting. */
static inline void ct_keep_first(int *kept, int code)
{
    if (*kept == MPI_SUCCESS)
        *kept = code;
}

/* Whether it is so on every rank; collective. */
static inline bool ct_all(MPI_Comm comm, bool mine)
{
    int own = mine, all = 0;
    return PMPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

#ifndef CT_SIMULATED /* there are none */
/* MPI's level of threads of that name; -1: there is none. */
static inline int ct_thread_level(const char *name)
{
    static const char *const NAMES[] = {"single", "funneled", "serialized", "multiple"};
    static const int LEVELS[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return LEVELS[i];
    return -1;
}
#endif

/* `items` with room for one more: they hold `count` elements of `size` bytes in room for `*capacity`. NULL: no memory. */
static inline void *ct_grown(void *items, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    int larger = *capacity > 0 ? 2 * *capacity : 8;
    void *moved = realloc(items, (size_t)larger * size);
    if (moved != NULL)
        *capacity = larger;
    return moved;
}
