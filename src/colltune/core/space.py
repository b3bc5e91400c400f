"""The legal (scenario, choice) pairs of a campaign."""

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import REDUCTIONS, Scenario


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
    default is measurable it is the first of its choices.
    """

    collective: str
    scenarios: tuple[Scenario, ...]
    legal: Callable[[Scenario], tuple[Choice, ...]] = field(compare=False)

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
        seen = {choice for _, choice in self.pairs()}
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
    element = 4 if collective in REDUCTIONS else 1
    first = max(element, smallest)
    sizes = {size for size in powers_of_two(largest) if size >= first}
    sizes |= {first, largest} if largest >= first else set()
    return sorted({size // element * element for size in sizes})


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


def weight_of(scenario: Scenario, nodes: int, ppn: int) -> float:
    """What a gain in ``scenario`` counts in a job of ``nodes`` x ``ppn``: that of the whole job is 1."""
    part = math.sqrt(scenario.ranks / (nodes * ppn))
    return part if is_usual(scenario, nodes, ppn) else _UNUSUAL * part


def neighbours(scenarios: Collection[Scenario]) -> dict[Scenario, list[Scenario]]:
    """For each of ``scenarios`` those that differ by one step in one of nodes, ranks per node and size.

    A step is from one value to the next of all that occur in its collective.
    """
    found: dict[Scenario, list[Scenario]] = {}
    for name in sorted({scenario.collective for scenario in scenarios}):
        mine = [scenario for scenario in scenarios if scenario.collective == name]
        values = [sorted({_place(s)[axis] for s in mine}) for axis in range(3)]
        steps = [{value: place for place, value in enumerate(some)} for some in values]
        at = {tuple(step[value] for step, value in zip(steps, _place(s), strict=True)): s for s in mine}
        for place, scenario in at.items():
            beside = [(*place[:axis], place[axis] + step, *place[axis + 1 :]) for axis in range(3) for step in (-1, 1)]
            found[scenario] = [at[other] for other in beside if other in at]
    return found


def _place(scenario: Scenario) -> tuple[int, int, int]:
    return scenario.nodes, scenario.ppn, scenario.size_bytes
