/* Lines from the host, whatever bytes they hold. One that is too long to be kept is read to its end and then told of. */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CT__CHUNK = 1 << 16 };

/* Room for one more chunk. False: the line that is being read has become too long, or there is no memory for it. */
static bool ct__reserve(ct_input *input)
{
    if (input->capacity - input->length >= CT__CHUNK)
        return true;
    size_t capacity = input->capacity + (input->capacity > CT__CHUNK ? input->capacity : CT__CHUNK);
    char *larger = input->capacity <= CT_MAX_LINE ? realloc(input->text, capacity) : NULL;
    if (larger == NULL) {
        input->lost = input->capacity <= CT_MAX_LINE ? "no memory for a request" : "a request of more than 64 MiB";
        return false;
    }
    input->text = larger;
    input->capacity = capacity;
    return true;
}

bool ct_input_read(ct_input *input, int wait_ms)
{
    struct pollfd host = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t length;
    if (input->ended || poll(&host, 1, wait_ms) <= 0)
        return false;
    if ((input->lost != NULL || input->capacity - input->length < CT__CHUNK) && ct_input_line(input, &length) != NULL)
        return false; /* there is enough to do */
    if (input->lost != NULL || !ct__reserve(input)) {
        if (input->capacity == 0) { /* no memory at all */
            input->ended = true;
            return false;
        }
        input->length = input->searched = 0;
    }
    size_t room = input->capacity - input->length;
    ssize_t count = read(STDIN_FILENO, input->text + input->length, room);
    if (count < 0 && errno == EINTR)
        return false;
    if (count <= 0) {
        input->ended = true;
        return false;
    }
    input->length += (size_t)count;
    return true;
}

const char *ct_input_line(ct_input *input, size_t *length)
{
    const char *end = NULL;
    if (input->length > input->searched)
        end = memchr(input->text + input->searched, '\n', input->length - input->searched);
    if (end == NULL) {
        input->searched = input->length;
        return NULL;
    }
    *length = (size_t)(end - input->text);
    input->searched = *length;
    return input->text;
}

void ct_input_drop(ct_input *input)
{
    size_t used = input->searched + 1;
    memmove(input->text, input->text + used, input->length - used);
    input->length -= used;
    input->searched = 0;
    input->lost = NULL;
}

void ct_input_end(ct_input *input)
{
    input->ended = true;
    input->length = input->searched = 0;
}
