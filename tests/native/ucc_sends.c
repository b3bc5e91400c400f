/* Counts the messages that UCC sends for a collective: ucc_sends RANKS COLLECTIVE BYTES... prints "BYTES SENT" for each.
 *
 * The ranks are processes of this one, and gather what UCC needs to begin over shared memory: no MPI takes part.
 * "no library" and the like where UCC does not begin. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucc/api/ucc.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { ROUNDS = 256, RANKS = 8, PLACE = 1 << 16, LARGEST = 1 << 22 };

/* What the ranks show each other, in turns that each of them counts alike. */
static struct {
    atomic_int here[ROUNDS];
    char place[ROUNDS][RANKS][PLACE];
} *shared;

static int ranks, rank, turn;
static long sent;

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*next)(ucp_ep_h, const void *, size_t, ucp_tag_t, const ucp_request_param_t *);
    *(void **)&next = dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    sent++;
    return next(ep, buffer, count, tag, param);
}

struct gathering {
    int turn;
    size_t bytes;
    char *to;
};

static ucc_status_t gather(void *from, void *to, size_t bytes, void *info, void **request)
{
    struct gathering *one = malloc(sizeof(*one));
    (void)info;
    if (one == NULL || bytes > PLACE || turn == ROUNDS)
        return UCC_ERR_NO_MEMORY;
    *one = (struct gathering){turn++, bytes, to};
    memcpy(shared->place[one->turn][rank], from, bytes);
    atomic_fetch_add(&shared->here[one->turn], 1);
    *request = one;
    return UCC_OK;
}

static ucc_status_t gathered(void *request)
{
    struct gathering *one = request;
    if (atomic_load(&shared->here[one->turn]) < ranks)
        return UCC_INPROGRESS;
    for (int other = 0; other < ranks; other++)
        memcpy(one->to + (size_t)other * one->bytes, shared->place[one->turn][other], one->bytes);
    return UCC_OK;
}

static ucc_status_t forget(void *request)
{
    free(request);
    return UCC_OK;
}

/* The sum of ``mine`` over all ranks. What a rank has sent leaves it only while UCC makes progress. */
static long sum(ucc_context_h context, long mine)
{
    long all[RANKS], total = 0;
    void *request;
    if (gather(&mine, all, sizeof(mine), NULL, &request) != UCC_OK)
        exit(2);
    while (gathered(request) == UCC_INPROGRESS) {
        if (context != NULL)
            ucc_context_progress(context);
        usleep(50);
    }
    forget(request);
    for (int other = 0; other < ranks; other++)
        total += all[other];
    return total;
}

static void require(ucc_context_h context, ucc_status_t status, const char *what)
{
    if (sum(context, status < 0) == 0)
        return;
    if (rank == 0)
        printf("no %s\n", what);
    fflush(stdout);
    _exit(0);
}

static void run(ucc_context_h context, ucc_team_h team, ucc_coll_type_t kind, size_t bytes, char *from, char *to)
{
    int each = kind == UCC_COLL_TYPE_ALLGATHER || kind == UCC_COLL_TYPE_ALLTOALL;
    size_t count = bytes / 4, all = each ? count * (size_t)ranks : count;
    ucc_coll_args_t args = {.coll_type = kind, .op = UCC_OP_SUM};
    ucc_coll_req_h request;
    long before = sent, total;
    args.src.info = (ucc_coll_buffer_info_t){from, kind == UCC_COLL_TYPE_ALLTOALL ? all : count, UCC_DT_FLOAT32,
                                             UCC_MEMORY_TYPE_HOST};
    args.dst.info = (ucc_coll_buffer_info_t){to, all, UCC_DT_FLOAT32, UCC_MEMORY_TYPE_HOST};
    if (ucc_collective_init(&args, &request, team) != UCC_OK || ucc_collective_post(request) != UCC_OK)
        exit(3);
    while (ucc_collective_test(request) == UCC_INPROGRESS)
        ucc_context_progress(context);
    ucc_collective_finalize(request);
    total = sum(context, sent - before);
    if (rank == 0)
        printf("%zu %ld\n", bytes, total);
}

