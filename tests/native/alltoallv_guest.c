/* What a program with handlers of its own meets when MPI_Alltoallv is run by libcolltune. Prints a line "name figures...", by rank 0,
 * of sums over all ranks.
 *
 *     alltoallv_guest attributes      copies, deletes of an attribute of a communicator that is used and freed; private communicators
 *                                     made of it that inherit an attribute, info or an error handler
 *     alltoallv_guest type|uncommitted|negative|buffer   on all ranks: handler calls, those on another communicator, calls for
 *                                     which it got the class of the fault, results that were wrong afterwards
 *     alltoallv_guest lone            the last rank alone, which then makes the call as it should be
 *     alltoallv_guest short BYTES     the first rank has room for one byte less than the last one sends it, of BYTES: calls that were an
 *                                     error there, and elsewhere, results that were wrong afterwards
 *
 * Link with -rdynamic: what is preloaded calls our PMPI_Comm_create. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, CALLS = 8 };

static int rank, size, copies, deletes, handled, elsewhere, last_class, inheriting, keyval = MPI_KEYVAL_INVALID;
static MPI_Comm comm;
static int counts[MOST], places[MOST], sent[2 * MOST], received[2 * MOST];

static int copy(MPI_Comm old, int key, void *extra, void *value, void *made, int *flag)
{
    (void)old, (void)key, (void)extra;
    copies++, *flag = 1;
    *(void **)made = value; /* as it is: a delete function that frees would free it twice */
    return MPI_SUCCESS;
}

static int delete (MPI_Comm old, int key, void *value, void *extra)
{
    (void)old, (void)key, (void)value, (void)extra;
    deletes++;
    return MPI_SUCCESS;
}

static void handle(MPI_Comm *where, int *code, ...)
{
    int same;
    MPI_Comm_compare(*where, comm, &same);
    MPI_Error_class(*code, &last_class);
    handled++, elsewhere += same != MPI_IDENT;
}

int PMPI_Comm_create(MPI_Comm from, MPI_Group group, MPI_Comm *made)
{
    int (*next)(MPI_Comm, MPI_Group, MPI_Comm *), found = 0, has_hint = 0;
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Comm_create");
    int code = next(from, group, made);
    void *value;
    char text[64];
    MPI_Info info;
    if (code != MPI_SUCCESS || *made == MPI_COMM_NULL || keyval == MPI_KEYVAL_INVALID)
        return code;
    MPI_Comm_get_attr(*made, keyval, &value, &found);
    MPI_Comm_get_info(*made, &info);
    MPI_Info_get(info, "mpi_assert_no_any_tag", 63, text, &has_hint);
    MPI_Info_free(&info);
    inheriting += found || (has_hint && strcmp(text, "true") == 0);
    return code;
}

static int exchange(MPI_Datatype type, int first_count, int *buffer)
{
    int kept = counts[0];
    counts[0] = first_count;
    int code = MPI_Alltoallv(sent, counts, places, type, buffer, counts, places, type, comm);
    counts[0] = kept;
    return code;
}

static int wrong_after_a_right_call(void)
{
    int bad = 0;
    for (int i = 0; i < 2 * size; i++)
        sent[i] = 1000 * rank + i, received[i] = -1;
    bad += exchange(MPI_INT, counts[0], received) != MPI_SUCCESS;
    for (int i = 0; i < size; i++)
        bad += received[2 * i] != 1000 * i + 2 * rank || received[2 * i + 1] != 1000 * i + 2 * rank + 1;
    return bad != 0;
}

static int failed(const char *how, MPI_Datatype uncommitted)
{
    int expected = MPI_ERR_TYPE;
    last_class = MPI_SUCCESS;
    if (strcmp(how, "type") == 0)
        exchange(MPI_DATATYPE_NULL, 2, received);
    else if (strcmp(how, "uncommitted") == 0)
        exchange(uncommitted, 2, received);
    else if (strcmp(how, "buffer") == 0)
        exchange(MPI_INT, 2, NULL), expected = MPI_ERR_BUFFER;
    else
        exchange(MPI_INT, -1, received), expected = MPI_ERR_COUNT;
    return last_class == expected; /* MPICH returns no error where a handler of the program was called */
}

static void report(const char *name, const int *figures, int count)
{
    int all[8];
    MPI_Reduce(figures, all, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s", name);
        for (int i = 0; i < count; i++)
            printf(" %d", all[i]);
        printf("\n");
    }
}

/* Blocks of so many bytes between all; on the first rank one byte of the last one's block has no room. */
static int is_cut_off(int bytes)
{
    int all[MOST], room[MOST], at[MOST];
    char *from = malloc((size_t)(bytes * size)), *to = malloc((size_t)(bytes * size));
    for (int i = 0; i < size; i++)
        all[i] = room[i] = bytes, at[i] = bytes * i;
    memset(from, rank, (size_t)(bytes * size));
    if (rank == 0)
        room[size - 1]--;
    last_class = MPI_SUCCESS;
    MPI_Alltoallv(from, all, at, MPI_BYTE, to, room, at, MPI_BYTE, comm);
    free(from), free(to);
    return last_class != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Datatype uncommitted;
    MPI_Info info;
    static int value;
    const char *how = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < size; i++)
        counts[i] = 2, places[i] = 2 * i;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Type_contiguous(1, MPI_INT, &uncommitted);
    MPI_Comm_create_keyval(copy, delete, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &value);
    int expected = 0, bad = 0;
    for (int call = 0; call < CALLS; call++) {
        if (strcmp(how, "lone") == 0 && rank == size - 1)
            expected += failed(call % 2 ? "negative" : "type", uncommitted);
        else if (strcmp(how, "lone") != 0 && strcmp(how, "attributes") != 0 && strcmp(how, "short") != 0)
            expected += failed(how, uncommitted);
        bad += wrong_after_a_right_call();
    }
    if (strcmp(how, "short") == 0) {
        int here = 0;
        for (int call = 0; call < CALLS; call++) { /* the table is in force by now */
            here += is_cut_off(atoi(argv[2]));
            bad += wrong_after_a_right_call();
        }
        report(how, (int[]){rank == 0 ? here : 0, rank == 0 ? 0 : here, bad}, 3);
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    MPI_Type_free(&uncommitted);
    if (strcmp(how, "attributes") == 0)
        report(how, (int[]){copies, deletes, inheriting, handled, bad}, 5);
    else if (strcmp(how, "short") != 0)
        report(how, (int[]){handled, elsewhere, expected, bad}, 4);
    MPI_Finalize();
    return 0;
}
