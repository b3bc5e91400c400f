/* ct_alltoallv by name, where a communicator's attributes are being deleted, and on those that have its handle then. Each rank prints
 * the results that were wrong. */
#include <colltune_alltoallv.h>
#include <stdio.h>

enum { MOST = 8, CALLS = 6 };

static int wrong;

static void exchange(MPI_Comm comm)
{
    int rank, size, sent[MOST], got[MOST], counts[MOST], places[MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < size; i++)
            sent[i] = 100 * rank + i + call, got[i] = -1, counts[i] = 1, places[i] = i;
        ct_alltoallv(sent, counts, places, MPI_INT, got, counts, places, MPI_INT, comm);
        for (int i = 0; i < size; i++)
            wrong += got[i] != 100 * i + rank + call;
    }
}

static int with_calls(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval, (void)value;
    int found;
    void *there;
    exchange(comm);
    MPI_Comm_get_attr(comm, *(int *)extra, &there, &found);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int rank, early, late, none;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &none, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, with_calls, &early, &none);
    exchange(MPI_COMM_WORLD);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, with_calls, &late, &none);
    for (int round = 0; round < 12; round++) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, round % 3 == 2 ? rank % 2 : 0, round % 2 ? -rank : rank, &comm);
        MPI_Comm_set_attr(comm, early, NULL);
        if (round % 4 >= 2)
            exchange(comm);
        MPI_Comm_set_attr(comm, late, NULL);
        MPI_Comm_free(&comm);
    }
    printf("rank=%d wrong=%d\n", rank, wrong);
    MPI_Comm_free_keyval(&early);
    MPI_Comm_free_keyval(&late);
    MPI_Comm_free_keyval(&none);
    MPI_Finalize();
    return 0;
}
