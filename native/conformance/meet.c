#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

#define CT__TAG_RELEASE 31001
#define CT__TAG_COLLECT 31002

/* Waits without holding the core: with more ranks than cores, the others need it to get here. */
static void ct__wait(MPI_Request *request, bool patient)
{
    const struct timespec nap = {0, 1000000};
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done)
        (void)(patient ? nanosleep(&nap, NULL) : sched_yield());
}

static void ct__receive(void *data, int bytes, int from, int tag, bool patient)
{
    MPI_Request request;
    MPI_Irecv(data, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    ct__wait(&request, patient);
}

static void ct__send(const void *data, int bytes, int to, int tag)
{
    MPI_Request request;
    MPI_Isend(data, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    ct__wait(&request, false);
}

void ct_meet_release(int rank, int ranks, bool patient, long *word)
{
    int bit = 1;
    while (bit < ranks && !(rank & bit))
        bit <<= 1;
    if (rank != 0)
        ct__receive(word, (int)sizeof *word, rank - bit, CT__TAG_RELEASE, patient);
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (rank + bit < ranks)
            ct__send(word, (int)sizeof *word, rank + bit, CT__TAG_RELEASE);
}

void ct_meet_collect(int rank, int ranks, struct ct_verdict *verdict)
{
    verdict->rank = rank;
    for (int bit = 1; bit < ranks; bit <<= 1) {
        if (rank & bit) {
            ct__send(verdict, (int)sizeof *verdict, rank - bit, CT__TAG_COLLECT);
            return;
        }
        if (rank + bit < ranks) {
            struct ct_verdict other;
            ct__receive(&other, (int)sizeof other, rank + bit, CT__TAG_COLLECT, false);
            if (!verdict->failed)
                *verdict = other;
        }
    }
}
