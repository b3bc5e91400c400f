/* What integers the library itself reads from texts in the environment. */
#include "agent.h"
#include "mock_ups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* One `NAME=VALUE`. A child does it, because a library reads its environment once. Prints `NAME=VALUE integer`, or
 * `NAME=VALUE -` if unknown. */
static void ct__resolve(const char *pair)
{
    const char *equals = strchr(pair, '=');
    int provided, variable = CT_VARIABLE_MISSING;
    char *name = equals == NULL ? NULL : strndup(pair, (size_t)(equals - pair));
    if (name == NULL)
        _exit(3);
    setenv(name, equals + 1, 1);
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS)
        variable = ct_variable_find(name);
    if (ct_mock_up_find(name) >= 0)
        printf("%s %s\n", pair, equals + 1);
    else if (variable < 0)
        printf("%s -\n", pair);
    else
        printf("%s %d\n", pair, ct_variable_initial(variable));
    fflush(stdout);
    _exit(0);
}

int ct_resolve(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0)
            ct__resolve(argv[i]);
        int status;
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            printf("%s -\n", argv[i]);
    }
    return 0;
}
