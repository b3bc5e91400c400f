"""The legal (scenario, choice) pairs of a campaign, and what a model of their times answers, whoever trained it."""

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from colltune.core.sample import DEFAULT, Choice, Scenario, element_bytes

if TYPE_CHECKING:  # a job that starts under a tuning knows scenarios and choices, and waits for no numpy
    import numpy as np
    from numpy.typing import NDArray

# What a gain in a scenario counts beside those in others.
Weight = Callable[[Scenario], float]
# Collective, nodes and ranks per node.
_Line = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Point:
    """What is measured together: choices of one scenario, interleaved so that drift hits all alike.

    ``repetitions``: how often each is timed at most; 0: as often as the source takes for enough. ``skew_s``: calls are
    timed too to which the ranks come up to so many seconds apart; 0: none.
    """

    scenario: Scenario
    choices: tuple[Choice, ...]
    repetitions: int = 0
    skew_s: float = 0.0


@dataclass(frozen=True)
class Space:
    """The grid of scenarios of one collective, and which choices are legal in any scenario.

    ``legal`` answers for scenarios outside the grid too (a size between two of its sizes, say); where the
    default is measurable it is the first of its choices. ``weight``: what a gain in a scenario counts.
    """

    collective: str
    scenarios: tuple[Scenario, ...]
    legal: Callable[[Scenario], tuple[Choice, ...]] = field(compare=False)
    weight: Weight = field(default=lambda _scenario: 1.0, compare=False)

    def __post_init__(self) -> None:
        if any(scenario.collective != self.collective for scenario in self.scenarios):
            raise ValueError(f"a space of {self.collective} holds a scenario of another collective")

    def choices(self, scenario: Scenario) -> tuple[Choice, ...]:
        return self.legal(scenario)

    def pairs(self) -> Iterator[tuple[Scenario, Choice]]:
        for scenario in self.scenarios:
            for choice in self.choices(scenario):
                yield scenario, choice

    @property
    def all_choices(self) -> tuple[Choice, ...]:
        """Every choice that is legal somewhere on the grid; the default first where it is one, then sorted."""
        # Many scenarios have the same tuple; to hash each takes longer than all the rest.
        distinct = {id(legal): legal for legal in map(self.choices, self.scenarios)}.values()
        seen = {choice for legal in distinct for choice in legal}
        return (*({DEFAULT} & seen), *sorted(seen - {DEFAULT}))


def powers_of_two(limit: int) -> list[int]:
    """1, 2, 4 ... up to ``limit``, and ``limit`` itself whether a power of two or not."""
    return [*(1 << bit for bit in range((limit - 1).bit_length())), limit] if limit >= 1 else []


