/* Requests travel from rank 0 along a tree over the ranks that take part; the first of these answers.
 *
 * A rank without work sleeps between looks at its inbox, so that it takes no cycles from those that measure.
 * Requests to disjoint sets of ranks run at once. Rank 0 is the one through which all of them go, so it looks after them
 * between its own timed calls, too.
 * The host never sends a request before all those are answered that share a node with it, unless they are for the very
 * same ranks (then the tree, and so the order of arrival, is the same), or rank 0 is the first of both: it sends nothing
 * out before it has ended its own part, and by then all ranks have begun theirs. Rank 0 sends nothing while a communicator
 * is being released. So all ranks see the requests that concern them in one order. */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CT__MEASURE, CT__RELEASE, CT__QUIT };
enum { CT__HEADER = 3 * sizeof(int) };
enum { CT__LOOKS = 3 }; /* in a row, of a rank without work: the network brings a message in over several */
static double const CT__SHORTEST_S = 20e-6, CT__LONGEST_S = 1e-3; /* that such a rank sleeps */
static const char CT__RELEASED[] = "released"; /* from a group's first rank to rank 0; never printed */

typedef struct {
    int kind, slot, fresh;
} ct__header;

typedef struct {
    ct_world *world;
    int *members; /* [size] scratch */
    ct_input input; /* rank 0 */
    int releasing;  /* rank 0: slot that is being released; -1: none */
    struct {
        char *key; /* "ppn beside nodes" */
        unsigned long used;
    } slots[CT_MAX_GROUPS];
    unsigned long clock;
} ct__server;

static int ct__say(ct__server *server, const char *text, size_t length)
{
    if (server->world->rank != 0)
        return MPI_Send(text, (int)length, MPI_BYTE, 0, CT_TAG_RESULT, MPI_COMM_WORLD);
    ct_message_print(text, length);
    return MPI_SUCCESS;
}

static void ct__notice(void *context, long id, int choice)
{
    ct__server *server = context;
    char line[128], others[64] = "";
    ct_watch_glance(&server->world->watch, server->world->nodes.node_of[server->world->rank], others, sizeof others);
    int length = choice < 0 ? snprintf(line, sizeof line, "alive id=%ld%s\n", id, others)
                            : snprintf(line, sizeof line, "trying id=%ld choice=%d\n", id, choice);
    ct__say(server, line, (size_t)length);
}

static int ct__attend(void *context);

static int ct__measure(ct__server *server, const ct__header *header, const ct_request *request, const int *members,
                       int count)
{
    ct_group *group = ct_group_get(header->slot);
    if (header->fresh)
        CT_TRY(ct_group_make(server->world, header->slot, members, count, request->beside, &group));
    ct_text answer = {0};
    int code = group == NULL ? MPI_ERR_COMM : ct_measure(request, group, ct__notice, server->world->rank == 0 ? ct__attend : NULL, server, &answer);
    if (code == MPI_SUCCESS && answer.length > 0)
        code = ct__say(server, answer.text, answer.length);
    free(answer.text);
    return code;
}

