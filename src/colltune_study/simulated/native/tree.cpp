/* Trees, and data that goes down or up them in segments. */
#include "call.h"

#include <algorithm>

ct_tree ct_tree_knomial(int rank, int ranks, int k)
{
    ct_tree tree;
    int reach = 1;
    while (reach < ranks) {
        int digit = rank / reach % k;
        if (digit != 0) {
            tree.parent = rank - digit * reach;
            break;
        }
        reach *= k;
    }
    for (int step = reach / k; step >= 1; step /= k)
        for (int digit = 1; digit < k; digit++)
            if (rank + digit * step < ranks)
                tree.children.push_back(rank + digit * step);
    return tree;
}

ct_tree ct_tree_binary(int rank, int ranks)
{
    ct_tree tree;
    if (rank > 0)
        tree.parent = (rank - 1) / 2;
    for (int child = 2 * rank + 1; child <= 2 * rank + 2; child++)
        if (child < ranks)
            tree.children.push_back(child);
    return tree;
}

ct_tree ct_tree_chain(int rank, int ranks)
{
    ct_tree tree;
    tree.parent = rank - 1;
    if (rank + 1 < ranks)
        tree.children.push_back(rank + 1);
    return tree;
}

static std::size_t segments_of(std::size_t bytes, std::size_t &segment)
{
    if (segment == 0 || segment > bytes)
        segment = bytes;
    return segment == 0 ? 1 : (bytes + segment - 1) / segment;
}

void ct_tree_bcast(const ct_simulated_call &call, const ct_tree &tree, char *data, std::size_t bytes, std::size_t segment)
{
    std::size_t segments = segments_of(bytes, segment);
    auto length = [&](std::size_t s) { return std::min(segment, bytes - s * segment); };
    MPI_Request coming = MPI_REQUEST_NULL;
    std::vector<MPI_Request> going;
    if (tree.parent >= 0)
        coming = ct_start_receive(call, tree.parent, data, length(0));
    for (std::size_t s = 0; s < segments; s++) {
        if (tree.parent >= 0) {
            MPI_Wait(&coming, MPI_STATUS_IGNORE);
            if (s + 1 < segments)
                coming = ct_start_receive(call, tree.parent, data + (s + 1) * segment, length(s + 1));
        }
        ct_wait_all(going);
        for (int child : tree.children)
            going.push_back(ct_start_send(call, child, data + s * segment, length(s)));
    }
    ct_wait_all(going);
}

void ct_tree_reduce(const ct_simulated_call &call, const ct_tree &tree, const char *own, char *into, std::size_t bytes,
                    std::size_t segment)
{
    if (tree.children.empty() && tree.parent < 0) {
        ct_copy(call, into, own, bytes);
        return;
    }
    std::size_t segments = segments_of(bytes, segment), children = tree.children.size();
    auto length = [&](std::size_t s) { return std::min(segment, bytes - s * segment); };
    char *room = call.scratch; /* of each child two segments, by turns */
    std::vector<MPI_Request> coming(children, MPI_REQUEST_NULL), going;
    auto slot = [&](std::size_t s, std::size_t c) { return room + (s % 2 * children + c) * segment; };
    auto expect = [&](std::size_t s) {
        for (std::size_t c = 0; c < children; c++)
            coming[c] = ct_start_receive(call, tree.children[children - 1 - c], slot(s, c), length(s));
    };
    if (children > 0) {
        ct_copy(call, into, own, bytes);
        expect(0);
    }
    const char *sum = children > 0 ? into : own;
    for (std::size_t s = 0; s < segments; s++) {
        std::vector<MPI_Request> now = coming;
        if (children > 0 && s + 1 < segments)
            expect(s + 1);
        for (std::size_t c = 0; c < children; c++) {
            MPI_Wait(&now[c], MPI_STATUS_IGNORE);
            ct_combine(call, into + s * segment, slot(s, c), length(s));
        }
        ct_wait_all(going);
        if (tree.parent >= 0)
            going.push_back(ct_start_send(call, tree.parent, sum + s * segment, length(s)));
    }
    ct_wait_all(going);
}
