/* MPICH looks control variables up in every call: they are written before it and put back after it. A request that is under way
 * keeps what it was started with, since its messages are listed at the start. */
#include "select.h"

#ifndef OPEN_MPI
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