static int ct__release(ct__server *server, const ct__header *header)
{
    ct_group *group = ct_group_get(header->slot);
    int rank;
    CT_TRY(group == NULL ? MPI_ERR_COMM : MPI_Comm_rank(group->comm, &rank));
    CT_TRY(ct_synchronise(group->comm)); /* once it is through, all members have this message */
    CT_TRY(ct_group_release(header->slot));
    if (rank == 0 && server->world->rank == 0)
        server->releasing = -1;
    else if (rank == 0)
        return MPI_Send(CT__RELEASED, sizeof CT__RELEASED, MPI_BYTE, 0, CT_TAG_RESULT, MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

/* A message for this rank and the ranks below it in the tree. */
static int ct__handle(ct__server *server, const char *message, int length)
{
    ct__header header;
    memcpy(&header, message, sizeof header);
    const ct_world *world = server->world;
    if (header.kind == CT__QUIT) {
        for (int i = 0; i < world->size; i++)
            server->members[i] = i;
        return ct_message_forward(world->rank, message, length, server->members, world->size);
    }
    ct_request request;
    char why[160];
    if (!ct_request_parse(message + CT__HEADER, (size_t)length - CT__HEADER - 1, &request, why, sizeof why))
        return MPI_ERR_OTHER; /* rank 0 has read the same text without trouble */
    int count = ct_world_members(world, &request, server->members);
    int code = ct_message_forward(world->rank, message, length, server->members, count);
    bool member = false;
    for (int i = 0; i < count; i++)
        member = member || server->members[i] == world->rank;
    if (code == MPI_SUCCESS && member)
        code = header.kind == CT__RELEASE ? ct__release(server, &header)
                                          : ct__measure(server, &header, &request, server->members, count);
    ct_request_free(&request);
    return code;
}

static int ct__send_out(ct__server *server, ct__header header, const char *text)
{
    size_t length = CT__HEADER + strlen(text) + 1; /* an int: no line is longer than CT_MAX_LINE */
    char *message = malloc(length);
    if (message == NULL)
        return MPI_ERR_NO_MEM;
    memcpy(message, &header, sizeof header);
    memcpy(message + CT__HEADER, text, strlen(text) + 1);
    int code = ct__handle(server, message, (int)length);
    free(message);
    return code;
}

/* Finds or makes room for a communicator. Returns its slot; -1 if one must be released first, which is asked for unless
 * this rank is `busy`: it may be one of those that release. */
static int ct__slot(ct__server *server, const char *key, bool busy, int *fresh, int *code)
{
    int oldest = 0;
    *fresh = 0;
    for (int i = 0; i < CT_MAX_GROUPS; i++) {
        if (server->slots[i].key != NULL && strcmp(server->slots[i].key, key) == 0) {
            server->slots[i].used = ++server->clock;
            return i;
        }
        if (server->slots[i].used < server->slots[oldest].used)
            oldest = i;
    }
    if (server->slots[oldest].key != NULL && busy)
        return -1;
    if (server->slots[oldest].key != NULL) {
        char *text = malloc(strlen(server->slots[oldest].key) + 64);
        if (text == NULL)
            return *code = MPI_ERR_NO_MEM, -1;
        sprintf(text, "measure id=0 collective=barrier choice= %s", server->slots[oldest].key);
        server->releasing = oldest;
        free(server->slots[oldest].key);
        server->slots[oldest].key = NULL;
        server->slots[oldest].used = 0;
        *code = ct__send_out(server, (ct__header){CT__RELEASE, oldest, 0}, text);
        free(text);
        return -1;
    }
    server->slots[oldest].key = strdup(key);
    server->slots[oldest].used = ++server->clock;
    *fresh = 1;
    return oldest;
}

typedef enum { CT__LATER, CT__REFUSED, CT__SEND } ct__next;

static void ct__refuse(long id, const char *why)
{
    char answer[256];
    ct_message_print(answer, (size_t)snprintf(answer, sizeof answer, "error id=%ld %s\n", id, why));
}

/* Rank 0: what is to be done about one line of input. `busy`: this rank is in the midst of a measurement, so that what
 * takes this rank, or makes room for a communicator first, has to wait. */
static ct__next ct__prepare(ct__server *server, const char *line, size_t line_length, bool busy, ct__header *header,
                            int *code)
{
    ct_request request;
    char why[160];
    if (!ct_request_parse(line, line_length, &request, why, sizeof why)) {
        ct__refuse(request.id, why);
        return CT__REFUSED;
    }
    int count = ct_world_members(server->world, &request, server->members);
    if (count < 0) {
        ct__refuse(request.id, "no such nodes or ppn in this job");
        ct_request_free(&request);
        return CT__REFUSED;
    }
    bool mine = false;
    for (int i = 0; i < count; i++)
        mine = mine || server->members[i] == server->world->rank;
    const char *nodes = strstr(line, "nodes=");
    size_t length = strcspn(nodes, " \t\r\n");
    char *key = malloc(length + 64);
    header->slot = -1;
    if (key == NULL)
        *code = MPI_ERR_NO_MEM;
    else if (!(busy && mine)) {
        sprintf(key, "ppn=%d beside=%d %.*s", request.ppn, request.beside, (int)length, nodes);
        header->slot = ct__slot(server, key, busy, &header->fresh, code);
    }
    free(key);
    ct_request_free(&request);
    return header->slot < 0 || *code != MPI_SUCCESS ? CT__LATER : CT__SEND;
}

/* Rank 0: acts on one line that is complete. Returns whether there was one. */
static bool ct__next_line(ct__server *server, bool busy, int *code)
{
    ct__header header = {CT__MEASURE, -1, 0};
    size_t length;
    const char *start = server->releasing < 0 ? ct_input_line(&server->input, &length) : NULL;
    if (start == NULL)
        return false;
    const char *lost = server->input.lost;
    /* The end in words: Open MPI's launcher does not hand on that a pipe was closed. */
    if (lost == NULL && length == 4 && memcmp(start, "quit", 4) == 0) {
        ct_input_end(&server->input);
        return false;
    }
    /* The line leaves the buffer before it is acted on: while this rank measures, it reads the lines that follow. */
    char *line = lost == NULL ? malloc(length + 1) : NULL;
    if (line == NULL) {
        ct__refuse(-1, lost != NULL ? lost : "no memory for a request");
        ct_input_drop(&server->input);
        return true;
    }
    memcpy(line, start, length);
    line[length] = '\0';
    ct__next next = ct__prepare(server, line, length, busy, &header, code);
    if (next != CT__LATER)
        ct_input_drop(&server->input);
    if (next == CT__SEND)
        *code = ct__send_out(server, header, line);
    free(line);
    return next != CT__LATER;
}

/* A rank without work looks again after an eighth of the time that it has been idle: soon where the next request is on
 * its way, and seldom where the host, which may run on the same cores, is at work on it. */
static void ct__sleep(double idle_s)
{
    double sleep_s = idle_s / 8.0;
    sleep_s = sleep_s < CT__SHORTEST_S ? CT__SHORTEST_S : sleep_s > CT__LONGEST_S ? CT__LONGEST_S : sleep_s;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * sleep_s)}, NULL);
}

