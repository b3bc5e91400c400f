/* The way of a call through the modules. */
#include "shim.h"

bool ct_enter(ct_call *call, int *code)
{
    ct_depth++;
    call->known = ct_comm_get(call->comm);
    return ct_modules_before(call, code);
}

int ct_leave(ct_call *call, int code)
{
    ct_modules_after(call, code);
    ct_depth--;
    return code;
}
