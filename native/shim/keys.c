/* Two ways to the launcher. Hydra's proxies speak PMI-1 on the socket PMI_FD: a line each way, and nothing that a later MPI_Init
 * would notice. Open MPI has PMIx, and does not bear that somebody else calls PMIx_Init before it does; so its own call of
 * PMIx_Init comes by here, and the keys are published right after it. PMIx has no header here: what is declared is of its standard
 * (versions 3 to 5).
 *
 * One rank of a node speaks for all of it. Its ranks are put as few progressions: under the first rank of each its number and
 * stride. Who reads begins at rank 0, and goes on at the first rank that no progression has named: as many keys as nodes, where
 * ranks are placed by blocks or in turns. Hydra's proxies have all keys at hand. By PMIx each is a question to one server of the
 * whole job, so the node of rank 0 reads them, and puts what it found under one key more, which the other nodes ask for. */
#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { CT__LINE = 1024 };
/* Puts `text` under the key of rank `first`; gets it: false where there is none. NULL: there is no way. */
static bool (*ct__put)(int first, const char *text);
static bool (*ct__get)(int first, char text[CT__LINE]);
static bool ct__awaited; /* MPI_Init is to come */
static int *ct__ranks, ct__count;
static bool ct__from_one; /* the node of rank 0 reads for all */
enum { CT__FOUND = -1 };  /* in place of a rank: what it found */

static int ct__compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void ct__put_progressions(void)
{
    for (int at = 0, count; at < ct__count && ct__put != NULL; at += count) {
        int left = ct__count - at, stride = left > 1 ? ct__ranks[at + 1] - ct__ranks[at] : 1;
        char text[64];
        for (count = 1; count < left && ct__ranks[at + count] - ct__ranks[at + count - 1] == stride;)
            count++;
        snprintf(text, sizeof text, "%d-%d", count, stride);
        ct__put(ct__ranks[at], text); /* without it the others find that a part is missing */
    }
}

/* --- PMI-1 */

static int ct__socket = -1;
static char ct__space[256];

/* Sends `line` and leaves the answer in it, without the end of the line; or nothing. */
static void ct__ask(char line[CT__LINE])
{
    size_t sent = 0, length = strlen(line), got = 0;
    while (sent < length) {
        ssize_t more = send(ct__socket, line + sent, length - sent, MSG_NOSIGNAL);
        if (more < 0 && errno != EINTR)
            break;
        sent += more < 0 ? 0 : (size_t)more;
    }
    while (sent == length && (got == 0 || line[got - 1] != '\n')) {
        ssize_t more = recv(ct__socket, line + got, CT__LINE - got, 0);
        if (more == 0 || (more < 0 && errno != EINTR))
            break;
        got += more < 0 ? 0 : (size_t)more;
    }
    line[got > 0 && line[got - 1] == '\n' ? got - 1 : 0] = '\0';
}

static bool ct__says(const char *answer, const char *command)
{
    const char *code = strstr(answer, " rc=");
    size_t length = strlen(command);
    return strncmp(answer, "cmd=", 4) == 0 && strncmp(answer + 4, command, length) == 0 &&
           (answer[4 + length] == ' ' || answer[4 + length] == '\0') && (code == NULL || atoi(code + 4) == 0);
}

static bool ct__put_by_pmi(int first, const char *text)
{
    char line[CT__LINE];
    snprintf(line, sizeof line, "cmd=put kvsname=%s key=colltune-%d value=%s\n", ct__space, first, text);
    ct__ask(line);
    return ct__says(line, "put_result");
}

static bool ct__get_by_pmi(int first, char text[CT__LINE])
{
    char line[CT__LINE];
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=colltune-%d\n", ct__space, first);
    ct__ask(line);
    const char *value = strstr(line, " value=");
    return ct__says(line, "get_result") && value != NULL && sscanf(value, " value=%1023s", text) == 1;
}

static void ct__speak_pmi(int socket)
{
    char line[CT__LINE] = "cmd=get_my_kvsname\n";
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
        return;
    ct__socket = socket;
    ct__ask(line);
    const char *name = strstr(line, " kvsname=");
    if (ct__says(line, "my_kvsname") && name != NULL && sscanf(name, " kvsname=%255s", ct__space) == 1)
        ct__put = ct__put_by_pmi, ct__get = ct__get_by_pmi;
}

/* --- PMIx */

#ifdef OPEN_MPI
enum { CT__STRING = 3 }; /* PMIX_STRING */

