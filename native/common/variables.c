#define _GNU_SOURCE /* RTLD_DEFAULT */

#include "codes.h"
#include "mock_ups.h"
#include "variables.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct ct__variable {
    char *name;
    MPI_T_cvar_handle handle;
    int initial, seen;
    bool is_flag; /* its values are of the type bool */
    int ours;     /* of ct_mock_up; -1: it is the library's */
    int *storage; /* where it is written without MPI_T; NULL: by MPI_T */
} *ct__variables;
static int ct__count, ct__capacity;

/* Room for one more variable; false: no memory. */
static bool ct__reserve(void)
{
    struct ct__variable *larger = ct_grown(ct__variables, ct__count, &ct__capacity, sizeof *larger);
    if (larger != NULL)
        ct__variables = larger;
    return larger != NULL;
}

static int ct__read(MPI_T_cvar_handle handle, bool is_flag, int *value)
{
    bool flag = false;
    int code = MPI_T_cvar_read(handle, is_flag ? (void *)&flag : (void *)value);
    if (is_flag)
        *value = flag;
    return code;
}

/* Where the library keeps a variable that MPI_T lets nobody write; NULL: it can be written, or is no algorithm.
 *
 * Open MPI declares the algorithm of allgatherv constant, of all collectives alone, and yet reads it as the others, for each
 * communicator that is made. The function that its components read variables by gives the address. What comes back is
 * accepted if MPI_T reads there what is written. */
static int *ct__storage(const char *name, int index, MPI_T_cvar_handle handle, int initial)
{
    typedef int (*ct__get_value)(int, const void *, void *, const char **);
    ct__get_value get_value = NULL;
    int *storage = NULL, seen = initial;
    if (strcmp(name, "coll_tuned_allgatherv_algorithm") != 0)
        return NULL;
    *(void **)&get_value = dlsym(RTLD_DEFAULT, "mca_base_var_get_value");
    if (get_value == NULL || get_value(index, &storage, NULL, NULL) != 0 || storage == NULL || *storage != initial)
        return NULL;
    *storage = initial + 1;
    int code = ct__read(handle, false, &seen);
    *storage = initial;
    return code == MPI_SUCCESS && seen == initial + 1 ? storage : NULL;
}

int ct_variable_find(const char *name)
{
    for (int i = 0; i < ct__count; i++)
        if (strcmp(ct__variables[i].name, name) == 0)
            return i;
    int index, count, verbosity, bind, scope, none = 0, nothing = 0, initial = 0, ours = ct_mock_up_find(name);
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    int *storage = NULL;
    if (ours >= 0)
        type = MPI_INT;
    else if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(index, NULL, &none, &verbosity, &type, &values, NULL, &nothing, &bind, &scope) !=
            MPI_SUCCESS ||
        (type != MPI_INT && type != MPI_C_BOOL) ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS || count != 1 ||
        ct__read(handle, type == MPI_C_BOOL, &initial) != MPI_SUCCESS ||
        (scope == MPI_T_SCOPE_CONSTANT && (storage = ct__storage(name, index, handle, initial)) == NULL))
        return CT_VARIABLE_MISSING;
    char *kept = ct__reserve() ? strdup(name) : NULL;
    if (kept == NULL)
        return CT_VARIABLE_NO_MEMORY;
    ct__variables[ct__count] = (struct ct__variable){kept, handle, initial, initial, type == MPI_C_BOOL, ours, storage};
    return ct__count++;
}

int ct_variable_initial(int variable) { return ct__variables[variable].initial; }

static int ct__write(const struct ct__variable *variable, int value)
{
    if (variable->ours >= 0) {
        ct_mock_up_set((ct_mock_up)variable->ours, value);
        return MPI_SUCCESS;
    }
    if (variable->storage != NULL) {
        *variable->storage = value;
        return MPI_SUCCESS;
    }
    bool flag = value != 0;
    int code = MPI_T_cvar_write(variable->handle, variable->is_flag ? (void *)&flag : (void *)&value), there;
    /* Open MPI 4.1 has a switch that can be read only, and is set in the environment. */
    if (code != MPI_SUCCESS && ct__read(variable->handle, variable->is_flag, &there) == MPI_SUCCESS && there == value)
        code = MPI_SUCCESS;
    return code;
}

/* A variable has another value then: that is the program's, also where a setting of ours stands in the others. */
int ct_variable_written(MPI_T_cvar_handle handle, const void *value, int (*write)(MPI_T_cvar_handle, const void *))
{
    for (struct ct__variable *at = ct__variables; at < ct__variables + ct__count; at++)
        if (at->ours < 0)
            ct__read(at->handle, at->is_flag, &at->seen);
    int code = write(handle, value);
    for (struct ct__variable *at = ct__variables; at < ct__variables + ct__count; at++) {
        int before = at->seen;
        if (at->ours < 0 && ct__read(at->handle, at->is_flag, &at->seen) == MPI_SUCCESS && at->seen != before)
            at->initial = at->seen;
    }
    return code;
}

bool ct_settings_ours(const ct_setting *settings, int count)
{
    for (int i = 0; i < count; i++)
        if (settings[i].variable >= 0 && ct__variables[settings[i].variable].ours >= 0)
            return true;
    return false;
}

int ct_settings_write(const ct_setting *settings, int count)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++)
        code = ct__write(&ct__variables[settings[i].variable], settings[i].value);
    return code;
}

int ct_settings_restore(const ct_setting *settings, int count)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        const struct ct__variable *variable = &ct__variables[settings[i].variable];
        ct_keep_first(&code, ct__write(variable, variable->initial));
    }
    return code;
}
