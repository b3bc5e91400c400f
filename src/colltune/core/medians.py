"""The median time of a choice in a scenario, and which choices are not trusted: one definition for all who decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario

# Statuses after which a choice is not trusted anywhere.
_BROKEN = frozenset({Status.WRONG, Status.CRASHED, Status.HUNG})


def medians_of(samples: Sequence[Sample]) -> dict[tuple[Scenario, Choice], float]:
    """Median time by pair in seconds, over all its samples; pairs of which a sample failed are left out."""
    broken = broken_choices(samples)
    times: defaultdict[tuple[Scenario, Choice], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.status is Status.OK and (sample.scenario.collective, sample.choice) not in broken:
            times[sample.scenario, sample.choice].append(sample.time_s)
    return {pair: median(values) for pair, values in times.items()}


def broken_choices(samples: Sequence[Sample]) -> set[tuple[str, Choice]]:
    """(collective, choice) pairs that gave a wrong result, ended the job or hung, anywhere.

    The default is never among them: it is what an application runs in any case, and a node that dies is not its fault.
    """
    return {(s.scenario.collective, s.choice) for s in samples if s.status in _BROKEN and s.choice != DEFAULT}
