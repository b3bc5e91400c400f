/* Text that grows. */
#include "agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ct_text_add(ct_text *text, const char *format, ...)
{
    va_list arguments;
    for (;;) {
        size_t space = text->capacity - text->length;
        va_start(arguments, format);
        int length = vsnprintf(text->text == NULL ? NULL : text->text + text->length, space, format, arguments);
        va_end(arguments);
        if (length < 0)
            return;
        if ((size_t)length < space) {
            text->length += (size_t)length;
            return;
        }
        size_t capacity = 2 * (text->capacity + (size_t)length + 64);
        char *larger = realloc(text->text, capacity);
        if (larger == NULL)
            return;
        text->text = larger;
        text->capacity = capacity;
    }
}
