#define _POSIX_C_SOURCE 200809L
#include "buffer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "report.h"

#define CT__GUARD_BYTES 64

/* Another byte for each buffer and, as good as always, on each rank: a gap that was copied from elsewhere shows. */
static int ct__next_fill(void)
{
    static unsigned opened;
    return (int)(ct_pattern_mix((unsigned)getpid(), opened++, 0, 0) & 0xff);
}

void ct_buffer_open(struct ct_buffer *buffer, const struct ct_type *type, size_t elements, unsigned salt)
{
    buffer->type = type;
    buffer->bytes = elements * type->extent + 2 * CT__GUARD_BYTES;
    buffer->salt = salt;
    buffer->memory = malloc(buffer->bytes);
    buffer->expected = malloc(buffer->bytes);
    if (buffer->memory == NULL || buffer->expected == NULL) {
        fprintf(stderr, "conformance: no memory for a buffer of %zu bytes; lower --max-bytes\n", buffer->bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
        abort();
    }
    buffer->data = buffer->memory + CT__GUARD_BYTES;
    const int fill = ct__next_fill();
    memset(buffer->memory, fill, buffer->bytes);
    memset(buffer->expected, fill, buffer->bytes);
}

static unsigned char *ct__expected(const struct ct_buffer *buffer, size_t element)
{
    return buffer->expected + CT__GUARD_BYTES + element * buffer->type->extent;
}

void ct_buffer_expect(struct ct_buffer *buffer, size_t at, size_t count, unsigned source, unsigned target)
{
    const struct ct_type *type = buffer->type;
    uint64_t word = 0;
    size_t position = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char *element = ct__expected(buffer, at + i);
        for (int p = 0; p < type->pieces; p++) {
            for (size_t k = 0; k < type->piece[p].bytes; k++, position++) {
                word = position % 8 == 0 ? ct_pattern_mix(source, target, position / 8, buffer->salt) : word >> 8;
                element[type->piece[p].offset + k] = (unsigned char)word;
            }
        }
    }
}

static void ct__make_so(struct ct_buffer *buffer, size_t at, size_t count)
{
    memcpy(buffer->data + at * buffer->type->extent, ct__expected(buffer, at), count * buffer->type->extent);
}

void ct_buffer_put(struct ct_buffer *buffer, size_t at, size_t count, unsigned source, unsigned target)
{
    ct_buffer_expect(buffer, at, count, source, target);
    ct__make_so(buffer, at, count);
}

void ct_buffer_expect_result(struct ct_buffer *buffer, enum ct_op op, size_t at, size_t count, size_t first,
                             unsigned base, unsigned contributors)
{
    const struct ct_type *type = buffer->type;
    for (size_t i = 0; i < count; i++) {
        struct ct_value value = ct_op_value(op, type, base, first + i, buffer->salt);
        for (unsigned other = 1; other < contributors; other++)
            value = ct_op_combine(op, type, value, ct_op_value(op, type, base + other, first + i, buffer->salt));
        ct_value_store(type, ct__expected(buffer, at + i), value);
    }
}

void ct_buffer_put_values(struct ct_buffer *buffer, enum ct_op op, size_t at, size_t count, size_t first,
                          unsigned contributor)
{
    ct_buffer_expect_result(buffer, op, at, count, first, contributor, 1);
    ct__make_so(buffer, at, count);
}

void ct_buffer_allow(struct ct_buffer *buffer, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++)
        for (int p = 0; p < buffer->type->pieces; p++)
            memcpy(ct__expected(buffer, i) + buffer->type->piece[p].offset,
                   buffer->data + i * buffer->type->extent + buffer->type->piece[p].offset,
                   buffer->type->piece[p].bytes);
}

static void ct__describe(const struct ct_buffer *buffer, const char *name, size_t at, struct ct_verdict *verdict)
{
    const unsigned char got = buffer->memory[at], expected = buffer->expected[at];
    if (at < CT__GUARD_BYTES) {
        ct_verdict_fail(verdict, "%s: wrote %zu bytes before its start (0x%02x)", name, CT__GUARD_BYTES - at, got);
    } else if (at >= buffer->bytes - CT__GUARD_BYTES) {
        ct_verdict_fail(verdict, "%s: wrote byte %zu after its end (0x%02x)", name,
                        at - (buffer->bytes - CT__GUARD_BYTES), got);
    } else {
        size_t element = (at - CT__GUARD_BYTES) / buffer->type->extent;
        size_t offset = (at - CT__GUARD_BYTES) % buffer->type->extent;
        ct_verdict_fail(verdict, "%s: %s %zu of element %zu is 0x%02x, not 0x%02x", name,
                        ct_type_holds(buffer->type, offset) ? "byte" : "gap byte", offset, element, got, expected);
    }
}

void ct_buffer_close(struct ct_buffer *buffer, const char *name, struct ct_verdict *verdict)
{
    if (memcmp(buffer->memory, buffer->expected, buffer->bytes) != 0) {
        size_t at = 0;
        while (buffer->memory[at] == buffer->expected[at])
            at++;
        ct__describe(buffer, name, at, verdict);
    }
    free(buffer->memory);
    free(buffer->expected);
    buffer->memory = buffer->expected = buffer->data = NULL;
}
