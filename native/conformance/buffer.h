/* Buffers that know what they should hold after the call: guards, gaps and data alike. */
#pragma once

#include "type.h"

struct ct_verdict;

/* `data` is what MPI gets; it lies between two guards. Everything is filled with a pattern, and what is put or
 * expected goes on top of it, so that one comparison of the whole memory finds any byte that is not as it should. */
struct ct_buffer {
    const struct ct_type *type;
    unsigned char *memory, *expected, *data;
    size_t bytes; /* of memory, guards included */
    unsigned salt;
};

/* Room for `elements` of `type`. Ends the job with a message when there is no memory. */
void ct_buffer_open(struct ct_buffer *buffer, const struct ct_type *type, size_t elements, unsigned salt);

/* `count` elements from element `at` on hold the stream from source to target, starting at its first byte:
 * put says that they do before the call, expect that they must after it. */
void ct_buffer_put(struct ct_buffer *buffer, size_t at, size_t count, unsigned source, unsigned target);
void ct_buffer_expect(struct ct_buffer *buffer, size_t at, size_t count, unsigned source, unsigned target);

/* The same for reductions: element at + i holds contributor's value of index first + i, or the reduction of the
 * values of the contributors base, base + 1 ... base + contributors - 1, in this order. */
void ct_buffer_put_values(struct ct_buffer *buffer, enum ct_op op, size_t at, size_t count, size_t first,
                          unsigned contributor);
void ct_buffer_expect_result(struct ct_buffer *buffer, enum ct_op op, size_t at, size_t count, size_t first,
                             unsigned base, unsigned contributors);

/* Data of these elements may be anything after the call; their gaps may not. */
void ct_buffer_allow(struct ct_buffer *buffer, size_t at, size_t count);

/* Compares, notes the first difference in the verdict under `name`, and frees. */
void ct_buffer_close(struct ct_buffer *buffer, const char *name, struct ct_verdict *verdict);
