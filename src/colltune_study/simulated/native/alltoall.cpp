/* alltoall: block i of every rank's `in` goes to rank i; blocks of `bytes`. */
#include "call.h"

#include <algorithm>

/* The blocks of each digit, which begin at `begins`, in a message of their own. */
static void exchange(const ct_simulated_call &call, int step, const int *begins, char *packed, char *arrived)
{
    int n = call.ranks;
    ct_at_once messages(call);
    for (int digit = 1; digit < call.k && digit * step < n; digit++) {
        std::size_t bytes = call.bytes_of(begins[digit + 1] - begins[digit]);
        int distance = digit * step % n;
        messages.receive((call.rank + n - distance) % n, call.block(arrived, begins[digit]), bytes);
        messages.send((call.rank + distance) % n, call.block(packed, begins[digit]), bytes);
    }
}

/* Radix k: blocks travel by the digits of their distance, gathered for each digit into one message. */
static void bruck(ct_simulated_call &call)
{
    int n = call.ranks;
    char *data = call.out, *packed = call.scratch, *arrived = call.block(call.scratch, n);
    std::size_t total = call.bytes_of(n), head = call.bytes_of(n - call.rank);
    ct_copy(call, data, call.block(call.in, call.rank), head);
    ct_copy(call, data + head, call.in, total - head);
    auto each = [&](int step, int digit, auto &&act) {
        for (int i = 0; i < n; i++)
            if (i / step % call.k == digit)
                act(i);
    };
    for (int step = 1; step < n; step *= call.k) {
        int begins[64];
        int packed_blocks = 0;
        for (int digit = 1; digit < call.k && digit * step < n; digit++) {
            begins[digit] = packed_blocks;
            each(step, digit, [&](int i) {
                if (call.real)
                    std::copy_n(call.block(data, i), call.bytes, call.block(packed, packed_blocks));
                packed_blocks++;
            });
        }
        begins[std::min(call.k, (n + step - 1) / step)] = packed_blocks;
        /* Packed and unpacked in one go, as far as time is concerned. */
        ct_simulated_call clock = call;
        clock.real = false;
        ct_copy(clock, packed, data, call.bytes_of(packed_blocks));
        exchange(call, step, begins, packed, arrived);
        ct_copy(clock, data, arrived, call.bytes_of(packed_blocks));
        if (!call.real)
            continue;
        int unpacked = 0;
        for (int digit = 1; digit < call.k && digit * step < n; digit++)
            each(step, digit,
                 [&](int i) { std::copy_n(call.block(arrived, unpacked++), call.bytes, call.block(data, i)); });
    }
    /* Block i came from rank - i. */
    ct_copy(call, packed, data, total);
    if (call.real)
        for (int i = 0; i < n; i++)
            std::copy_n(call.block(packed, i), call.bytes, call.block(call.out, (call.rank - i + n) % n));
}

static void pairwise(ct_simulated_call &call)
{
    int n = call.ranks;
    bool power = (n & (n - 1)) == 0;
    ct_copy(call, call.block(call.out, call.rank), call.block(call.in, call.rank), call.bytes);
    ct_stepper steps(call, n - 1, CT_SPREAD);
    for (int j = 0; j < steps.count(); j++) {
        int distance = steps.at(j) + 1;
        int to = power ? call.rank ^ distance : (call.rank + distance) % n;
        int from = power ? to : (call.rank + n - distance) % n;
        ct_send_and_receive(call, to, call.block(call.in, to), call.bytes, from, call.block(call.out, from), call.bytes);
        steps.done(j);
    }
}

/* Messages over the distances from `first` to before `last`, all at once. */
static void post(const ct_simulated_call &call, int first, int last)
{
    int n = call.ranks;
    ct_at_once messages(call);
    for (int distance = first; distance < last; distance++) {
        int from = (call.rank + distance) % n;
        messages.receive(from, call.block(call.out, from), call.bytes);
    }
    for (int distance = first; distance < last; distance++) {
        int to = (call.rank + n - distance) % n;
        messages.send(to, call.block(call.in, to), call.bytes);
    }
}

/* All messages at once, or `k` in each direction at a time. */
static void in_windows(ct_simulated_call &call, int window)
{
    int n = call.ranks;
    ct_copy(call, call.block(call.out, call.rank), call.block(call.in, call.rank), call.bytes);
    ct_stepper steps(call, (n - 1 + window - 1) / window, CT_SPREAD);
    for (int j = 0; j < steps.count(); j++) {
        int first = steps.at(j) * window + 1, last = std::min(first + window, n);
        post(call, first, last);
        steps.done(j);
    }
}

static void batched(ct_simulated_call &call)
{
    in_windows(call, call.k);
}

static void linear(ct_simulated_call &call)
{
    in_windows(call, call.ranks);
}

const std::vector<ct_entry> ct_alltoall_algorithms = {
    {"alltoall", "bruck", bruck},
    {"alltoall", "pairwise", pairwise},
    {"alltoall", "batched", batched},
    {"alltoall", "linear", linear},
};
