"""A second look at what competes: side by side, in further launches, before anything is chosen.

Between launches all choices of a call move together, and one of them by itself: the fastest of many in a single launch
is partly luck (Hunold and Carpen-Amarie, *Reproducible MPI benchmarking is still not as easy as you think*, TPDS 2016).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from colltune.core.medians import medians_of
from colltune.core.sample import Choice, Sample, Scenario, grouped
from colltune.core.space import Point, Space

# What is slower than the fastest by more, as a log ratio, is slower in other launches too; and calls of each look.
_CLOSE, _REPETITIONS = 0.35, 10


def contenders(
    samples: Sequence[Sample], spaces: Mapping[str, Space], baseline: Callable[[Scenario], Choice], most_s: float
) -> list[Point]:
    """What may well be the fastest, with the baseline beside it, where several may: what weighs most for its time.

    ``samples``: with the times by which choices are made. ``most_s``: seconds that one look at all of it may take.
    """
    costs_s = {(sample.scenario, sample.choice): sample.cost_s for sample in samples}
    asked: list[tuple[float, float, Point]] = []
    for scenario, pairs in grouped(medians_of(samples).items(), lambda pair: pair[0][0]).items():
        times_s = {choice: time_s for (_, choice), time_s in pairs}
        most = math.exp(_CLOSE) * min(times_s.values())
        close = [choice for choice, time_s in times_s.items() if time_s <= most]
        default = baseline(scenario)
        if default in times_s and len(close) > 1:
            choices = tuple(dict.fromkeys([default, *close]))
            cost_s = sum(costs_s[scenario, choice] for choice in choices)
            worth = spaces[scenario.collective].weight(scenario) / max(cost_s, 1e-9)
            asked.append((worth, cost_s, Point(scenario, choices, _REPETITIONS)))
    points = []
    for _, cost_s, point in sorted(asked, key=lambda one: -one[0]):
        most_s -= cost_s
        if most_s < 0.0:
            break
        points.append(point)
    return points


def as_in_first_launch(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Later launches without what they have in common: the mean, by scenario, over the choices that both looked at."""
    for some in grouped(samples, lambda sample: sample.scenario).values():
        launches = grouped(some, lambda sample: sample.launch)
        yield from (first := launches.pop(min(launches)))
        first_s = medians_of(first) if launches else {}
        for own in launches.values():
            own_s = medians_of(own)
            logs = [math.log(first_s[pair] / time_s) for pair, time_s in own_s.items() if pair in first_s]
            factor = math.exp(fmean(logs)) if logs else 1.0
            yield from (sample.scaled(factor) for sample in own)
