/* Whether an algorithm gives the right result: every byte is compared. */
#include "call.h"

#include <cstdint>
#include <cstring>

static std::int32_t element_of(int rank, std::size_t i)
{
    return static_cast<std::int32_t>(rank * 7 + static_cast<int>(i % 100003) * 3 + 1);
}

static char byte_of(int from, int to, std::size_t i)
{
    return static_cast<char>(from * 31 + to * 17 + static_cast<int>(i % 251) + 1);
}

static bool sum_is_right(const char *data, int ranks, std::size_t first, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes / 4; i++) {
        std::int32_t found, wanted = 0;
        std::memcpy(&found, data + 4 * i, 4);
        for (int rank = 0; rank < ranks; rank++)
            wanted += element_of(rank, first + i);
        if (found != wanted)
            return false;
    }
    return true;
}

static bool block_is_right(const char *data, int from, int to, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes; i++)
        if (data[i] != byte_of(from, to, i))
            return false;
    return true;
}

static void fill(char *data, int from, int to, std::size_t bytes)
{
    for (std::size_t i = 0; i < bytes; i++)
        data[i] = byte_of(from, to, i);
}

bool ct_verify(ct_simulated_call call, const std::string &collective, ct_algorithm *run)
{
    std::size_t n = static_cast<std::size_t>(call.ranks), bytes = call.bytes;
    std::vector<char> in(n * bytes + 16, 'i'), out(n * bytes + 16, 'o'), scratch((2 * n + 64) * bytes + 16, 's');
    call.in = in.data();
    call.out = out.data();
    call.scratch = scratch.data();
    call.real = true;
    int me = call.rank;
    bool sums = collective == "allreduce" || collective == "reduce" || collective == "reduce_scatter";
    if (sums)
        for (std::size_t i = 0; i < bytes / 4; i++) {
            std::int32_t value = element_of(me, i);
            std::memcpy(in.data() + 4 * i, &value, 4);
        }
    else if (collective == "bcast" && me == 0)
        fill(out.data(), 0, 0, bytes);
    else if (collective == "allgather" || collective == "gather")
        fill(in.data(), me, 0, bytes);
    else if (collective == "alltoall" || (collective == "scatter" && me == 0))
        for (int to = 0; to < call.ranks; to++)
            fill(call.block(in.data(), to), me, to, bytes);
    run(call);
    if (collective == "bcast")
        return block_is_right(out.data(), 0, 0, bytes);
    if (collective == "scatter")
        return block_is_right(out.data(), 0, me, bytes);
    if (collective == "allreduce" || (collective == "reduce" && me == 0))
        return sum_is_right(out.data(), call.ranks, 0, bytes);
    if (collective == "reduce_scatter") {
        std::size_t first = ct_part(bytes, call.ranks, me, 4);
        return sum_is_right(out.data(), call.ranks, first / 4, ct_part(bytes, call.ranks, me + 1, 4) - first);
    }
    bool right = true;
    if (collective == "allgather" || collective == "alltoall" || (collective == "gather" && me == 0))
        for (int from = 0; from < call.ranks; from++)
            right = right && block_is_right(call.block(out.data(), from), from, collective == "alltoall" ? me : 0, bytes);
    return right;
}