typedef struct {
    char space[256];
    uint32_t rank;
} ct__process;

typedef struct {
    uint16_t type;
    void *data[3]; /* a union */
} ct__value;

typedef struct {
    char key[512];
    uint32_t flags;
    ct__value value;
} ct__info;

typedef struct {
    ct__process process;
    char key[512];
    ct__value value;
} ct__entry;

static char ct__job[256];

static void ct__find(const char *name, void *function)
{
    /* The library that is loaded is in nobody's scope where the MPI was loaded by dlopen. */
    void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library == NULL ? dlsym(RTLD_DEFAULT, name) : dlsym(library, name);
    if (library != NULL)
        dlclose(library);
    memcpy(function, &symbol, sizeof symbol);
}

static bool ct__put_by_pmix(int first, const char *text)
{
    int (*publish)(const ct__info *, size_t);
    ct__info info = {.value = {.type = CT__STRING, .data = {(void *)text}}};
    snprintf(info.key, sizeof info.key, "colltune-%s-%d", ct__job, first);
    ct__find("PMIx_Publish", &publish);
    return publish != NULL && publish(&info, 1) == 0;
}

static bool ct__get_by_pmix(int first, char text[CT__LINE])
{
    int (*lookup)(ct__entry *, size_t, const ct__info *, size_t);
    ct__entry entry = {.value = {.type = 0}};
    snprintf(entry.key, sizeof entry.key, "colltune-%s-%d", ct__job, first);
    ct__find("PMIx_Lookup", &lookup);
    if (lookup == NULL || lookup(&entry, 1, NULL, 0) != 0 || entry.value.type != CT__STRING || entry.value.data[0] == NULL)
        return false;
    snprintf(text, CT__LINE, "%s", (char *)entry.value.data[0]);
    free(entry.value.data[0]);
    return true;
}

static void ct__after_init(void *process)
{
    if (ct__awaited) {
        snprintf(ct__job, sizeof ct__job, "%s", ((ct__process *)process)->space);
        ct__put = ct__put_by_pmix, ct__get = ct__get_by_pmix, ct__from_one = true;
        ct__put_progressions();
    }
    ct__awaited = false;
}
#endif

/* --- either */

void ct_keys_put(bool hydra, int *ranks, int count)
{
    const char *socket = getenv("PMI_FD");
    qsort(ranks, (size_t)count, sizeof *ranks, ct__compare);
    ct__ranks = ranks, ct__count = count;
    ct__awaited = true;
#ifdef OPEN_MPI
    ct_pmix_began = ct__after_init;
#endif
    if (hydra && socket != NULL) {
        ct__speak_pmi(atoi(socket));
        ct__put_progressions();
    }
}

bool ct_keys_are_there(void) { return ct__get != NULL; }

static bool ct__read_all(int world, int *first)
{
    bool *held = calloc((size_t)world, sizeof *held), all = held != NULL;
    *first = -1;
    for (int rank = 0; rank < world && held != NULL && (all || *first < 0); rank++) {
        char text[CT__LINE];
        int count, stride;
        if (held[rank])
            continue;
        if (!ct__get(rank, text) || sscanf(text, "%d-%d", &count, &stride) != 2 || count < 1 || stride < 1) {
            all = false;
            continue;
        }
        *first = *first < 0 ? rank : *first;
        for (int i = 0; i < count && rank + (long)i * stride < world; i++)
            held[rank + i * stride] = true;
    }
    free(held);
    return all;
}

/* Asks ever more seldom, for a minute. */
static bool ct__await(int *first)
{
    char text[CT__LINE];
    int all = 0;
    for (useconds_t wait_us = 1000; wait_us < 20000000; usleep(wait_us), wait_us += wait_us / 2)
        if (ct__get(CT__FOUND, text))
            return sscanf(text, "%d-%d", &all, first) == 2 && all == 1;
    return false;
}

bool ct_keys_hold_all(int world, int *first)
{
    char text[CT__LINE];
    bool has_rank_0 = ct__ranks[0] == 0; /* sorted, if this node is whole; if not, there is no key of its */
    if (ct__from_one && !has_rank_0 && ct__get(0, text))
        return ct__await(first);
    bool all = ct__read_all(world, first);
    snprintf(text, sizeof text, "%d-%d", all, *first);
    return ct__from_one && has_rank_0 ? ct__put(CT__FOUND, text) && all : all;
}
