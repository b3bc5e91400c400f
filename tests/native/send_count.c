/* Counts the messages that MPICH sends through UCX: which algorithm ran shows in who sent how many.
 *
 * Preload it (LD_PRELOAD) and take every rank as its own node (MPIR_CVAR_NOLOCAL=1), so that all messages pass here.
 * ct_sends() gives the count of the calling process so far.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef void *(*send_fn)(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *param);

static long sends;

long ct_sends(void);
void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *param);
void *ucp_tag_send_sync_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *param);

long ct_sends(void)
{
    return sends;
}

void *ucp_tag_send_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *param)
{
    static send_fn next;
    if (next == NULL)
        *(void **) &next = dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    sends++;
    return next(endpoint, buffer, count, tag, param);
}

void *ucp_tag_send_sync_nbx(void *endpoint, const void *buffer, size_t count, uint64_t tag, const void *param)
{
    static send_fn next;
    if (next == NULL)
        *(void **) &next = dlsym(RTLD_NEXT, "ucp_tag_send_sync_nbx");
    sends++;
    return next(endpoint, buffer, count, tag, param);
}
