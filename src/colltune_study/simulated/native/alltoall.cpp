/* alltoall: block i of every rank's `in` goes to rank i; blocks of `bytes`. */
#include "call.h"

#include <algorithm>

static char *block(const ct_simulated_call &call, char *data, int i)
{
    return data + call.bytes * static_cast<std::size_t>(i);
}

/* Radix k: blocks travel by the digits of their distance, gathered for each digit into one message. */
static void bruck(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.out, *packed = call.scratch, *arrived = block(call, call.scratch, n);
    std::size_t total = call.bytes * static_cast<std::size_t>(n);
    std::size_t head = call.bytes * static_cast<std::size_t>(n - call.rank);
    ct_copy(call, data, block(call, call.in, call.rank), head);
    ct_copy(call, data + head, call.in, total - head);
    auto each = [&](int step, int digit, auto &&act) {
        for (int i = 0; i < n; i++)
            if (i / step % call.k == digit)
                act(i);
    };
    for (int step = 1; step < n; step *= call.k) {
        std::vector<MPI_Request> requests;
        int begins[64];
        int packed_blocks = 0;
        for (int digit = 1; digit < call.k && digit * step < n; digit++) {
            begins[digit] = packed_blocks;
            each(step, digit, [&](int i) {
                if (call.real)
                    std::copy_n(block(call, data, i), call.bytes, block(call, packed, packed_blocks));
                packed_blocks++;
            });
        }
        begins[std::min(call.k, (n + step - 1) / step)] = packed_blocks;
        /* Packed and unpacked in one go, as far as time is concerned. */
        ct_simulated_call clock = call;
        clock.real = false;
        ct_copy(clock, packed, data, call.bytes * static_cast<std::size_t>(packed_blocks));
        for (int digit = 1; digit < call.k && digit * step < n; digit++) {
            std::size_t bytes = call.bytes * static_cast<std::size_t>(begins[digit + 1] - begins[digit]);
            int distance = digit * step % n;
            requests.push_back(
                ct_start_receive(call, (call.rank + n - distance) % n, block(call, arrived, begins[digit]), bytes));
            requests.push_back(
                ct_start_send(call, (call.rank + distance) % n, block(call, packed, begins[digit]), bytes));
        }
        ct_wait_all(requests);
        ct_copy(clock, data, arrived, call.bytes * static_cast<std::size_t>(packed_blocks));
        if (!call.real)
            continue;
        int unpacked = 0;
        for (int digit = 1; digit < call.k && digit * step < n; digit++)
            each(step, digit,
                 [&](int i) { std::copy_n(block(call, arrived, unpacked++), call.bytes, block(call, data, i)); });
    }
    /* Block i came from rank - i. */
    ct_copy(call, packed, data, total);
    if (call.real)
        for (int i = 0; i < n; i++)
            std::copy_n(block(call, packed, i), call.bytes, block(call, call.out, (call.rank - i + n) % n));
}

static void pairwise(ct_simulated_call &call)
{
    int n = call.ranks;
    bool power = (n & (n - 1)) == 0;
    ct_copy(call, block(call, call.out, call.rank), block(call, call.in, call.rank), call.bytes);
    ct_stepper steps(call, n - 1, CT_SPREAD);
    for (int j = 0; j < steps.count(); j++) {
        int distance = steps.at(j) + 1;
        int to = power ? call.rank ^ distance : (call.rank + distance) % n;
        int from = power ? to : (call.rank + n - distance) % n;
        ct_send_and_receive(call, to, block(call, call.in, to), call.bytes, from, block(call, call.out, from), call.bytes);
        steps.done(j);
    }
}

/* All messages at once, or `k` in each direction at a time. */
static void post(ct_simulated_call &call, int window)
{
    int n = call.ranks;
    ct_copy(call, block(call, call.out, call.rank), block(call, call.in, call.rank), call.bytes);
    ct_stepper steps(call, (n - 1 + window - 1) / window, CT_SPREAD);
    for (int j = 0; j < steps.count(); j++) {
        int first = steps.at(j) * window + 1, last = std::min(first + window, n);
        std::vector<MPI_Request> requests;
        for (int distance = first; distance < last; distance++) {
            int from = (call.rank + distance) % n;
            requests.push_back(ct_start_receive(call, from, block(call, call.out, from), call.bytes));
        }
        for (int distance = first; distance < last; distance++) {
            int to = (call.rank + n - distance) % n;
            requests.push_back(ct_start_send(call, to, block(call, call.in, to), call.bytes));
        }
        ct_wait_all(requests);
        steps.done(j);
    }
}

static void batched(ct_simulated_call &call)
{
    post(call, call.k);
}

static void linear(ct_simulated_call &call)
{
    post(call, call.ranks);
}

const std::vector<ct_entry> ct_alltoall_algorithms = {
    {"alltoall", "bruck", bruck},
    {"alltoall", "pairwise", pairwise},
    {"alltoall", "batched", batched},
    {"alltoall", "linear", linear},
};