def message_sizes(collective: str, smallest: int, largest: int) -> list[int]:
    """The sizes to tune between two bounds in bytes, both included: powers of two, and the largest itself.

    A barrier has the one size 0; reductions work on 4-byte elements, so their sizes are multiples of 4.
    """
    if collective == "barrier":
        return [0]
    element = element_bytes(collective)
    first = max(element, smallest)
    sizes = {size for size in powers_of_two(largest) if size >= first}
    sizes |= {first, largest} if largest >= first else set()
    return sorted({size // element * element for size in sizes})


# Of every so many powers of two, the place of that after which a size between is measured too.
_EVERY, _AFTER = 4, 2


def tuned_sizes(collective: str, smallest: int, largest: int) -> list[int]:
    """``message_sizes``, and one in five between two of them, half way as ratios go.

    Algorithms treat such sizes differently, and 15.7% of the calls in the traces of ACCLAiM's authors have them.
    """
    sizes, element = message_sizes(collective, smallest, largest), element_bytes(collective)
    places = range(_AFTER, len(sizes) - 1, _EVERY)
    between = [math.isqrt(sizes[place] * sizes[place + 1]) // element * element for place in places]
    return sorted({*sizes, *(size for size, place in zip(between, places, strict=True) if size > sizes[place])})


def counts(limit: int) -> list[int]:
    """The counts of nodes, or of ranks per node, to tune in a job that has ``limit`` of them, ascending.

    Powers of two, the counts half way between two of these (3, 6, 12, 24 ...), and the job's own: every count up to 4,
    and 2 for each doubling beyond, so that 127 nodes have 14 and 2,048 have 22.
    """
    powers = powers_of_two(limit)
    return sorted({*powers, *(3 * power // 2 for power in powers[1:-1] if 3 * power // 2 <= limit)})


def shapes(nodes: int, ppn: int) -> list[tuple[int, int]]:
    """The (nodes, ppn) shapes to tune in a job of ``nodes`` x ``ppn``, the job's own included.

    Every one of ``counts`` of the nodes with every one of the ranks per node; a single rank has nothing to tune.
    """
    return [(n, p) for n in counts(nodes) for p in counts(ppn) if n * p > 1]


def is_usual(scenario: Scenario, nodes: int, ppn: int) -> bool:
    """Whether its counts are those of a job of ``nodes`` x ``ppn``, or powers of two: what applications mostly form."""
    return all(
        count == own or count & (count - 1) == 0 for count, own in ((scenario.nodes, nodes), (scenario.ppn, ppn))
    )


# What a gain on counts of nodes or ranks per node counts that few applications form.
_UNUSUAL = 0.5


# Of a job's time, what lies in the communicator of all ranks, and in the parts that many programs form.
_OF_WHOLE, _OF_PARTS = 0.5, 0.4


def weights_in_job(nodes: int, ppn: int) -> Weight:
    """What a gain counts for a job of ``nodes`` x ``ppn`` of which no profile is known; all sizes alike.

    Half of it is in the communicator of all ranks, which most programs call on. Most of the rest is in one node, one
    rank of each node, and the halves of the job; a tenth is left for all other shapes.
    """
    half = min((count for count in counts(nodes) if count < nodes), key=lambda n: abs(2 * n - nodes), default=nodes)
    every, whole = set(shapes(nodes, ppn)), {(nodes, ppn)}
    usual = {(1, ppn), (nodes, 1), (half, ppn)} & every - whole
    parts = [(_OF_WHOLE, whole), (_OF_PARTS, usual), (1.0 - _OF_WHOLE - _OF_PARTS, every - usual - whole)]
    total = sum(part for part, some in parts if some)
    of_shape = {shape: part / total / len(some) for part, some in parts for shape in some}
    # Of a shape that is no count of the grid, as in a table of recorded times.
    least = min(of_shape.values())
    return lambda scenario: of_shape.get((scenario.nodes, scenario.ppn), least)


def weights_by_ranks(nodes: int, ppn: int) -> Weight:
    """What a gain counts where any shape is somebody's job, as in a table of recorded times (see ``weight_of``)."""
    return lambda scenario: weight_of(scenario, nodes, ppn)


def weight_of(scenario: Scenario, nodes: int, ppn: int) -> float:
    """What a gain in ``scenario`` counts in a job of ``nodes`` x ``ppn`` by its ranks: that of the whole job is 1."""
    part = math.sqrt(scenario.ranks / (nodes * ppn))
    return part if is_usual(scenario, nodes, ppn) else _UNUSUAL * part


def neighbours(scenarios: Collection[Scenario]) -> dict[Scenario, list[Scenario]]:
    """For each of ``scenarios`` those of its collective beside it: the next smaller and larger size of its shape, and
    on the next counts of nodes or of ranks per node the same size.

    Shapes of recorded and profiled calls have sizes of their own: there it is the nearest one, within a factor of two.
    """
    sizes: dict[_Line, list[int]] = {}
    for scenario in sorted(scenarios, key=lambda scenario: scenario.size_bytes):
        sizes.setdefault((scenario.collective, scenario.nodes, scenario.ppn), []).append(scenario.size_bytes)
    beside: dict[Scenario, list[Scenario]] = {scenario: [] for scenario in scenarios}

    def join(scenario: Scenario, other: Scenario) -> None:
        beside[scenario].append(other)
        beside[other].append(scenario)

    for line, own in sizes.items():
        for small, large in pairwise(own):
            join(Scenario(*line, small), Scenario(*line, large))
    for line, other in _next_to(sizes):
        for size in sizes[line]:
            near = _nearest(sizes[other], size)
            if _nearest(sizes[line], near) == size and max(size, near) < 2 * max(min(size, near), 1):
                join(Scenario(*line, size), Scenario(*other, near))
    return beside


def connected(scenarios: Iterable[Scenario], beside: Callable[[Scenario], Iterable[Scenario]]) -> list[list[Scenario]]:
    """The largest sets of ``scenarios`` that hang together by those ``beside`` each, in ascending order."""
    left, sets = set(scenarios), []
    for start in sorted(left):
        part, ahead = [], [start]
        while ahead:
            if (scenario := ahead.pop()) in left:
                left.remove(scenario)
                part.append(scenario)
                ahead += beside(scenario)
        if part:
            sets.append(sorted(part))
    return sets


def _nearest(sizes: Sequence[int], size: int) -> int:
    """Of ``sizes``, ascending, the nearest by ratio."""
    place = bisect_left(sizes, size)
    return min(sizes[max(place - 1, 0) : place + 1], key=lambda near: max(near, size) / max(min(near, size), 1))


def _next_to(lines: Collection[_Line]) -> Iterator[tuple[_Line, _Line]]:
    """Pairs of shapes of one collective: each, and the next one with more nodes or with more ranks per node."""
    for axis in (1, 2):
        across: dict[tuple[str | int, ...], list[_Line]] = {}
        for line in sorted(lines):
            across.setdefault((line[0], line[3 - axis]), []).append(line)
        for some in across.values():
            yield from pairwise(some)


@dataclass(frozen=True)
class Prediction:
    """Expected times of n pairs.

    ``log_time`` (n,): natural logarithm of the time, up to a constant that is the same for all choices of one
    scenario (a model may know ratios only). ``std`` (n,): its standard deviation, >= 0. ``measured_sd``:
    what measured times are unsure by, as a standard deviation of logarithms, where ``log_time`` weighs them by that;
    else 0, and they are to be preferred to it.
    """

    log_time: "NDArray[np.float64]"
    std: "NDArray[np.float64]"
    measured_sd: float = 0.0


class Model(Protocol):
    """Predicts times and says how sure it is."""

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """Predictions for ``pairs``, in their order."""
        ...
