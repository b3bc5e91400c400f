"""Exchanges in which all ranks take part: rings, doubling, halving, Bruck's and their relatives.

Sources: Thakur, Rabenseifner and Gropp 2005 (ring, recursive doubling, halving, Rabenseifner's); Bruck et al. 1997;
Chen et al. 2005 (neighbor exchange); Ruefenacht, Bull and Booth 2017 (recursive multiplying and exchange with radix k);
Traff 2005 (butterfly). What happens with ranks that are no power of the radix follows the libraries; the tests compare
every one with the messages that are sent.
"""

from collections.abc import Callable, Iterator

import numpy as np

from colltune.traffic.rounds import AllPairs, Ranks, Round, Schedule, round_of, schedule


def power_below(p: int, k: int = 2) -> int:
    """The greatest power of k that is at most p."""
    power = 1
    while power * k <= p:
        power *= k
    return power


def ring(p: int, share: float, rounds: int, *, reduces: bool = False) -> Schedule:
    ranks = np.arange(p)
    return schedule(iter([round_of(ranks, (ranks + 1) % p, share, rounds, reduces=reduces)] if p > 1 else []))


def all_pairs(p: int, share: float, width: int) -> Schedule:
    return schedule(iter([AllPairs(np.arange(p)[None, :], share, width)] if p > 1 else []))


def pairwise_reduce(p: int, share: float) -> Schedule:
    """Everybody's part goes to its owner in p - 1 rounds; combined there."""
    pairs = [AllPairs(np.arange(p)[None, :], share, 1, reduces=True)]
    return schedule(iter(pairs if p > 1 else []), memory=share)


def bruck_allgather(p: int, k: int, share: float) -> Schedule:
    ranks = np.arange(p)

    def steps() -> Iterator[Round]:
        have = 1
        while have < p:
            digits = [digit for digit in range(1, k) if digit * have < p]
            target = np.concatenate([(ranks - digit * have) % p for digit in digits])
            shares = np.repeat([share * min(have, p - digit * have) for digit in digits], p)
            yield round_of(np.tile(ranks, len(digits)), target, shares)
            have *= k

    return schedule(steps(), copied=2 * p * share, memory=p * share)


