"""What any MPI should keep: no collective takes longer than others that do the same (performance guidelines).

The idea and the list are of Träff, Gropp and Thakur (2010) and of Hunold and Carpen-Amarie (PGMPI), as far as colltune
measures the collectives. The right side is not called as one program. It is the sum of its calls, each timed from a
common start to the end of its slowest rank: no less than their sequence takes, in which no rank has to wait between
them. What has to be filled or copied beside counts with 1 ns for each byte, which is slower than memories are. So
what is called violated here is violated.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from colltune.catalog.read import read_toml
from colltune.core.sample import Choice, Scenario
from colltune.judge.verdict import Comparison, compare_all
from colltune.prove.compare.two_sides import Launched

_MOCK_UPS: list[str] = read_toml("guidelines")["mock_ups"]
_TERM = re.compile(r"(\w+)(\*p|/p)?")
_LOCAL, _LOCAL_S = "local", 1e-9
_ELEMENT, _FACTOR = 4, 8


@dataclass(frozen=True)
class Guideline:
    """``call`` should take no longer than all of ``mock_up``, one after the other, and ``local_bytes`` filled.

    ``text``: the mock-up, in words.
    """

    call: Scenario
    mock_up: tuple[Scenario, ...]
    text: str
    local_bytes: int = 0


def guidelines_at(nodes: int, ppn: int, smallest: int, largest: int) -> list[Guideline]:
    """Those of one shape of job, for calls of ``smallest`` to ``largest`` bytes, every eighth size; none beyond."""
    made = [guideline for text in _MOCK_UPS for guideline in _mocked(text, nodes, ppn, smallest, largest)]
    called = {scenario for guideline in made for scenario in (guideline.call, *guideline.mock_up)}
    for name in sorted({scenario.collective for scenario in called}):
        sizes = sorted(scenario for scenario in called if scenario.collective == name)
        made += [Guideline(call, (more,), f"{name} of {more.size_bytes} B") for call, more in pairwise(sizes)]
    return made


def _mocked(text: str, nodes: int, ppn: int, smallest: int, largest: int) -> Iterator[Guideline]:
    name, _, right = text.partition(" <= ")
    terms = [match.groups() for match in map(_TERM.fullmatch, right.split(" + ")) if match is not None]
    ranks = nodes * ppn
    factors = {None: (1, 1), "*p": (ranks, 1), "/p": (1, ranks)}
    # A part of each rank is a whole number of elements.
    size = _ELEMENT * (ranks if "/p" in text or "reduce_scatter" in text else 1)
    while size < smallest:
        size *= _FACTOR
    while size <= largest:
        parts = [(term, size * factors[scale][0] // factors[scale][1]) for term, scale in terms]
        calls = tuple(Scenario(term, nodes, ppn, part) for term, part in parts if term != _LOCAL)
        local = sum(part for term, part in parts if term == _LOCAL)
        if max(part for _, part in parts) <= largest:
            yield Guideline(Scenario(name, nodes, ppn, 0 if name == "barrier" else size), calls, right, local)
        if name == "barrier":
            return
        size *= _FACTOR


def judge_guidelines(guidelines: Sequence[Guideline], measured: Launched) -> list[Comparison]:
    """The mock-up (A) against the call (B), by launches that measured both; slower: the guideline is violated.

    Where page faults are met, that state of the heap counts in which the call does better. A guideline of which a call
    was not measured is left out.
    """
    guidelines = [g for g in guidelines if all(len(measured.times_s[s]) > 1 for s in (g.call, *g.mock_up))]
    return [
        max(states, key=lambda comparison: comparison.speedup.estimate)
        for states in zip(
            _judged(guidelines, measured, kept=False), _judged(guidelines, measured, kept=True), strict=True
        )
    ]


def _judged(guidelines: Sequence[Guideline], measured: Launched, *, kept: bool) -> list[Comparison]:
    launches = min((len(measured.times_s[s]) for g in guidelines for s in (g.call, *g.mock_up)), default=0)
    times_s = {s: measured.kept(s, launches) if kept else measured.times_s[s][:launches] for s in measured.times_s}
    sides = {(g.call, Choice(g.text)): (_mock_up_s(g, times_s), times_s[g.call]) for g in guidelines}
    return compare_all(sides, paired=True)


def _mock_up_s(guideline: Guideline, times_s: Mapping[Scenario, Sequence[float]]) -> list[float]:
    each = zip(*(times_s[scenario] for scenario in guideline.mock_up), strict=True)
    return [sum(of_launch) + _LOCAL_S * guideline.local_bytes for of_launch in each]
