/* Counts, by the rank they go to, the messages and bytes that MPICH sends through UCX.
 *
 * Preload it (LD_PRELOAD) and take every rank as its own node (MPIR_CVAR_NOLOCAL=1), so that all messages pass here. UCX
 * knows endpoints, not ranks: ct_traffic_learn(rank) says whose endpoint the next message goes to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_RANKS = 64, FIELD_DATATYPE = 1 << 3, CLASS_BITS = 3 };

/* The head of ucp_request_param_t (UCX 1.10 on). */
struct param {
    uint32_t fields, flags;
    void *request, *callback;
    uint64_t datatype;
};
typedef void *(*send_fn)(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct param *param);

static void *endpoints[MOST_RANKS];
static long long messages[MOST_RANKS], bytes[MOST_RANKS], packed[MOST_RANKS], strange;
static int learning = -1;

void ct_traffic_learn(int rank);
long long ct_traffic(long long *messages_to, long long *bytes_to, long long *packed_to, int ranks);
void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct param *param);
void *ucp_tag_send_sync_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct param *param);

void ct_traffic_learn(int rank)
{
    learning = rank;
}

/* What was sent so far to each of `ranks` ranks; `packed` messages are of a derived datatype, and only MPI knows of how
 * many bytes. Returns how many messages went nobody knows where. */
long long ct_traffic(long long *messages_to, long long *bytes_to, long long *packed_to, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        messages_to[i] = messages[i];
        bytes_to[i] = bytes[i];
        packed_to[i] = packed[i];
    }
    return strange;
}

static void note(void *endpoint, size_t count, const struct param *param)
{
    size_t element = 1;
    int is_packed = 0;
    if (param->fields & FIELD_DATATYPE) {
        is_packed = (param->datatype & ((1 << CLASS_BITS) - 1)) != 0;
        element = is_packed ? 0 : param->datatype >> CLASS_BITS;
    }
    if (learning >= 0) {
        endpoints[learning] = endpoint;
        learning = -1;
    }
    for (int i = 0; i < MOST_RANKS; i++)
        if (endpoints[i] == endpoint) {
            messages[i]++;
            bytes[i] += (long long)(count * element);
            packed[i] += is_packed;
            return;
        }
    strange++;
}

void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct param *param)
{
    static send_fn next;
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    note(endpoint, count, param);
    return next(endpoint, buffer, count, tag, param);
}

void *ucp_tag_send_sync_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const struct param *param)
{
    static send_fn next;
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "ucp_tag_send_sync_nbx");
    note(endpoint, count, param);
    return next(endpoint, buffer, count, tag, param);
}
