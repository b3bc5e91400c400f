/* Requests of MPI_Alltoallv_init as the standard lets a program use them: every way to start and to complete them, in any order,
 * among others, with the communicator and the types gone, and where the program waits for something else meanwhile.
 * Prints "wrong=N messages=M": M is what libcolltune sent, 0 where the library carried it out.
 *
 *     alltoallv_persistent [multiple]     with MPI_THREAD_MULTIPLE
 *
 * Linked with count_calls.c. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ROOM = 3 * MOST };

long count_messages(void);

static int rank, size;

typedef struct {
    int counts[MOST], displacements[MOST], sent[ROOM], received[ROOM], call, salt;
    MPI_Request request;
} exchange;

static void fill(exchange *x)
{
    x->call++;
    for (int i = 0; i < ROOM; i++)
        x->received[i] = -1, x->sent[i] = x->salt + 10000 * x->call + 100 * rank + i;
}

static int wrong(const exchange *x)
{
    int bad = 0;
    for (int i = 0; i < size; i++)
        for (int k = 0; k < 3; k++)
            bad += x->received[3 * i + k] != (k < x->counts[i] ? x->salt + 10000 * x->call + 100 * i + 3 * rank + k : -1);
    return bad != 0;
}

/* The communicator and the type go at once: MPI keeps what a request needs. */
static void make(exchange *x, int salt)
{
    MPI_Comm comm;
    MPI_Datatype type;
    *x = (exchange){.salt = 1000000 * salt};
    for (int i = 0; i < size; i++)
        x->counts[i] = (rank + i + salt) % 4, x->displacements[i] = 3 * i;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Alltoallv_init(x->sent, x->counts, x->displacements, type, x->received, x->counts, x->displacements, type, comm,
                       MPI_INFO_NULL, &x->request);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

static int every_way_to_complete(exchange *x)
{
    int bad = 0;
    for (int way = 0; way < 8; way++) {
        int done = 0, index, count;
        MPI_Request both[2] = {MPI_REQUEST_NULL, x->request};
        MPI_Status statuses[2];
        fill(x);
        if (way % 2)
            MPI_Start(&x->request);
        else
            MPI_Startall(1, &x->request);
        switch (way) {
        case 0: MPI_Wait(&x->request, MPI_STATUS_IGNORE); break;
        case 1: MPI_Waitall(2, both, statuses); break;
        case 2: MPI_Waitany(2, both, &index, statuses), bad += index != 1; break;
        case 3: MPI_Waitsome(2, both, &count, &index, statuses), bad += count != 1 || index != 1; break;
        case 4: while (!done) MPI_Test(&x->request, &done, MPI_STATUS_IGNORE); break;
        case 5: while (!done) MPI_Testall(2, both, &done, statuses); break;
        case 6: while (!done) MPI_Testany(2, both, &index, &done, statuses); break;
        default:
            while (!done) MPI_Request_get_status(x->request, &done, MPI_STATUS_IGNORE);
            MPI_Wait(&x->request, statuses);
        }
        bad += both[1] != x->request || x->request == MPI_REQUEST_NULL; /* inactive, not gone */
        MPI_Wait(&x->request, MPI_STATUS_IGNORE);                       /* and so there is nothing to wait for */
        bad += wrong(x);
    }
    return bad;
}

/* Ranks start several at different times and in different orders, beside persistent messages of the program. */
static int many_at_once(exchange *x, int count)
{
    int bad = 0, token = rank, got = -1;
    MPI_Request all[8];
    MPI_Send_init(&token, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD, &all[count]);
    MPI_Recv_init(&got, 1, MPI_INT, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &all[count + 1]);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < count; i++)
            fill(&x[i]), all[i] = x[(i + rank) % count].request;
        got = -1;
        MPI_Startall(count + 2, all);
        MPI_Waitall(count + 2, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++)
            bad += wrong(&x[i]);
        bad += got != (rank + size - 1) % size;
    }
    MPI_Request_free(&all[count]);
    MPI_Request_free(&all[count + 1]);
    return bad;
}

/* The first rank has started and waits for a message that the last one sends once its own exchange is complete; so the exchange
 * must go on while a rank is in another call of MPI. */
static int progress_elsewhere(exchange *x)
{
    int bad = 0, token = 1, last = size - 1;
    for (int round = 0; round < 10; round++) {
        fill(x);
        MPI_Start(&x->request);
        if (rank != last && round % 2 == 0)
            MPI_Recv(&token, 1, MPI_INT, last, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank != last && round % 2)
            MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&x->request, MPI_STATUS_IGNORE);
        for (int i = 0; i < last && rank == last && round % 2 == 0; i++)
            MPI_Send(&token, 1, MPI_INT, i, 9, MPI_COMM_WORLD);
        if (rank == last && round % 2)
            MPI_Barrier(MPI_COMM_WORLD);
        bad += wrong(x);
    }
    return bad;
}

int main(int argc, char **argv)
{
    int level, bad = 0, multiple = argc > 1 && strcmp(argv[1], "multiple") == 0;
    static exchange x[4];
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 4; i++)
        make(&x[i], i);
    long before = count_messages();
    bad += every_way_to_complete(&x[0]);
    bad += progress_elsewhere(&x[1]);
    bad += many_at_once(x, 4);
    MPI_Request_free(&x[1].request);
    make(&x[1], 7);
    bad += many_at_once(x, 4);
    long mine[2] = {bad, count_messages() - before}, all[2];
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong=%ld messages=%ld\n", all[0], all[1]);
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&x[i].request);
    MPI_Finalize();
    return 0;
}
