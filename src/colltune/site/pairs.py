"""Comparisons with the default, as evidence that adds up over jobs: one scenario, one choice, one launch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Comparison:
    """``value``: log(time of ``baseline`` / time of ``choice``), from a common start.

    ``shape``: nodes and ranks per node of the job that compared them.
    ``others``: the same by calls back to back, and by the mean over ranks. ``launch``: its name within the site.
    ``date_s``: since the epoch.
    """

    scenario: Scenario
    choice: Choice
    baseline: Choice
    shape: tuple[int, int]
    launch: str
    date_s: float
    value: float
    others: tuple[float, ...]


def comparisons_of(
    samples: Sequence[Sample], name: str, shape: tuple[int, int], ended_s: float
) -> Iterator[Comparison]:
    """Of the samples of an audit in the order in which they were taken: the baseline of each look, and the choice.

    ``name``: of the entry. ``shape``: of its job. ``ended_s``: its date. Looks that did not come to two times say
    nothing.
    """
    for (scenario, launch, _), look in groupby(samples, key=lambda one: (one.scenario, one.launch, one.group)):
        pair = list(look)
        for one, other in zip(pair[::2], pair[1::2], strict=False):
            default, chosen = (other, one) if other.choice == DEFAULT else (one, other)
            if default.status is Status.OK and chosen.status is Status.OK and default.choice != chosen.choice:
                value = math.log(default.time_s / chosen.time_s)
                others = tuple(other_views(default, chosen))
                of = f"{name}/{launch}"
                yield Comparison(scenario, chosen.choice, default.choice, shape, of, ended_s, value, others)


def other_views(default: Sample, chosen: Sample) -> list[float]:
    """Log ratios of the same comparison by calls back to back, and by the mean over ranks, where both were taken."""
    pairs = [(default.back_to_back_s, chosen.back_to_back_s), (default.osu_mean_s, chosen.osu_mean_s)]
    return [math.log(one / other) for one, other in pairs if one and other]
