/* One call of one collective, with everything that distinguishes it from the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"
#include "comm.h"
#include "functions.h"
#include "type.h"
#include "report.h"

enum ct_case_shape { CT_SHAPE_EVEN, CT_SHAPE_RAMP, CT_SHAPE_HOLES, CT_SHAPE_SINGLE, CT_SHAPE_COUNT };
enum ct_root { CT_ROOT_FIRST, CT_ROOT_MIDDLE, CT_ROOT_LAST, CT_ROOT_COUNT };

struct ct_case;
struct ct_flight;

enum ct_scan { CT_SCAN_NOT, CT_SCAN_OWN, CT_SCAN_OTHERS }; /* whether a rank's own value is in its result */

/* What a collective takes; `run` makes the call, and compares; `open` makes the buffers of one call. */
struct ct_collective {
    const char *name;
    ct_function call;
    bool has_root, reduces, has_shapes, has_in_place, has_data, is_nonblocking;
    bool is_personal;    /* each rank gets other data */
    enum ct_scan scans;  /* then it is not defined between groups */
    bool count_is_block; /* the count is one block per rank, not the whole vector */
    bool size_is_block;  /* and so is the size that people and benchmarks name for it */
    void (*run)(const struct ct_case *c, struct ct_verdict *verdict);
    void (*open)(const struct ct_case *c, unsigned salt, struct ct_flight *flight);
};

/* count: elements of a block or of the whole vector, as the collective takes it. root_side: the side of an
 * inter-communicator that the root is on. */
struct ct_case {
    long number;
    const struct ct_collective *collective;
    const struct ct_case_comm *comm;
    enum ct_type_name type;
    enum ct_op op;
    enum ct_root root;
    enum ct_case_shape shape;
    int count, root_side;
    bool in_place;
};

/* The whole case in one line of key=value words; `ranks` is the number that take part, all sides together. */
void ct_case_format(const struct ct_case *c, int ranks, char text[CT_CASE_TEXT]);

/* A type as one side of a call uses it, and the elements of it that make up one element of the case's type. */
struct ct_view {
    const struct ct_type *type;
    int per;
};

/* The sides differ for CT_TYPE_MIXED only, and change places from case to case. Every rank receives the same type:
 * with different ones, as the standard allows too, allgatherv of MPICH 4 and 5 ends in a truncated message whatever
 * file it has loaded (its ring cuts blocks by the number of elements). */
enum ct_case_side { CT_SIDE_SEND, CT_SIDE_RECEIVE };
struct ct_view ct_case_view(const struct ct_case *c, enum ct_case_side side);

/* Who is what in a collective with a root. root: as MPI wants it, MPI_ROOT and MPI_PROC_NULL included. A leaf is at
 * the other end of the root's data; in an intra-communicator the root is one of its own leaves. */
struct ct_role {
    int root, root_rank, root_side;
    bool is_root, is_leaf;
};

struct ct_role ct_case_role(const struct ct_case *c);

/* Values for arguments that the standard says are not significant on this rank; any library may get these. */
struct ct_junk {
    void *buffer;
    int count;
    MPI_Datatype type;
};

struct ct_junk ct_case_junk(const struct ct_case *c);

/* Elements of block `index` of `blocks`, and the displacements that go with the shape: one after the other, with
 * holes between, or in reverse order. Both in elements of the case's type. Returns elements the buffer needs. */
int ct_shape_count(enum ct_case_shape shape, int count, int index, int blocks);
size_t ct_shape_displace(enum ct_case_shape shape, const int *counts, int blocks, int *displacements);
