/* Counts what libcolltune asks of the MPI library: its calls of PMPI_ functions come to the program first, if the program has
 * them (link with -rdynamic). The library's own work inside does not come here.
 *
 * messages: blocks and sizes sent by this process; collectives: reductions and broadcasts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

static long messages, collectives;

long count_messages(void);
long count_collectives(void);
long count_messages(void) { return messages; }
long count_collectives(void) { return collectives; }

static void find(void *function, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(function, &found, sizeof found);
}

#define COUNTED(COUNTER, NAME, DECLARED, ARGUMENTS) \
    int NAME DECLARED                               \
    {                                               \
        static int(*next) DECLARED;                 \
        if (next == NULL)                           \
            find(&next, #NAME);                     \
        COUNTER++;                                  \
        return next ARGUMENTS;                      \
    }

COUNTED(messages, PMPI_Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r), (b, n, t, to, tag, c, r))
COUNTED(collectives, PMPI_Allreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c), (a, b, n, t, o, c))
COUNTED(collectives, PMPI_Iallreduce, (const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request *r),
        (a, b, n, t, o, c, r))
COUNTED(collectives, PMPI_Bcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), (b, n, t, root, c))
COUNTED(collectives, PMPI_Allgather, (const void *a, int n, MPI_Datatype t, void *b, int m, MPI_Datatype u, MPI_Comm c),
        (a, n, t, b, m, u, c))
