/* How a library is made to follow a choice.
 *
 * MPICH looks control variables up in every call: they are written before it and put back after it. A request that is under way
 * keeps what it was started with, since its messages are listed at the start.
 *
 * Open MPI looks them up when a communicator is made: blocking calls are made on a communicator of the same ranks, a variant, that
 * was made under them. Only libnbc, which has the other forms, looks its own up in every call. */
#include "private_comm.h"
#include "select.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef OPEN_MPI
enum { CT__FIRST_WAIT = 16 };

/* Of a communicator, for one choice. */
typedef struct {
    MPI_Comm comm;       /* NULL: there is none so far */
    unsigned wait, last; /* calls until one is tried again, and after how many it was the last time */
} ct__variant;

static const ct_select_choice *ct__due; /* whose variant is to be made after the call that is under way */

static ct__variant *ct__variant_of(ct_comm *comm, const ct_select_choice *choice)
{
    if (comm->data[CT_MODULE_SELECT] == NULL)
        comm->data[CT_MODULE_SELECT] = calloc((size_t)ct_select_choice_count, sizeof(ct__variant));
    if (comm->data[CT_MODULE_SELECT] == NULL) {
        fprintf(stderr, "colltune: no memory for the live selector\n");
        abort(); /* a rank that did other things than the rest would hang with them */
    }
    return (ct__variant *)comm->data[CT_MODULE_SELECT] + (choice - ct_select_choices);
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
    MPI_Comm variant = ct__variant_of(call->known, choice)->comm;
    if (variant == NULL) {
        ct__due = choice;
        return false;
    }
    call->made_on = variant;
    return call->elsewhere = true;
}

/* Making a variant takes all ranks, and a call that the library refused is made by one alone. So the first call that meets the
 * choice runs by default, and the ranks that have taken part in it are all here when it has come back. Where no communicator
 * can be had now, this is tried again, ever more rarely. */
static void ct__make(const ct_call *call, const ct_select_choice *choice)
{
    ct__variant *variant = ct__variant_of(call->known, choice);
    if (variant->wait > 0) {
        variant->wait--;
        return;
    }
    bool written = ct_settings_write(choice->settings, choice->count) == MPI_SUCCESS;
    MPI_Comm made;
    if (ct_private_comm(call->comm, written, &made) == MPI_SUCCESS)
        variant->comm = made;
    else
        variant->wait = variant->last = variant->last == 0 ? CT__FIRST_WAIT : 2 * variant->last;
    ct_settings_restore(choice->settings, choice->count);
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
    ct__variant *variants = comm->data[CT_MODULE_SELECT];
    for (int i = 0; i < ct_select_choice_count && variants != NULL; i++)
        if (variants[i].comm != NULL)
            ct_private_comm_free(&variants[i].comm); /* all ranks free the communicator, so all come here */
    free(variants);
    comm->data[CT_MODULE_SELECT] = NULL;
}
#else
bool ct_back_end_begin(ct_call *call, const ct_select_choice *choice)
{
    (void)call;
    ct_settings_write(choice->settings, choice->count);
    return true;
}

void ct_back_end_end(ct_call *call, const ct_select_choice *choice)
{
    (void)call;
    if (choice != NULL)
        ct_settings_restore(choice->settings, choice->count);
}

void ct_back_end_freed(ct_comm *comm) { (void)comm; }
#endif
