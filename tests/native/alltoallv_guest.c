/* What a program meets whose MPI_Alltoallv is run by libcolltune. Prints figures, by rank 0, of sums over all ranks.
 *
 *     alltoallv_guest attributes      copies, deletes of an attribute of a communicator that is used and freed; private communicators
 *                                     made of it that inherit an attribute, info or an error handler; calls of the error handler,
 *                                     results that were wrong
 *     alltoallv_guest short BYTES     the first rank has room for one byte less than the last one sends it, of BYTES: calls that were an
 *                                     error there, and elsewhere, results that were wrong afterwards
 *
 * Link with -rdynamic: what is preloaded calls our PMPI_Comm_create. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, CALLS = 8 };

static int rank, size, copies, deletes, handled, inheriting, keyval = MPI_KEYVAL_INVALID;
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
    (void)where, (void)code;
    handled++;
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

static int is_wrong(void)
{
    int bad = 0;
    for (int i = 0; i < 2 * size; i++)
        sent[i] = 1000 * rank + i, received[i] = -1;
    bad += MPI_Alltoallv(sent, counts, places, MPI_INT, received, counts, places, MPI_INT, comm) != MPI_SUCCESS;
    for (int i = 0; i < size; i++)
        bad += received[2 * i] != 1000 * i + 2 * rank || received[2 * i + 1] != 1000 * i + 2 * rank + 1;
    return bad != 0;
}

static void report(const int figures[5])
{
    int all[5];
    MPI_Reduce(figures, all, 5, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d %d %d %d %d\n", all[0], all[1], all[2], all[3], all[4]);
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
    int before = handled; /* MPICH returns no error where a handler of the program was called */
    MPI_Alltoallv(from, all, at, MPI_BYTE, to, room, at, MPI_BYTE, comm);
    free(from), free(to);
    return handled - before;
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;
    MPI_Info info;
    static int value;
    bool cut_off = strcmp(argv[1], "short") == 0;
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
    MPI_Comm_create_keyval(copy, delete, &keyval, NULL);
    MPI_Comm_set_attr(comm, keyval, &value);
    int here = 0, bad = 0;
    for (int call = 0; call < CALLS; call++)
        bad += is_wrong();
    for (int call = 0; call < CALLS && cut_off; call++) { /* the table is in force by now */
        here += is_cut_off(atoi(argv[2]));
        bad += is_wrong();
    }
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    report(cut_off ? (int[5]){rank == 0 ? here : 0, rank == 0 ? 0 : here, bad} : (int[5]){copies, deletes, inheriting, handled, bad});
    MPI_Finalize();
    return 0;
}
