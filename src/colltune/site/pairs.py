"""Comparisons with the default, as evidence that adds up over jobs: one scenario, one choice, one launch."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from colltune.core.sample import DEFAULT, Choice, OtherViews, Sample, Scenario, Status, log_speedup


class PairedRatio(NamedTuple):
    """``value``: log(time of ``baseline`` / time of ``choice``), as ``log_speedup`` has it.

    ``shape``: nodes and ranks per node of the job that compared them.
    ``others``: the same by other conventions. ``launch``: its name within the site.
    ``date_s``: since the epoch.
    """

    scenario: Scenario
    choice: Choice
    baseline: Choice
    shape: tuple[int, int]
    launch: str
    date_s: float
    value: float
    others: OtherViews


def comparisons_of(
    samples: Sequence[Sample], name: str, shape: tuple[int, int], ended_s: float
) -> Iterator[PairedRatio]:
    """Of the samples of an audit in the order in which they were taken: the baseline of each look, and the choice.

    ``name``: of the entry. ``shape``: of its job. ``ended_s``: its date. Looks that did not come to two times say
    nothing.
    """
    for (scenario, launch, _), look in groupby(samples, key=lambda one: (one.scenario, one.launch, one.group)):
        pair = list(look)
        for one, other in zip(pair[::2], pair[1::2], strict=False):
            default, chosen = (other, one) if other.choice == DEFAULT else (one, other)
            if default.status is Status.OK and chosen.status is Status.OK and default.choice != chosen.choice:
                value = log_speedup(default, chosen)
                of, views = f"{name}/{launch}", OtherViews.of(default, chosen)
                yield PairedRatio(scenario, chosen.choice, default.choice, shape, of, ended_s, value, views)
