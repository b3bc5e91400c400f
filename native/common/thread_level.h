/* MPI's levels of threads by their names. */
#pragma once

#include <mpi.h>
#include <string.h>

/* -1: there is none of that name. */
static inline int ct_thread_level(const char *name)
{
    static const char *const NAMES[] = {"single", "funneled", "serialized", "multiple"};
    static const int LEVELS[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return LEVELS[i];
    return -1;
}
