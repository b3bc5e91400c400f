/* Runs what libFuzzer would run, where the compiler has none: files of a directory, changed at random, without a look at
 * what they reach. Takes libFuzzer's -runs, -max_total_time (seconds; 0: no bound), -seed, -max_len and -artifact_prefix. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CT__SEEDS = 4096 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void));

typedef struct {
    uint8_t *bytes;
    size_t size;
} ct__bytes;

static ct__bytes ct__seeds[CT__SEEDS], ct__now;
static int ct__seed_count;
static size_t ct__most = 1 << 16;
static uint64_t ct__state;
static const char *ct__prefix = "";

static size_t ct__draw(size_t below)
{
    ct__state ^= ct__state >> 12, ct__state ^= ct__state << 25, ct__state ^= ct__state >> 27;
    return (size_t)((ct__state * 2685821657736338717UL) >> 16) % below;
}

/* What the reader ended at is kept, to be read again. */
static void ct__keep(void)
{
    char name[600];
    snprintf(name, sizeof name, "%scrash", ct__prefix);
    FILE *file = fopen(name, "wb");
    if (file != NULL) {
        fwrite(ct__now.bytes, 1, ct__now.size, file);
        fclose(file);
        fprintf(stderr, "the input is in %s\n", name);
    }
}

static void ct__load(const char *directory)
{
    char path[600];
    DIR *folder = opendir(directory);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL && ct__seed_count < CT__SEEDS;) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file == NULL)
            continue;
        ct__bytes *seed = &ct__seeds[ct__seed_count++];
        seed->bytes = malloc(ct__most);
        seed->size = fread(seed->bytes, 1, ct__most, file);
        fclose(file);
    }
    if (folder != NULL)
        closedir(folder);
}

/* A word of any seed, or a number at a bound. */
static ct__bytes ct__word(void)
{
    static const char *const NUMBERS[] = {"0", "-1", "1", "2147483647", "2147483648", "-2147483649", "1048576", "1048577",
                                          "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e9", "0x7f"};
    const ct__bytes *seed = &ct__seeds[ct__draw((size_t)ct__seed_count)];
    if (ct__draw(3) == 0 || seed->size == 0) {
        const char *number = NUMBERS[ct__draw(sizeof NUMBERS / sizeof *NUMBERS)];
        return (ct__bytes){(uint8_t *)number, strlen(number)};
    }
    static const char ENDS[] = " ,=.:\n\t\r";
    size_t from = ct__draw(seed->size), to = from;
    while (from > 0 && strchr(ENDS, seed->bytes[from - 1]) == NULL)
        from--;
    while (to < seed->size && (seed->bytes[to] == '\0' || strchr(ENDS, seed->bytes[to]) == NULL))
        to++;
    return (ct__bytes){seed->bytes + from, to - from};
}

/* Puts `word` in the place of `gone` bytes at `at`. */
static void ct__replace(ct__bytes *data, size_t at, size_t gone, ct__bytes word)
{
    if (data->size - gone + word.size > ct__most)
        return;
    memmove(data->bytes + at + word.size, data->bytes + at + gone, data->size - at - gone);
    memcpy(data->bytes + at, word.bytes, word.size);
    data->size += word.size - gone;
}

static void ct__change(ct__bytes *data)
{
    static const char TELLING[] = "=,-0123456789 \t\r\n:.#";
    uint8_t kept[256];
    size_t at = ct__draw(data->size + 1), rest = data->size - at, most = rest < sizeof kept ? rest : sizeof kept;
    size_t part = most > 0 ? 1 + ct__draw(most) : 0;
    uint8_t byte = ct__draw(3) ? (uint8_t)TELLING[ct__draw(sizeof TELLING - 1)] : (uint8_t)ct__draw(256);
    memcpy(kept, data->bytes + at, part);
    switch (ct__draw(5)) {
    case 0:
        ct__replace(data, at, rest > 0, (ct__bytes){&byte, 1});
        break;
    case 1:
        ct__replace(data, at, part, (ct__bytes){kept, 0});
        break;
    case 2:
        for (size_t times = 1 + ct__draw(3) * ct__draw(60); times > 0; times--)
            ct__replace(data, at, 0, (ct__bytes){kept, part});
        break;
    default:
        ct__replace(data, at, ct__draw(2) && part < 20 ? part : 0, ct__word());
    }
}

static double ct__clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    long runs = -1, done = 0;
    double limit_s = 0.0, began_s = ct__clock();
    ct__state = 88172645463325252ULL;
    LLVMFuzzerInitialize(&argc, &argv);
    __sanitizer_set_death_callback(ct__keep);
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        if (argv[i][0] != '-')
            ct__load(argv[i]);
        else if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = atol(value + 1);
        else if (strncmp(argv[i], "-max_total_time=", 16) == 0)
            limit_s = atof(value + 1);
        else if (strncmp(argv[i], "-seed=", 6) == 0)
            ct__state ^= (uint64_t)atoll(value + 1) * 0x9e3779b97f4a7c15ULL;
        else if (strncmp(argv[i], "-max_len=", 9) == 0)
            ct__most = (size_t)atoll(value + 1);
        else if (strncmp(argv[i], "-artifact_prefix=", 17) == 0)
            ct__prefix = value + 1;
    }
    uint8_t *room = malloc(ct__most);
    for (; ct__seed_count > 0 && done != runs && (limit_s <= 0.0 || ct__clock() - began_s < limit_s); done++) {
        const ct__bytes *seed = &ct__seeds[done < ct__seed_count ? (size_t)done : ct__draw((size_t)ct__seed_count)];
        ct__now = (ct__bytes){room, seed->size};
        memcpy(room, seed->bytes, seed->size);
        for (size_t changes = done < ct__seed_count ? 0 : 1 + ct__draw(6); changes > 0; changes--)
            ct__change(&ct__now);
        uint8_t *exact = malloc(ct__now.size);
        memcpy(exact, room, ct__now.size);
        LLVMFuzzerTestOneInput(exact, ct__now.size);
        free(exact);
    }
    fprintf(stderr, "Done %ld runs in %.0f second(s)\n", done, ct__clock() - began_s);
    for (int i = 0; i < ct__seed_count; i++)
        free(ct__seeds[i].bytes);
    free(room);
    return 0;
}
