/* Calls each collective that colltune tunes so often, by its ranks of MPI_COMM_WORLD. For libraries that count themselves.
 *
 * Arguments: how often, the bytes of a rank (a multiple of 4 times the ranks; the whole vector for reductions), and
 * NAME=INTEGER for each control variable to be written by MPI_T before the calls.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_variable(char *pair)
{
    char *equals = strchr(pair, '=');
    int index, count, value;
    MPI_T_cvar_handle handle;
    if (equals == NULL)
        return 1;
    *equals = '\0';
    value = atoi(equals + 1);
    return MPI_T_cvar_get_index(pair, &index) != MPI_SUCCESS ||
           MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS ||
           MPI_T_cvar_write(handle, &value) != MPI_SUCCESS || MPI_T_cvar_handle_free(&handle) != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int provided, ranks;
    if (argc < 3 || MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return 2;
    MPI_Init(NULL, NULL);
    for (int i = 3; i < argc; i++)
        if (write_variable(argv[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int often = atoi(argv[1]), bytes = atoi(argv[2]), elements = bytes / 4, block = elements / ranks;
    char *in = calloc((size_t)ranks, (size_t)bytes), *out = calloc((size_t)ranks, (size_t)bytes);
    int *counts = malloc((size_t)ranks * sizeof *counts), *places = malloc((size_t)ranks * sizeof *places);
    int *blocks = malloc((size_t)ranks * sizeof *blocks);
    if (in == NULL || out == NULL || counts == NULL || places == NULL || blocks == NULL)
        MPI_Abort(MPI_COMM_WORLD, 4);
    for (int i = 0; i < ranks; i++) {
        counts[i] = bytes;
        places[i] = i * bytes;
        blocks[i] = block;
    }
    for (int i = 0; i < often; i++) {
        MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allgatherv(in, bytes, MPI_BYTE, out, counts, places, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Reduce(in, out, elements, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Reduce_scatter(in, out, blocks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    free(counts);
    free(places);
    free(blocks);
    MPI_Finalize();
    return MPI_T_finalize() != MPI_SUCCESS;
}
