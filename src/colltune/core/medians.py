"""The median time of a choice in a scenario, and which choices are excluded: one definition for all who decide."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, grouped

# Statuses after which a choice is excluded everywhere.
_BROKEN = frozenset({Status.WRONG, Status.CRASHED, Status.HUNG})


def pair_median(samples: Sequence[Sample]) -> float:
    """Seconds of one choice in one scenario: the median over launches of the median of each launch's repetitions.

    So the repetitions of a launch count alike, however many looks they were taken in, and so do launches. Raises
    ValueError where no sample has a time.
    """
    if len(samples) == 1:
        return samples[0].time_s
    launches: defaultdict[int, list[float]] = defaultdict(list)
    for sample in samples:
        launches[sample.launch] += sample.times_s
    return median(median(times_s) for times_s in launches.values() if times_s)


def medians_of(samples: Sequence[Sample]) -> dict[tuple[Scenario, Choice], float]:
    """Median time by pair in seconds, over all its samples; excluded choices are left out."""
    broken = broken_choices(samples)
    usable = (s for s in samples if s.status is Status.OK and (s.scenario.collective, s.choice) not in broken)
    by_pair = grouped(usable, lambda sample: (sample.scenario, sample.choice))
    return {pair: pair_median(some) for pair, some in by_pair.items()}


def broken_choices(samples: Sequence[Sample]) -> set[tuple[str, Choice]]:
    """(collective, choice) pairs that gave a wrong result, ended the job or hung, anywhere.

    The default is never among them: it is what an application runs in any case, and a node that dies is not its fault.
    """
    return {(s.scenario.collective, s.choice) for s in samples if breaks(s.choice, s.status)}


def breaks(choice: Choice, status: Status) -> bool:
    """Whether ``choice`` is excluded everywhere once a sample of it ended so."""
    return status in _BROKEN and choice != DEFAULT
