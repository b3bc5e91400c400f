/* Ways into the progress of MPICH and of Open MPI. */
#define _GNU_SOURCE
#include "progress.h"

#include <stddef.h>

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40300300 && !defined(I_MPI_NUMVERSION)

static bool (*ct__poll)(void);

static int ct__async(MPIX_Async_thing thing)
{
    (void)thing;
    return ct__poll() ? MPIX_ASYNC_NOPROGRESS : MPIX_ASYNC_DONE;
}

bool ct_progress_has(void) { return true; }

int ct_progress_start(bool (*poll)(void))
{
    ct__poll = poll;
    return MPIX_Async_start(ct__async, NULL, MPIX_STREAM_NULL);
}

/* MPI_Request_get_status would enter the progress again. */
bool ct_progress_is_complete(MPI_Request request) { return MPIX_Request_is_complete(request); }

#else

bool ct_progress_is_complete(MPI_Request request)
{
    int complete = 0;
    return PMPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || complete;
}

#ifdef OPEN_MPI

#include <dlfcn.h>
#include <string.h>

static bool (*ct__poll)(void);

static int ct__callback(void)
{
    ct__poll();
    return 0;
}

static int (*ct__register(void))(int (*)(void))
{
    int (*enter)(int (*)(void)) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "opal_progress_register");
    memcpy(&enter, &found, sizeof enter);
    return enter;
}

bool ct_progress_has(void) { return ct__register() != NULL; }

/* Registered for good: what is left to ask is one counter. */
int ct_progress_start(bool (*poll)(void))
{
    static bool registered;
    if (registered)
        return MPI_SUCCESS;
    ct__poll = poll;
    registered = ct__register()(ct__callback) == 0;
    return registered ? MPI_SUCCESS : MPI_ERR_INTERN;
}

#else

bool ct_progress_has(void) { return false; }

int ct_progress_start(bool (*poll)(void))
{
    (void)poll;
    return MPI_ERR_INTERN;
}

#endif
#endif
