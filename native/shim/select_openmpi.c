/* Open MPI looks control variables up when a communicator is made: blocking calls are made on a communicator of the same ranks, a
 * variant, that was made under them. Only libnbc, which has the other forms, looks its own up in every call. */
#include "select.h"

#ifdef OPEN_MPI
#include "private_comm.h"

#include <stdlib.h>

static const ct_select_choice *ct__due; /* whose variant is to be made after the call that is under way */

/* The variants of a communicator by choice. NULL: not needed yet; MPI_COMM_NULL: it could not be made. */
static MPI_Comm *ct__variants(ct_comm *comm)
{
    if (comm->data[CT_MODULE_SELECT] == NULL)
        comm->data[CT_MODULE_SELECT] = calloc((size_t)ct_select_choice_count, sizeof(MPI_Comm));
    return comm->data[CT_MODULE_SELECT];
}

static bool ct__at_the_call(const ct_call *call, const ct_select_choice *choice)
{
    return call->form != CT_BLOCKING || ct_settings_ours(choice->settings, choice->count);
}

bool ct_back_end_begin(ct_call *call, const ct_select_choice *choice)
{
    if (ct__at_the_call(call, choice)) {
        ct_settings_write(choice->settings, choice->count);
        return true;
    }
    MPI_Comm *variants = ct__variants(call->known), variant = variants == NULL ? NULL : variants[choice - ct_select_choices];
    if (variant == NULL)
        ct__due = choice;
    if (variant == NULL || variant == MPI_COMM_NULL)
        return false;
    call->made_on = variant;
    return call->elsewhere = true;
}

/* Making a variant takes all ranks, and a call that the library refused is made by one alone. So the first call that meets the
 * choice runs by default, and the ranks that have taken part in it are all here when it has come back. */
static void ct__make(const ct_call *call, const ct_select_choice *choice)
{
    MPI_Comm *variants = call->known->data[CT_MODULE_SELECT], made = MPI_COMM_NULL;
    int code = ct_settings_write(choice->settings, choice->count), all = 0;
    int have = variants != NULL && code == MPI_SUCCESS;
    have = ct_private_comm(call->comm, &made) == MPI_SUCCESS && have;
    ct_settings_restore(choice->settings, choice->count);
    if (PMPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, call->comm) != MPI_SUCCESS || !all)
        made = MPI_COMM_NULL;
    if (variants != NULL)
        variants[choice - ct_select_choices] = made;
}

void ct_back_end_end(ct_call *call, const ct_select_choice *choice)
{
    const ct_select_choice *due = ct__due;
    ct__due = NULL;
    if (due != NULL && !call->refused)
        ct__make(call, due);
    if (choice != NULL && ct__at_the_call(call, choice))
        ct_settings_restore(choice->settings, choice->count);
}

void ct_back_end_freed(ct_comm *comm)
{
    MPI_Comm *variants = comm->data[CT_MODULE_SELECT];
    for (int i = 0; i < ct_select_choice_count && variants != NULL; i++)
        if (variants[i] != NULL && variants[i] != MPI_COMM_NULL)
            PMPI_Comm_free(&variants[i]); /* all ranks free the communicator, so all come here */
    free(variants);
    comm->data[CT_MODULE_SELECT] = NULL;
}
#endif
