/* Every reader in C of what others wrote, or of what comes through a pipe, on any bytes: `--reader=NAME` says which. With
 * clang libFuzzer makes the bytes, else fuzz_driver.c. What is read must be as the rest of the code takes it to be. */
#define _GNU_SOURCE
#include "agent.h"
#include "algorithms.h"
#include "select.h"
#include "call.h"
#include "table.h"
#include "weights.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CT__WHY = 200 };

static void ct__holds(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "what was read does not hold: %s\n", what);
        abort();
    }
}
#define HOLDS(fine) ct__holds(fine, #fine)

/* In a block of its own, so that a read behind the end is seen. */
static char *ct__text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static char ct__path[64];
static int ct__file = -1;

static void ct__write_file(const uint8_t *data, size_t size)
{
    HOLDS(ftruncate(ct__file, 0) == 0 && pwrite(ct__file, data, size, 0) == (ssize_t)size);
}

static bool ct__rules(const uint8_t *data, size_t size)
{
    size_t length = 0;
    ct__write_file(data, size);
    char *text = ct_rules_load(ct__path, &length), *name, *value;
    HOLDS(text != NULL && length == size);
    ct_rules_text rules;
    bool fine = true;
    ct_rules_begin(&rules, text);
    for (ct_rules_kind kind; (kind = ct_rules_next(&rules)) != CT_RULES_END;) {
        if (kind == CT_RULES_FAULT) {
            HOLDS(rules.why[0] != '\0' && memchr(rules.why, '\0', sizeof rules.why) != NULL);
            fine = false;
            break;
        }
        HOLDS(rules.choices <= CT_RULES_CHOICES && rules.line > 1);
        if (kind == CT_RULES_RULE)
            HOLDS(rules.choice >= -1 && rules.choice < rules.choices && rules.ppn.low <= rules.ppn.high &&
                  rules.ranks.low <= rules.ranks.high && rules.size.low <= rules.size.high && rules.size.low >= 0);
        if (kind == CT_RULES_COLLECTIVE)
            HOLDS(rules.first_call >= 0 && strlen(rules.collective) + strlen(rules.basis) < size);
        while (kind == CT_RULES_CHOICE && ct_rules_setting(&rules.settings, &name, &value))
            HOLDS(strlen(name) < size && (value == NULL || strlen(value) < size));
    }
    free(text);
    return fine;
}

/* The program's calls have bytes; a library that is not initialised knows no type. */
int PMPI_Type_size_x(MPI_Datatype type, MPI_Count *bytes)
{
    *bytes = type == MPI_DOUBLE ? 8 : 1;
    return MPI_SUCCESS;
}

static void ct__choose(ct_comm *comm)
{
    static const MPI_Count COUNTS[] = {0, 1, 4096, INT_MAX, LLONG_MAX / (1LL << 40)};
    int counts[16] = {1, 1, 2};
    for (int form = CT_BLOCKING; form <= CT_NONBLOCKING; form++)
        for (int function = 0; function < CT_FUNCTIONS; function++)
            for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
                ct_call call = {.function = (ct_function)function, .form = (ct_form)form, .known = comm, .op = MPI_SUM,
                                .send_count = COUNTS[i], .recv_count = COUNTS[i], .recv_counts = counts,
                                .send_type = MPI_DOUBLE, .recv_type = MPI_BYTE};
                const ct_select_choice *choice = ct_select_choose(&call);
                HOLDS(choice == NULL || (choice >= ct_select_choices && choice < ct_select_choices + ct_select_choice_count));
            }
    ct_select_module.comm_freed(comm);
}

static bool ct__select(const uint8_t *data, size_t size)
{
    char *text = ct__text(data, size), why[CT_RULES_WHY] = "";
    bool read = ct_select_parse(text, ct_select_table.proven, why, sizeof why);
    free(text);
    HOLDS(read || why[0] != '\0');
    HOLDS(ct_select_choice_count <= CT_SELECT_CHOICES);
    for (int i = 0; i < ct_select_choice_count; i++)
        for (int s = 0; s < ct_select_choices[i].count; s++)
            HOLDS(s < CT_SELECT_SETTINGS && ct_variable_initial(ct_select_choices[i].settings[s].variable) >= INT_MIN);
    ct_comm comms[] = {{.size = 1, .nodes = 1, .ppn = 1, .even = true}, {.size = 16, .nodes = 4, .ppn = 4, .even = true},
                       {.size = 3, .nodes = 2, .ppn = 2}, {.size = 6, .remote_size = 2, .nodes = 3, .ppn = 2, .even = true}};
    for (size_t i = 0; read && i < sizeof comms / sizeof *comms; i++)
        ct__choose(&comms[i]);
    for (int kind = 0; kind < CT_SELECT_KINDS; kind++)
        free(ct_select_table.proven[kind].rules);
    ct_select_table = (ct_select_tables){0};
    memset(ct_select_choices, 0, sizeof ct_select_choices);
    ct_select_choice_count = 0;
    return read;
}

