/* The modules that are at work. */
#include "shim.h"

#include <stdlib.h>

bool ct_ready;

#define CT__MODULE(UPPER, LOWER) &ct_##LOWER##_module,
static const ct_module *const CT__ALL[] = {CT_EACH_MODULE(CT__MODULE)};
static const char *const CT__VARIABLES[] = {CT_EACH_MODULE(CT_MODULE_VARIABLE)};
static const ct_module *ct__active[CT_MODULES];
static int ct__count;
/* Calls a hook of each module that is at work and has it. */
#define CT__EACH(HOOK, ...)                                                                                            \
    for (int i = 0; i < ct__count; i++)                                                                                \
        if (ct__active[i]->HOOK != NULL)                                                                               \
            ct__active[i]->HOOK(__VA_ARGS__)

void ct_modules_start(void)
{
    int mine = 0, all = 0; /* starting is collective, and parts of a job may have other variables */
    ct_depth++;
    for (int i = 0; i < CT_MODULES; i++)
        mine |= (getenv(CT__VARIABLES[i]) != NULL) << i;
    if (PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_BAND, ct_job.comm) != MPI_SUCCESS)
        all = 0;
    for (int i = 0; i < CT_MODULES; i++)
        if (all >> i & 1 && CT__ALL[i]->start())
            ct__active[ct__count++] = CT__ALL[i];
    ct_depth--;
    ct_ready = ct__count > 0;
}

bool ct_modules_want(ct_function function, ct_form form)
{
    for (int i = 0; i < ct__count; i++)
        if (ct__active[i]->wants == NULL || ct__active[i]->wants(function, form))
            return true;
    return false;
}

void ct_modules_stop(void)
{
    ct_ready = false;
    ct_depth++;
    ct_comm_stop();
    for (int i = ct__count - 1; i >= 0; i--)
        if (ct__active[i]->stop != NULL)
            ct__active[i]->stop();
    ct_depth--;
    ct__count = 0;
}

bool ct_modules_have_last_words(void)
{
    for (int i = 0; i < ct__count; i++)
        if (ct__active[i]->die != NULL)
            return true;
    return false;
}

/* Changes nothing: the program may go on. */
void ct_modules_die(const char *why)
{
    CT__EACH(die, why);
}

void ct_modules_comm_freed(ct_comm *comm)
{
    ct_depth++;
    CT__EACH(comm_freed, comm);
    ct_depth--;
}

void ct_modules_request(MPI_Request request, bool freed)
{
    if (freed) {
        CT__EACH(request_freed, request);
    } else {
        CT__EACH(request_started, request);
    }
}

bool ct_modules_before(ct_call *call, int *code)
{
    CT__EACH(before, call);
    for (int i = 0; i < ct__count; i++)
        if (ct__active[i]->carry_out != NULL && ct__active[i]->carry_out(call, code))
            return true;
    if (ct_job.threads_multiple) /* a handler of the program's may leave the library's call by a jump */
        ct_depth = 0;
    return false;
}

void ct_modules_after(ct_call *call, int code)
{
    for (int i = ct__count - 1; i >= 0; i--)
        if (ct__active[i]->after != NULL)
            ct__active[i]->after(call, code);
}
