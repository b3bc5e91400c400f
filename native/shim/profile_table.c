#include "profile.h"

#include <pthread.h>

ct_profile_state ct_profile;

static pthread_mutex_t ct__lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t ct_profile_key(int class, ct_function function, ct_form form, ct_op_class op, uint64_t size_bytes)
{
    int bin = size_bytes == 0 ? 0 : 64 - __builtin_clzll(size_bytes);
    return 1u | (uint64_t)bin << 1 | (uint64_t)function << 8 | (uint64_t)form << 16 | (uint64_t)op << 20 |
           (uint64_t)(class + 1) << 32;
}

int ct_profile_class_of(ct_comm *comm)
{
    if (comm == NULL)
        return -1;
    if (comm->data[CT_MODULE_PROFILE] != NULL)
        return (int)(intptr_t)comm->data[CT_MODULE_PROFILE] - 1;
    ct_profile_class new = {.size = (uint32_t)comm->size, .remote_size = (uint32_t)comm->remote_size,
                            .nodes = (uint32_t)comm->nodes, .ppn = (uint32_t)comm->ppn, .even = comm->even};
    pthread_mutex_lock(&ct__lock);
    int count = atomic_load(&ct_profile.class_count), at = 0;
    for (; at < count; at++) {
        ct_profile_class *known = &ct_profile.classes[at];
        if (known->size == new.size && known->remote_size == new.remote_size && known->nodes == new.nodes &&
            known->ppn == new.ppn && known->even == new.even)
            break;
    }
    if (at == count && count < CT_PROFILE_CLASSES) {
        ct_profile.classes[at] = new;
        atomic_store(&ct_profile.class_count, count + 1);
    }
    if (at < CT_PROFILE_CLASSES) {
        ct_profile.classes[at].count++;
        comm->data[CT_MODULE_PROFILE] = (void *)(intptr_t)(at + 1);
    }
    pthread_mutex_unlock(&ct__lock);
    return at < CT_PROFILE_CLASSES ? at : -1;
}

ct_profile_record *ct_profile_find(uint64_t key)
{
    unsigned at = (unsigned)((key * 0x9e3779b97f4a7c15ULL) >> 48) % CT_PROFILE_RECORDS;
    for (unsigned i = 0; i < CT_PROFILE_RECORDS; i++, at = (at + 1) % CT_PROFILE_RECORDS) {
        ct_profile_record *record = &ct_profile.records[at];
        uint64_t there = atomic_load_explicit(&record->key, memory_order_relaxed);
        if (there == key)
            return record;
        if (there != 0)
            continue;
        /* A full table would be searched to its end at each call. */
        if (atomic_load_explicit(&ct_profile.record_count, memory_order_relaxed) > CT_PROFILE_RECORDS * 3 / 4)
            return NULL;
        if (atomic_compare_exchange_strong(&record->key, &there, key)) {
            atomic_fetch_add(&ct_profile.record_count, 1);
            return record;
        }
        if (there == key)
            return record;
    }
    return NULL;
}
