/* Control variables: found by name once, written between calls.
 *
 * MPICH checks no value that is written, so only values that the catalogue vouches for may come here; a name
 * that the library lacks is reported, never ignored. All algorithm variables must be equal on all ranks.
 *
 * MPICH looks a variable up in every call; Open MPI once, when a communicator is made. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ct__variable {
    char *name;
    MPI_T_cvar_handle handle;
    int initial;
    bool is_flag; /* its values are of the type bool */
} *ct__variables;
static int ct__variable_count, ct__variable_capacity;

/* Room for one more variable; false: no memory. */
static bool ct__reserve(void)
{
    if (ct__variable_count < ct__variable_capacity)
        return true;
    int capacity = ct__variable_capacity > 0 ? 2 * ct__variable_capacity : 64;
    struct ct__variable *larger = realloc(ct__variables, sizeof *larger * (size_t)capacity);
    if (larger == NULL)
        return false;
    ct__variables = larger;
    ct__variable_capacity = capacity;
    return true;
}

bool ct_control_by_communicator(void)
{
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

static int ct__read(MPI_T_cvar_handle handle, bool is_flag, int *value)
{
    bool flag = false;
    int code = MPI_T_cvar_read(handle, is_flag ? (void *)&flag : (void *)value);
    if (is_flag)
        *value = flag;
    return code;
}

static int ct__write(int variable, int value)
{
    int before;
    /* Open MPI 4.1 has a switch that can be read only, and is set in the environment. */
    if (ct__read(ct__variables[variable].handle, ct__variables[variable].is_flag, &before) == MPI_SUCCESS &&
        before == value)
        return MPI_SUCCESS;
    bool flag = value != 0;
    void *data = ct__variables[variable].is_flag ? (void *)&flag : (void *)&value;
    return MPI_T_cvar_write(ct__variables[variable].handle, data);
}

int ct_control_find(const char *name)
{
    for (int i = 0; i < ct__variable_count; i++)
        if (strcmp(ct__variables[i].name, name) == 0)
            return i;
    int index;
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS)
        return CT_CONTROL_MISSING;
    MPI_Datatype type;
    int name_length = 0, description_length = 0, verbosity, bind, scope, count;
    MPI_T_enum values;
    if (MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &values, NULL, &description_length,
                            &bind, &scope) != MPI_SUCCESS ||
        (type != MPI_INT && type != MPI_C_BOOL) || scope == MPI_T_SCOPE_CONSTANT)
        return CT_CONTROL_MISSING;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS || count != 1)
        return CT_CONTROL_MISSING;
    int initial;
    if (ct__read(handle, type == MPI_C_BOOL, &initial) != MPI_SUCCESS)
        return CT_CONTROL_MISSING;
    char *kept = ct__reserve() ? strdup(name) : NULL;
    if (kept == NULL)
        return CT_CONTROL_NO_MEMORY;
    ct__variables[ct__variable_count] = (struct ct__variable){kept, handle, initial, type == MPI_C_BOOL};
    return ct__variable_count++;
}

int ct_control_write(const ct_setting *settings, int count)
{
    for (int i = 0; i < count; i++) {
        int code = ct__write(settings[i].variable, settings[i].value);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

int ct_control_restore(const ct_setting *settings, int count)
{
    for (int i = 0; i < count; i++) {
        int code = ct__write(settings[i].variable, ct__variables[settings[i].variable].initial);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

/* One `NAME=VALUE`: what integer the library itself reads from that text in the environment. A child does it,
 * because a library reads its environment once. Prints `NAME=VALUE integer`, or `NAME=VALUE -` if unknown. */
static void ct__resolve_one(const char *pair)
{
    const char *equals = strchr(pair, '=');
    int provided, index, count, value = -1, unset = -1;
    MPI_T_cvar_handle handle;
    char *name = equals == NULL ? NULL : strndup(pair, (size_t)(equals - pair));
    if (name == NULL)
        _exit(3);
    setenv(name, equals + 1, 1);
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS ||
        MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS || count != 1 ||
        MPI_T_cvar_read(handle, &value) != MPI_SUCCESS)
        unset = 1;
    if (unset == 1)
        printf("%s -\n", pair);
    else
        printf("%s %d\n", pair, value);
    fflush(stdout);
    _exit(0);
}

int ct_control_resolve(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0)
            ct__resolve_one(argv[i]);
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            printf("%s -\n", argv[i]);
    }
    return 0;
}
