/* Starts MPI at the asked thread level, says who is there, and serves.
 *
 *   agent [--thread-level single|funneled|serialized|multiple] [MATRIX ...]
 *   agent --resolve NAME=VALUE ...     prints the integer that the library reads from each; no MPI job needed */
#include "agent.h"
#include "mock_ups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ct__announce(const ct_world *world, int provided)
{
    enum { WIDTH = MPI_MAX_PROCESSOR_NAME + 1 };
    char own[WIDTH] = "", *names = malloc((size_t)WIDTH * (size_t)world->size);
    int length, code = names == NULL ? MPI_ERR_NO_MEM : MPI_Get_processor_name(own, &length);
    if (code == MPI_SUCCESS)
        code = MPI_Gather(own, WIDTH, MPI_CHAR, names, WIDTH, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS && world->rank == 0) {
        printf("ready protocol=%d ranks=%d thread_level=%d nodes=", CT_PROTOCOL, world->size, provided);
        const ct_nodes *nodes = &world->nodes;
        for (int node = 0; node < nodes->count; node++)
            printf("%s%s:%d", node == 0 ? "" : ",", names + (size_t)ct_nodes_leader(nodes, node) * WIDTH,
                   ct_nodes_ranks(nodes, node));
        printf("\n");
        fflush(stdout);
    }
    free(names);
    return code;
}

/* What else ran on the job's machines from its start to its end. */
static int ct__tell_load(ct_world *world)
{
    char others[256];
    int node = world->nodes.node_of[world->rank];
    CT_TRY(ct_watch_tell_whole(&world->watch, node, MPI_COMM_WORLD, others, sizeof others));
    if (world->rank == 0) {
        printf("load%s\n", others);
        fflush(stdout);
    }
    return MPI_SUCCESS;
}

/* An algorithm that does not apply must be refused, not replaced (MPICH's default is to replace it silently). */
static void ct__refuse_fallback(void)
{
    int variable = ct_variable_find("MPIR_CVAR_COLLECTIVE_FALLBACK");
    if (variable >= 0)
        ct_settings_write(&(ct_setting){.variable = variable, .value = 0}, 1);
}

static int ct__serve(ct_world *world, int provided)
{
    CT_TRY(ct_world_make(world));
    ct_heap_give_back(0);
    CT_TRY(ct__announce(world, provided));
    CT_TRY(ct_dispatch_serve(world));
    return ct__tell_load(world);
}

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

/* What integers the library itself reads from texts in the environment; the exit status. */
static int ct__resolve_all(int argc, char **argv)
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

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--resolve") == 0)
        return ct__resolve_all(argc - 2, argv + 2);
    int level = MPI_THREAD_SINGLE, provided, code;
    bool named = argc >= 3 && strcmp(argv[1], "--thread-level") == 0;
    int used = named ? 3 : 1;
    if (named)
        level = ct_thread_level(argv[2]);
    if (ct_blocks_files != NULL)
        ct_blocks_files(argc - used, argv + used);
    if (level < 0 || (argc > used && ct_blocks_files == NULL)) {
        fprintf(stderr, "agent: unknown arguments\n");
        return 2;
    }
    if (MPI_T_init_thread(level, &provided) != MPI_SUCCESS || MPI_Init_thread(&argc, &argv, level, &provided) != MPI_SUCCESS)
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ct__refuse_fallback();
    ct_world world = {0};
    code = ct__serve(&world, provided);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "agent: rank %d: %s\n", world.rank, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ct_watch_free(&world.watch);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
