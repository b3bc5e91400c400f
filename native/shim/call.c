/* The way of a call through the modules, and what becomes of its error.
 *
 * A wrong argument is found by the library before it sends anything, and it may be this rank's alone: then the other ranks do
 * not make the call, and this rank must not count it, or its counts differ from theirs. So the code of each call must be known.
 * MPICH returns MPI_SUCCESS once a program's own error handler has run, a handler may change the code, and it may never return. Where
 * the program has such a handler, it is put aside for the time of the call. A call that was refused is then made once more
 * with the handler in its place, when nothing of ours is at work: the library refuses it again, and all that the program
 * sees is the library's own. With MPI_THREAD_MULTIPLE other threads may need the handler, and it may leave the library's call by
 * a jump: nothing of ours is to be undone then. */
#include "private_comm.h"
#include "shim.h"

/* Errors of communication are not in here: all ranks have made that call. */
static bool ct__is_refusal(int code)
{
    static const int CLASSES[] = {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_COMM, MPI_ERR_RANK, MPI_ERR_REQUEST,
                                  MPI_ERR_ROOT, MPI_ERR_GROUP, MPI_ERR_OP, MPI_ERR_TOPOLOGY, MPI_ERR_DIMS, MPI_ERR_ARG,
                                  MPI_ERR_INFO};
    int class = MPI_SUCCESS;
    if (code == MPI_SUCCESS || PMPI_Error_class(code, &class) != MPI_SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof CLASSES / sizeof *CLASSES; i++)
        if (class == CLASSES[i])
            return true;
    return false;
}

static atomic_bool ct__own_handlers;

void ct_errors_note(MPI_Errhandler handler)
{
    if (!ct_errhandler_is_library_s(handler) && handler != MPI_ERRHANDLER_NULL)
        atomic_store_explicit(&ct__own_handlers, true, memory_order_relaxed);
}

void ct_errors_look(MPI_Comm comm)
{
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
        return;
    ct_errors_note(handler);
    ct_errhandler_release(handler);
}

/* MPI_ERRHANDLER_NULL: it was the library's, and is still there. */
static MPI_Errhandler ct__take(MPI_Comm comm, bool fatal_too)
{
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS)
        return MPI_ERRHANDLER_NULL;
    if ((fatal_too && handler != MPI_ERRORS_RETURN) || !ct_errhandler_is_library_s(handler)) {
        PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        return handler;
    }
    ct_errhandler_release(handler);
    return MPI_ERRHANDLER_NULL;
}

static void ct__give_back(MPI_Comm comm, MPI_Errhandler *handler)
{
    if (*handler == MPI_ERRHANDLER_NULL)
        return;
    PMPI_Comm_set_errhandler(comm, *handler);
    ct_errhandler_release(*handler);
    *handler = MPI_ERRHANDLER_NULL;
}

/* Handlers stay where they are while other threads may need them. */
ct_handlers ct_errors_take(bool fatal_too)
{
    if (ct_job.threads_multiple)
        return (ct_handlers){MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    return (ct_handlers){ct__take(MPI_COMM_WORLD, fatal_too), ct__take(MPI_COMM_SELF, fatal_too)};
}

void ct_errors_give_back(ct_handlers *taken)
{
    ct__give_back(MPI_COMM_WORLD, &taken->world);
    ct__give_back(MPI_COMM_SELF, &taken->self);
}

bool ct_enter(ct_call *call)
{
    call->known = ct_comm_get(call->comm);
    if (call->known == NULL)
        return false;
    ct_depth = 1;
    call->handler = call->handlers.world = call->handlers.self = MPI_ERRHANDLER_NULL;
    if (!ct_job.threads_multiple && atomic_load_explicit(&ct__own_handlers, memory_order_relaxed)) {
        call->handler = ct__take(call->comm, false);
#ifdef OPEN_MPI /* which calls these for buffers that are one, too */
        call->handlers = ct_errors_take(false);
#endif
    }
    return true;
}

bool ct_leave(ct_call *call, int *code)
{
    const MPI_Errhandler none = MPI_ERRHANDLER_NULL;
    bool quiet = call->handler != none || call->handlers.world != none || call->handlers.self != none || call->elsewhere;
    ct_depth = 1;
    call->refused = ct__is_refusal(*code);
    ct_modules_after(call, *code);
    ct_errors_give_back(&call->handlers);
    ct__give_back(call->comm, &call->handler);
    ct_depth = 0;
    if (*code == MPI_SUCCESS || !quiet)
        return true;
    if (call->refused)
        return false;
    PMPI_Comm_call_errhandler(call->comm, *code);
#ifdef MPICH_VERSION
    *code = MPI_SUCCESS; /* as it returns itself after a program's handler; another does not come back, or is MPI_ERRORS_RETURN */
#endif
    return true;
}