def bruck_alltoall(p: int, k: int, share: float) -> Schedule:
    ranks, places = np.arange(p), np.arange(p)

    def steps() -> Iterator[Round]:
        step = 1
        while step < p:
            digits = [digit for digit in range(1, k) if digit * step < p]
            target = np.concatenate([(ranks + digit * step) % p for digit in digits])
            blocks = [np.count_nonzero(places // step % k == digit) for digit in digits]
            yield round_of(np.tile(ranks, len(digits)), target, np.repeat(share * np.array(blocks), p))
            step *= k

    plan = schedule(steps(), memory=p * share)
    moved = sum(float(step.share[0]) * len(step.source) / p for step in plan.steps if isinstance(step, Round))
    return Schedule(plan.steps, 2 * p * share + 2 * moved, plan.memory)


def doubling_allgather(p: int, share: float) -> Schedule:
    """Recursive doubling among a power of two of ranks."""
    ranks = np.arange(p)
    return schedule(
        round_of(ranks, ranks ^ mask, share * mask) for mask in (1 << bit for bit in range(p.bit_length() - 1))
    )


def halving(ranks: Ranks, share: float, blocks: Ranks, far_first: bool) -> tuple[Schedule, Ranks]:
    """Recursive halving: everybody ends with the sum of some blocks; also the first of these."""
    n = len(ranks)
    places = np.arange(n)
    cumulated = np.concatenate([[0.0], np.cumsum(blocks)])
    low, high = np.zeros(n, dtype=np.intp), np.full(n, n)
    masks = [1 << bit for bit in range(n.bit_length() - 1)]

    def steps() -> Iterator[Round]:
        nonlocal low, high
        for mask in reversed(masks) if far_first else masks:
            middle = (low + high) // 2
            upper = (places & mask) != 0
            sent = np.where(upper, cumulated[middle] - cumulated[low], cumulated[high] - cumulated[middle])
            yield round_of(ranks, ranks[places ^ mask], share * sent, reduces=True)
            low, high = np.where(upper, middle, low), np.where(upper, high, middle)

    return schedule(list(steps()).__iter__(), memory=share * float(cumulated[-1])), low


def backwards(plan: Schedule) -> Schedule:
    """The messages of a halving in reverse: an allgather of what it left."""
    rounds = [step for step in plan.steps if isinstance(step, Round)]
    return Schedule(tuple(Round(r.target, r.source, r.share, r.times) for r in rounds[::-1]))


class Fold:
    """The ranks that work, a power of two; the others fold into their neighbours first (Thakur et al. 2005, 4.4).

    ``evens``: the even one of a pair works, as in Open MPI's and in reductions to a root; else the odd one.
    """

    def __init__(self, p: int, *, evens: bool = False) -> None:
        self.power = power_below(p)
        self.rest = p - self.power
        pairs = np.arange(self.rest) * 2
        self.idle = pairs + (1 if evens else 0)
        self.busy = pairs + (0 if evens else 1)
        self.members = np.concatenate([self.busy, np.arange(2 * self.rest, p)])
        self.blocks = np.concatenate([np.full(self.rest, 2), np.ones(self.power - self.rest, dtype=np.intp)])

    def into(self, share: float) -> Schedule:
        return schedule(iter([round_of(self.idle, self.busy, share, reduces=True)]))

    def out(self, share: float) -> Schedule:
        return schedule(iter([round_of(self.busy, self.idle, share)]))


def doubling_allreduce(p: int) -> Schedule:
    fold = Fold(p)
    places = np.arange(fold.power)
    masks = [1 << bit for bit in range(fold.power.bit_length() - 1)]
    among = schedule(
        (round_of(fold.members, fold.members[places ^ mask], 1.0, reduces=True) for mask in masks), memory=1.0
    )
    return fold.into(1.0).then(among).then(fold.out(1.0))


def rabenseifner(p: int) -> Schedule:
    fold = Fold(p)
    equal = np.ones(fold.power, dtype=np.intp)
    among, _ = halving(fold.members, 1.0 / fold.power, equal, far_first=False)
    return fold.into(1.0).then(among).then(backwards(among)).then(fold.out(1.0))


def halving_gather(p: int) -> Schedule:
    """Rabenseifner's reduce: halving, then a binomial gather to rank 0."""
    fold = Fold(p, evens=True)
    among, _ = halving(fold.members, 1.0 / fold.power, np.ones(fold.power, dtype=np.intp), far_first=False)
    return fold.into(1.0).then(among).then(gather_back(among, fold.members))


def gather_back(among: Schedule, members: Ranks) -> Schedule:
    """The allgather of a halving with only those messages that go towards the first member."""
    place = {int(rank): at for at, rank in enumerate(members)}
    rounds = [step for step in among.steps if isinstance(step, Round)]
    steps = []
    for bit in reversed(range(len(rounds))):
        step = rounds[bit]
        sends = np.array([place[int(rank)] >> bit == 1 for rank in step.target], dtype=bool)
        steps.append(Round(step.target[sends], step.source[sends], step.share[sends]))
    return schedule(iter(steps))


def halving_scatter(p: int, share: float) -> Schedule:
    """Reduce-scatter by recursive halving over the far ranks first; folded ranks get their block at the end."""
    fold = Fold(p)
    among, _ = halving(fold.members, share, fold.blocks, far_first=True)
    return fold.into(p * share).then(among).then(fold.out(share))


def butterfly(p: int, share: float, *, mirrored: bool) -> Schedule:
    """Halving over the near ranks first, so that blocks end at the mirrored rank and are sent home.

    ``mirrored`` False: the input is permuted beforehand where the ranks are a power of two.
    """
    fold = Fold(p)
    among, _ = halving(fold.members, share, fold.blocks, far_first=False)
    plan = fold.into(p * share).then(among)
    if fold.rest == 0 and not mirrored:
        return Schedule(plan.steps, copied=p * share, memory=plan.memory)
    bits = fold.power.bit_length() - 1
    owners: list[list[int]] = [[2 * at, 2 * at + 1] for at in range(fold.rest)]
    owners += [[rank] for rank in range(2 * fold.rest, p)]
    source, target = [], []
    for at, rank in enumerate(fold.members.tolist()):
        home = int(f"{at:0{bits}b}"[::-1], 2) if bits else 0
        for owner in owners[home]:
            if owner != rank:
                source.append(rank)
                target.append(owner)
    return plan.then(schedule(iter([round_of(source, target, share)])))


def doubling_scan(p: int) -> Schedule:
    """Prefix sums by recursive doubling: what a rank sends is the sum of its whole subtree."""
    ranks = np.arange(p)
    masks = [1 << bit for bit in range((p - 1).bit_length())]
    pairs = [(ranks[ranks ^ mask < p], (ranks ^ mask)[ranks ^ mask < p]) for mask in masks]
    return schedule((round_of(source, target, 1.0, reduces=True) for source, target in pairs), memory=1.0)


def doubling_scatter(p: int, share: float) -> Schedule:
    """Reduce-scatter by recursive doubling: all that a subtree lacks; incomplete subtrees are served by their first."""
    ranks = np.arange(p)

    def steps() -> Iterator[Round]:
        mask = 1
        while mask < p:
            peers = ranks ^ mask
            has_peer = peers < p
            tree = ranks // mask * mask
            size = np.minimum(mask, p - tree)
            yield round_of(ranks[has_peer], peers[has_peer], share * (p - size)[has_peer], reduces=True)
            yield from _patch(p, mask, share)
            mask *= 2

    return schedule(steps(), memory=2 * p * share)


def _patch(p: int, mask: int, share: float) -> Iterator[Round]:
    """Where the partner's subtree is incomplete, those that met nobody get the data from those that did."""
    first = p // (2 * mask) * (2 * mask)
    done = p - first - mask
    if done <= 0 or done >= mask:
        return
    step, level = mask // 2, mask.bit_length() - 1
    while step >= 1:
        source, target = [], []
        for rank in range(first, first + mask):
            root, peer = rank >> level << level, rank ^ step
            if peer > rank and rank < root + done <= peer:
                source.append(rank)
                target.append(peer)
        yield round_of(source, target, share * (p - done), reduces=True)
        step, level = step // 2, level - 1


def neighbor_exchange(p: int, share: float) -> Schedule:
    """By turns with both neighbours, two blocks at a time; an even number of ranks."""
    ranks = np.arange(p)
    even = ranks % 2 == 0
    first, second = (np.where(even, ranks + step, ranks - step) % p for step in (1, -1))
    others = p // 2 - 1
    steps = [
        round_of(ranks, first, share),
        round_of(ranks, second, 2 * share, (others + 1) // 2),
        round_of(ranks, first, 2 * share, others // 2),
    ]
    return schedule(iter(steps))


def sparbit(p: int, share: float) -> Schedule:
    """The data of Bruck's allgather over halving distances, block by block."""
    ranks = np.arange(p)

    def steps() -> Iterator[Round]:
        have, reach = 1, 1 << max((p - 1).bit_length() - 1, 0)
        while reach >= 1 and have < p:
            blocks = min(have, p - have)
            yield Round(ranks, (ranks + reach) % p, np.full(p, share * blocks), pieces=float(blocks))
            have += blocks
            reach //= 2

    return schedule(steps())


def dissemination(p: int, k: int) -> Schedule:
    ranks = np.arange(p)
    k = min(k, max(p, 2))

    def steps() -> Iterator[Round]:
        reach = 1
        while reach < p:
            digits = range(1, k)
            target = np.concatenate([(ranks + digit * reach) % p for digit in digits])
            source = np.tile(ranks, len(digits))
            yield round_of(source[source != target], target[source != target], 1.0)
            reach *= k

    return schedule(steps())


class Exchange:
    """Recursive exchange with radix k as in MPICH: groups of k of the first ranks fold into their last."""

    def __init__(self, p: int, k: int) -> None:
        self.k = min(k, p)
        self.power = power_below(p, self.k) if self.k > 1 else 1
        rest = p - self.power
        last = rest * self.k // (self.k - 1) if self.k > 1 else 0  # the ranks before it are in full or cut groups
        self.idle = np.array([rank for rank in range(last) if rank % self.k != self.k - 1], dtype=np.intp)
        into = self.idle + self.k - 1 - self.idle % self.k
        self.busy = np.where(into > last - 1, last, into)
        self.members = np.setdiff1d(np.arange(p), self.idle)

    def reduced(self, share_at: Callable[[int], float]) -> Schedule:
        """The exchanges between the k ranks that differ in one digit; ``share_at`` the distance of the digit."""
        places, steps, reach = np.arange(self.power), [], 1
        while reach < self.power:
            digit = places // reach % self.k
            source, target = [], []
            for other in range(1, self.k):
                peer = places + ((digit + other) % self.k - digit) * reach
                source.append(self.members)
                target.append(self.members[peer])
            steps.append(round_of(np.concatenate(source), np.concatenate(target), share_at(reach), reduces=True))
            reach *= self.k
        return schedule(iter(steps), memory=float(self.k - 1))

    def folded(self, among: Schedule) -> Schedule:
        into = schedule(iter([round_of(self.idle, self.busy, 1.0, reduces=True)]))
        return into.then(among).then(schedule(iter([round_of(self.busy, self.idle, 1.0)])))


def exchange_allreduce(p: int, k: int) -> Schedule:
    plan = Exchange(p, k)
    return plan.folded(plan.reduced(lambda _reach: 1.0))


def exchange_scatter_gather(p: int, k: int) -> Schedule:
    plan = Exchange(p, k)
    first = plan.reduced(lambda reach: 1.0 / (reach * plan.k))
    return plan.folded(first.then(backwards(first)))


def recursive_multiplying(p: int, k: int) -> Schedule:
    """As above, but the ranks beyond the power of k fold into those below it by their remainder."""
    plan = Exchange(p, 2)
    plan.k, plan.power = k, power_below(p, k)
    plan.members = np.arange(plan.power)
    plan.idle = np.arange(plan.power, p)
    plan.busy = plan.idle % plan.power
    return plan.folded(plan.reduced(lambda _reach: 1.0))


def double_ring(p: int) -> Schedule:
    """A token that goes around twice."""
    ranks = np.arange(p)
    return schedule(iter([Round(ranks, (ranks + 1) % p, np.ones(p), 2.0, depth=float(p))] if p > 1 else []))


def tree_of_doubling(p: int) -> Schedule:
    """Open MPI's barrier by doubling: ranks beyond the power of two fold into the first ones."""
    power = power_below(p)
    idle, members, places = np.arange(power, p), np.arange(power), np.arange(power)
    masks = [1 << bit for bit in range(power.bit_length() - 1)]
    steps = [round_of(idle, idle - power, 1.0)]
    steps += [round_of(members, members[places ^ mask], 1.0) for mask in masks]
    return schedule(iter([*steps, round_of(idle - power, idle, 1.0)]))