static bool ct__table(const uint8_t *data, size_t size)
{
    static const int SHAPES[][2] = {{2, 1}, {8, 4}, {16, 4}, {4096, 64}, {INT_MAX, 0}};
    char *text = ct__text(data, size), why[CT__WHY];
    ct_table_rules rules;
    bool read = ct_table_parse(text, &rules, why, sizeof why);
    free(text);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        ct_table table;
        int ranks = SHAPES[i][0], call = ct_table_first_call(&rules, ranks, SHAPES[i][1]);
        HOLDS(call == 0 || (read && call >= 2));
        ct_table_fill(&rules, ranks, SHAPES[i][1], &table);
        HOLDS(table.choice_count >= 1 && table.choice_count <= CT_CHOICES_MOST && (call > 0 || table.choice_count == 1));
        for (int c = 1; c < table.choice_count; c++) {
            ct_alltoallv_choice normal = ct_choice_normal(&table.choices[c], ranks);
            HOLDS(ct_alltoallv_name(normal.algorithm) != NULL && normal.radix >= 2 && normal.radix <= ranks && normal.batch >= 0);
        }
        for (int fill = 0; fill < CT_FILL_CLASSES; fill++)
            for (int at = 0; at < CT_SIZE_CLASSES; at++)
                HOLDS(table.choice_at[fill][at] < table.choice_count);
    }
    ct_table_forget(&rules);
    return read;
}

static bool ct__request(const uint8_t *data, size_t size)
{
    char *line = ct__text(data, size), why[CT__WHY] = "";
    ct_request request;
    bool read = ct_request_parse(line, size, &request, why, sizeof why);
    if (read) {
        HOLDS(request.node_count >= 1 && request.choice_count >= 1 && request.fewest <= request.most && request.fewest >= 1 &&
              request.ppn >= 1 && request.id >= 0 && request.root >= 0 && request.collective[0] != '\0');
        for (int i = 0; i < request.node_count; i++)
            HOLDS(request.nodes[i] >= 0);
        for (int i = 0; i < request.choice_count; i++)
            for (int s = 0; s < request.choices[i].setting_count; s++)
                HOLDS(ct_variable_initial(request.choices[i].settings[s].variable) >= INT_MIN);
        ct_request_free(&request);
    } else {
        HOLDS(why[0] != '\0' && request.nodes == NULL && request.choices == NULL);
    }
    free(line);
    return read;
}

/* As rank 0 of an agent hears it: the bytes on its standard input. */
static bool ct__lines(const uint8_t *data, size_t size)
{
    ct_input input = {0};
    size_t length, heard = 0, dropped = 0;
    ct__write_file(data, size);
    HOLDS(dup2(ct__file, STDIN_FILENO) == STDIN_FILENO && lseek(STDIN_FILENO, 0, SEEK_SET) == 0);
    do
        for (const char *line; (line = ct_input_line(&input, &length)) != NULL; ct_input_drop(&input)) {
            HOLDS(memchr(line, '\n', length) == NULL && (length == 0 || memcmp(line, data + heard, length) == 0));
            heard += length + 1;
            dropped++;
        }
    while (ct_input_read(&input, 0));
    size_t ends = 0;
    for (size_t i = 0; i < size; i++)
        ends += data[i] == '\n';
    HOLDS(dropped == ends && input.ended);
    free(input.text);
    return true;
}

static bool ct__blocks_of(const uint8_t *data, size_t size)
{
    char *name = ct__text(data, size);
    ct_blocks blocks;
    bool read = ct_blocks_parse(name, &blocks);
    if (read)
        HOLDS(blocks.peers >= 0 && memchr(blocks.distribution, '\0', sizeof blocks.distribution) != NULL);
    for (int distance = 0; read && distance < 9; distance++)
        if (ct_weight_is_peer(&blocks, distance, 9))
            HOLDS(ct_weight(&blocks, 0, distance) >= 0.0);
    free(name);
    return read;
}

static const struct {
    const char *name;
    bool (*read)(const uint8_t *data, size_t size);
} CT__READERS[] = {{"rules", ct__rules}, {"select", ct__select}, {"table", ct__table},
                   {"request", ct__request}, {"lines", ct__lines}, {"blocks", ct__blocks_of}};
static bool (*ct__read)(const uint8_t *data, size_t size);

static long ct__taken;

static void ct__end(void) { fprintf(stderr, "%ld taken\n", ct__taken); }

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    int provided;
    for (int i = 1; i < *argc; i++)
        for (size_t r = 0; r < sizeof CT__READERS / sizeof *CT__READERS; r++)
            if (strncmp((*argv)[i], "--reader=", 9) == 0 && strcmp((*argv)[i] + 9, CT__READERS[r].name) == 0)
                ct__read = CT__READERS[r].read;
    ct__file = memfd_create("input", MFD_CLOEXEC);
    snprintf(ct__path, sizeof ct__path, "/proc/self/fd/%d", ct__file);
    HOLDS(ct__read != NULL && ct__file >= 0 && MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && atexit(ct__end) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ct__taken += ct__read(data, size);
    return 0;
}