/* Rank 0: passes on one answer from elsewhere, if there is one. */
static int ct__pass_on(ct__server *server, bool *any)
{
    int length, code;
    char *message = ct_message_receive(CT_TAG_RESULT, &length, &code);
    *any = message != NULL;
    if (message != NULL && code == MPI_SUCCESS) {
        message[length] = '\0';
        if (strcmp(message, CT__RELEASED) == 0)
            server->releasing = -1;
        else
            ct_message_print(message, (size_t)length);
    }
    free(message);
    return code;
}

/* Rank 0, in the midst of a measurement: those that measure elsewhere get their requests, and their answers go out. */
static int ct__attend(void *context)
{
    ct__server *server = context;
    bool any = true;
    int code = MPI_SUCCESS;
    while (any && code == MPI_SUCCESS)
        code = ct__pass_on(server, &any);
    ct_input_read(&server->input, 0);
    while (code == MPI_SUCCESS && ct__next_line(server, true, &code))
        ;
    return code;
}

/* Seconds without a request or an answer after which the host must be dead. */
static double ct__silence(void)
{
    const char *text = getenv("COLLTUNE_SILENCE_S");
    double seconds = text != NULL ? atof(text) : 0.0;
    return seconds > 0.0 ? seconds : 1800.0;
}

/* Open MPI's launcher outlives a host that was killed, and keeps our input open: silence must end the job then. */
static int ct__serve_first(ct__server *server)
{
    int code = MPI_SUCCESS;
    double silence = ct__silence(), heard = MPI_Wtime();
    while (code == MPI_SUCCESS) {
        bool any;
        code = ct__pass_on(server, &any);
        if (code == MPI_SUCCESS && !ct__next_line(server, false, &code) && code == MPI_SUCCESS && !any) {
            if (server->input.ended && server->releasing < 0)
                return ct__send_out(server, (ct__header){CT__QUIT, 0, 0}, "");
            if (!ct_input_read(&server->input, 1)) {
                server->input.ended = server->input.ended || MPI_Wtime() - heard > silence;
                continue;
            }
        }
        heard = MPI_Wtime();
    }
    return code;
}

static int ct__serve_other(ct__server *server)
{
    for (double heard = MPI_Wtime();;) {
        int length, code = MPI_SUCCESS;
        char *message = NULL;
        for (int look = 0; look < CT__LOOKS && message == NULL && code == MPI_SUCCESS; look++)
            message = ct_message_receive(CT_TAG_REQUEST, &length, &code);
        if (code != MPI_SUCCESS)
            return code;
        if (message == NULL) {
            ct__sleep(MPI_Wtime() - heard);
            continue;
        }
        ct__header header;
        memcpy(&header, message, sizeof header);
        code = ct__handle(server, message, length);
        free(message);
        if (code != MPI_SUCCESS || header.kind == CT__QUIT)
            return code;
        heard = MPI_Wtime();
    }
}

int ct_dispatch_serve(ct_world *world)
{
    ct__server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return MPI_ERR_NO_MEM;
    server->world = world;
    server->releasing = -1;
    server->members = malloc(sizeof(int) * (size_t)world->size);
    int code = server->members == NULL ? MPI_ERR_NO_MEM
               : world->rank == 0      ? ct__serve_first(server)
                                       : ct__serve_other(server);
    for (int i = 0; i < CT_MAX_GROUPS; i++)
        free(server->slots[i].key);
    free(server->members);
    free(server->input.text);
    free(server);
    return code;
}