static void be_a_rank(ucc_coll_type_t kind, int count, char **sizes)
{
    ucc_lib_params_t lib_params = {.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE, .thread_mode = UCC_THREAD_SINGLE};
    ucc_context_params_t context_params = {.mask = UCC_CONTEXT_PARAM_FIELD_OOB};
    ucc_team_params_t team_params = {.mask = UCC_TEAM_PARAM_FIELD_OOB};
    ucc_lib_config_h lib_config;
    ucc_context_config_h context_config;
    ucc_lib_h library;
    ucc_context_h context = NULL;
    ucc_team_h team;
    ucc_status_t status;
    char *from = calloc(1, LARGEST), *to = calloc(1, LARGEST);
    ucc_oob_coll_t oob = {.allgather = gather, .req_test = gathered, .req_free = forget, .coll_info = NULL,
                          .n_oob_eps = (uint32_t)ranks, .oob_ep = (uint32_t)rank};
    if (from == NULL || to == NULL)
        exit(2);
    context_params.oob = oob;
    team_params.oob = oob;
    status = ucc_lib_config_read(NULL, NULL, &lib_config);
    if (status == UCC_OK)
        status = ucc_init(&lib_params, lib_config, &library);
    require(NULL, status, "library");
    status = ucc_context_config_read(library, NULL, &context_config);
    if (status == UCC_OK)
        status = ucc_context_create(library, &context_params, context_config, &context);
    require(NULL, status, "context");
    status = ucc_team_create_post(&context, 1, &team_params, &team);
    require(context, status, "team");
    while ((status = ucc_team_create_test(team)) == UCC_INPROGRESS)
        ucc_context_progress(context);
    require(context, status, "team");
    for (int one = 0; one < count; one++)
        run(context, team, kind, strtoul(sizes[one], NULL, 10), from, to);
    fflush(stdout);
    /* UCC takes its connections apart together with the others: a rank that ends needs none of that. */
    _exit(0);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        ucc_coll_type_t kind;
    } known[] = {{"allreduce", UCC_COLL_TYPE_ALLREDUCE}, {"bcast", UCC_COLL_TYPE_BCAST},
                 {"allgather", UCC_COLL_TYPE_ALLGATHER}, {"alltoall", UCC_COLL_TYPE_ALLTOALL},
                 {"reduce", UCC_COLL_TYPE_REDUCE}};
    int status, failed = 0, file = count > 4 && strcmp(words[1], "rank") == 0 ? atoi(words[3]) : -1;
    char number[16], place[16];
    if (file < 0) {
        /* Each rank is a program of its own: UCX names a process when it is loaded. */
        ranks = count > 2 ? atoi(words[1]) : 0;
        file = memfd_create("ranks", 0);
        if (ranks < 2 || ranks > RANKS || file < 0 || ftruncate(file, sizeof(*shared)) != 0)
            return 1;
        for (rank = 0; rank < ranks; rank++)
            if (fork() == 0) {
                char *more[64] = {words[0], "rank", number, place};
                snprintf(number, sizeof(number), "%d", rank);
                snprintf(place, sizeof(place), "%d", file);
                for (int one = 1; one < count && one < 59; one++)
                    more[one + 3] = words[one];
                execv("/proc/self/exe", more);
                exit(1);
            }
        while (wait(&status) > 0)
            failed |= status != 0;
        return failed;
    }
    rank = atoi(words[2]);
    ranks = atoi(words[4]);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    for (size_t one = 0; shared != MAP_FAILED && one < sizeof(known) / sizeof(*known); one++)
        if (strcmp(words[5], known[one].name) == 0)
            be_a_rank(known[one].kind, count - 6, words + 6);
    return 1;
}
