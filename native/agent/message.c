/* Messages between the ranks of the agent, and lines to its host. */
#include "agent.h"

#include <stdlib.h>
#include <unistd.h>

/* Of a rank in the tree. Who passes a message on was asleep, so a message is through sooner in a tree of few levels. */
enum { CT__CHILDREN = 4 };

void ct_message_print(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written <= 0)
            return; /* nobody listens any more; the end of the input will stop us */
        text += written;
        length -= (size_t)written;
    }
}

int ct_message_forward(int rank, const char *message, int length, const int *members, int count)
{
    int others = 0, position = 0;
    int *order = malloc(sizeof(int) * (size_t)(count + 1));
    if (order == NULL)
        return MPI_ERR_NO_MEM;
    order[others++] = 0;
    for (int i = 0; i < count; i++)
        if (members[i] != 0)
            order[others++] = members[i];
    for (int i = 0; i < others; i++)
        if (order[i] == rank)
            position = i;
    int code = MPI_SUCCESS;
    size_t first = (size_t)position * CT__CHILDREN + 1;
    for (size_t child = first; child < first + CT__CHILDREN && child < (size_t)others && code == MPI_SUCCESS; child++)
        code = MPI_Send(message, length, MPI_BYTE, order[child], CT_TAG_REQUEST, MPI_COMM_WORLD);
    free(order);
    return code;
}

char *ct_message_receive(int tag, int *length, int *code)
{
    MPI_Status status;
    int there = 0;
    *length = -1;
    *code = MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &status);
    if (*code != MPI_SUCCESS || !there)
        return NULL;
    MPI_Get_count(&status, MPI_BYTE, length);
    char *message = malloc((size_t)*length + 1);
    if (message == NULL)
        *code = MPI_ERR_NO_MEM;
    else
        *code = MPI_Recv(message, *length, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, &status);
    return message;
}
