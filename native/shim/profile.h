/* The profile: what collectives a program calls, on which communicators, with how many bytes, and for how long.
 *
 * One table for each rank, of fixed size: a record for each (class of communicator, function, form, class of
 * operation, bin of sizes). Counters are atomic where MPI may be called by several threads at a time, plain elsewhere.
 * In MPI_Finalize the tables are merged along a tree, and rank 0 writes one file of text lines. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "shim.h"

typedef enum {
    CT_OP_NONE, CT_OP_ARITHMETIC, CT_OP_EXTREMUM, CT_OP_LOGICAL, CT_OP_BITWISE, CT_OP_LOCATION, CT_OP_COMMUTATIVE,
    CT_OP_ORDERED, CT_OP_CLASSES
} ct_op_class;

/* What a call moves. `size_bytes` is what its algorithm is chosen by, as in a scenario: one block of allgather(v),
 * gather(v), scatter(v) and alltoall(v, w), mean where they differ; the whole vector elsewhere. */
typedef struct {
    uint64_t size_bytes;
    uint64_t own_bytes; /* of this rank: its block, its vector, or all its blocks to others and itself */
    bool in_place;
    bool blocks_seen;
    bool gaps; /* alltoall(v, w): the data have gaps */
    uint64_t blocks, empty_blocks, block_bytes, self_bytes, largest_bytes;
    double square_bytes;
} ct_profile_extent;

void ct_profile_measure(const ct_call *call, ct_profile_extent *extent);
ct_op_class ct_op_builtin(MPI_Op op); /* CT_OP_NONE: it is none of MPI's own */
ct_op_class ct_profile_op(MPI_Op op);

enum { CT_PROFILE_RECORDS = 1 << 12, CT_PROFILE_CLASSES = 1 << 10 };

#define CT_PROFILE_COUNTERS(X)                                                                                         \
    X(calls)         /* by this rank; of persistent ones: starts */                                                    \
    X(inits)         /* persistent */                                                                                  \
    X(bytes)         /* of this rank's own data */                                                                     \
    X(time_ns)       /* inside the calls; of the other forms than blocking: of the call alone, not of its completion */ \
    X(size_sum)      /* of the size that the bin is of */                                                              \
    X(size_least)    /* complement, so that zero is the neutral element of a maximum */                                \
    X(size_most)                                                                                                       \
    X(in_place)      /* calls */                                                                                       \
    X(gaps)          /* calls of alltoallv and alltoallw whose data have gaps */                                       \
    X(root_zero)     /* calls with root 0 */                                                                           \
    X(root_repeated) /* calls with the root of the call before */                                                      \
    X(blocks)        /* v-variants: counts seen */                                                                     \
    X(empty_blocks)                                                                                                    \
    X(block_bytes)   /* sum over blocks */                                                                             \
    X(self_bytes)    /* of blocks to oneself */                                                                        \
    X(largest_bytes) /* sum over calls of the largest block */                                                         \
    X(square_bytes)  /* double: sum of squared blocks */                                                               \
    X(faults)        /* page faults in sampled calls that follow one with page faults, each as often as it stands for */ \
    X(fault_calls)   /* calls that all sampled ones stand for */

typedef enum {
#define CT__NAME(NAME) CT_PROFILE_##NAME,
    CT_PROFILE_COUNTERS(CT__NAME)
#undef CT__NAME
        CT_PROFILE_COUNTER_COUNT
} ct_profile_counter;

/* A class of communicators: those of one form. */
typedef struct {
    uint32_t size, remote_size, nodes, ppn;
    uint32_t even;  /* every node has `ppn` ranks */
    uint32_t count; /* communicators of this form that this rank has used */
} ct_profile_class;

typedef struct {
    _Atomic uint64_t key; /* 0: free */
    _Atomic uint64_t counters[CT_PROFILE_COUNTER_COUNT];
    _Atomic int last_root; /* + 1 */
    _Atomic bool faulted;  /* the sampled call before */
} ct_profile_record;

typedef struct {
    ct_profile_record *records; /* [CT_PROFILE_RECORDS] */
    ct_profile_class *classes;  /* [CT_PROFILE_CLASSES] */
    _Atomic int class_count;
    _Atomic int record_count;
    _Atomic uint64_t lost;      /* calls for which there was no record */
    char path[1024];
} ct_profile_state;

extern ct_profile_state ct_profile;

static inline void ct_profile_add(ct_profile_record *record, ct_profile_counter counter, uint64_t value)
{
    _Atomic uint64_t *at = &record->counters[counter];
    if (ct_job.threads_multiple)
        atomic_fetch_add_explicit(at, value, memory_order_relaxed);
    else
        atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + value, memory_order_relaxed);
}

/* A record with its class, as merged and written. */
typedef struct {
    ct_profile_class class;
    uint64_t key; /* less the class */
    uint64_t counters[CT_PROFILE_COUNTER_COUNT];
} ct_profile_row;

/* Writes a file. `rank` < 0: of all ranks. Async-signal-safe. Returns false, with errno, if it cannot. */
bool ct_profile_write(int rank, const char *why, const ct_profile_row *rows, int count, uint64_t elapsed_ns,
                      uint64_t lost);
bool ct_write_all(int file, const char *text, size_t length); /* as far as there is room on the disk. Async-signal-safe */
/* Takes away what a rank has written before. */
void ct_profile_unwrite(int rank);

/* Gathers rows of `size` bytes up a binomial tree to rank 0. `join` makes one set of `count` rows, of two sets in a row,
 * and returns how many are left. Returns how many rows rank 0 has; 0 elsewhere. */
typedef int ct_profile_join(void *rows, int count, void *context);
int ct_profile_collect(void *rows, size_t size, int count, int tag, ct_profile_join *join, void *context);

/* Rows of this rank, `rows` [CT_PROFILE_RECORDS + CT_PROFILE_CLASSES]. Returns how many. Async-signal-safe. */
int ct_profile_rows(ct_profile_row *rows);
/* Collective: writes the merged tables, on rank 0. False: a rank has no memory for it, and nothing is written. */
bool ct_profile_merge(void);
