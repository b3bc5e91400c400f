/* In place of libFuzzer: gives the readers each input of a file, behind its length as four bytes of this machine's order. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void));

static long ct__done;

static void ct__say_where(void) { fprintf(stderr, "at input %ld\n", ct__done); }

int main(int argc, char **argv)
{
    uint32_t size;
    LLVMFuzzerInitialize(&argc, &argv);
    __sanitizer_set_death_callback(ct__say_where);
    FILE *inputs = fopen(argv[argc - 1], "rb");
    for (; inputs != NULL && fread(&size, sizeof size, 1, inputs) == 1; ct__done++) {
        uint8_t *data = malloc(size);
        if (fread(data, 1, size, inputs) != size)
            return 2;
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    fprintf(stderr, "Done %ld runs in one\n", ct__done);
    return inputs == NULL || fclose(inputs) != 0;
}
