"""The legal (scenario, choice) pairs of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import REDUCTIONS, Scenario


@dataclass(frozen=True, slots=True)
class Point:
    """What is measured together: choices of one scenario, interleaved so that drift hits all alike.

    ``repetitions``: how often each is timed at most; 0: as often as the source takes for enough.
    """

    scenario: Scenario
    choices: tuple[Choice, ...]
    repetitions: int = 0


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


def powers_of_two(limit: int, start: int = 1) -> list[int]:
    """1, 2, 4 ... up to ``limit``, and ``limit`` itself whether a power of two or not."""
    values = []
    value = start
    while value < limit:
        values.append(value)
        value *= 2
    return [*values, limit] if limit >= start else []


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


def shapes(nodes: int, ppn: int) -> list[tuple[int, int]]:
    """The (nodes, ppn) shapes that a job of ``nodes`` x ``ppn`` can form, the job's own included.

    Powers of two up to the job's own counts, and these themselves; a single rank has nothing to tune.
    """
    return [(n, p) for n in powers_of_two(nodes) for p in powers_of_two(ppn) if n * p > 1]


def middle_sizes(size_bytes: int, collective: str) -> tuple[int, int]:
    """The open interval of sizes nearer to ``size_bytes`` than to its neighbouring powers of two.

    Half way down and half way up: 8 -> (6, 12) (ACCLAiM, section IV.B).
    """
    element = 4 if collective in REDUCTIONS else 1
    return max(element, size_bytes * 3 // 4), max(element, size_bytes * 3 // 2)
