"""Learns a Model of relative times from what other machines measured.

Machines differ much in speed, and less in which choice is best at a scenario. So the model predicts each time
relative to the best of its scenario, by extremely randomised trees (Geurts, Ernst and Wehenkel 2006) on what a choice
sends (``colltune.traffic``), on the cost model's prediction from it (``predict/cost.py``) and on its name. So what was
measured of one algorithm teaches about others, also of other libraries. Trees do not extrapolate: beyond the largest
measured machine they predict its values.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from colltune.core.sample import Choice, Scenario
from colltune.learn.scenario_columns import Floats
from colltune.predict.bursts import in_flight
from colltune.predict.cost import Kind, Pair, Sent, kind_of, terms
from colltune.predict.model import CollectiveTimes, Range, prior_rows
from colltune.predict.trees import FIELDS, Forest
from colltune.store.grid import Grid
from colltune_study.training.constants import fit_constants, pooled

Times = Mapping[Pair, float]
_TREES = 60
# Log of a time over the best: a choice twenty times as slow is never chosen, so larger ratios are cut to this one.
_WORST = 3.0
# The limit of messages in flight is exceeded where posting at once took more than this many times the time in turns.
_OVER_EQUIVALENT = 2.0
# How far beyond the largest number that worked elsewhere posting at once is expected to work, in doublings.
_BEYOND = 0.5


def times_of(grid: Grid) -> Times:
    """What was measured of a recorded table, in seconds."""
    return {pair: grid.time(*pair) for pair in grid.recorded}


def learn_times(
    sources: Mapping[str, Times],
    choices: Iterable[Choice] = (),
    seed: int = 0,
    scaled: Callable[[str, Mapping[str, Floats]], Floats] = lambda _name, fitted: pooled(list(fitted.values())),
) -> CollectiveTimes | None:
    """The model of ``sources``, times by cluster; None where there is nothing to compare, or no known constant.

    ``choices``: those to be predicted, beside all that are described; none: all of the sources. ``scaled``: of a
    source's name, and of "" for the machine that is predicted, the constants of its cost model from those of all.
    """
    wanted = set(choices) or {choice for times in sources.values() for _, choice in times}
    useful = [_useful(times, wanted) for times in sources.values()]
    rated = {name: some for name, times in zip(sources, useful, strict=True) if (some := list(_ratios(times)))}
    fitted = {name: own for name, times in sources.items() if (own := fit_constants(times)) is not None}
    if not rated or not fitted:
        return None
    collective = next(iter(useful[0]))[0].collective
    measured = _measured(collective, useful)
    column = {kind_of(collective, choice): place for place, (choice, _) in enumerate(measured)}
    trees = ExtraTreesRegressor(_TREES, min_samples_leaf=2, random_state=seed)
    rows = [prior_rows(Sent.of([p for p, _ in some]), column, scaled(name, fitted)) for name, some in rated.items()]
    trees.fit(np.vstack(rows), [ratio for some in rated.values() for _, ratio in some])
    return CollectiveTimes(
        collective,
        forest_of(trees),
        measured,
        scaled("", fitted),
        bearable(list(sources.values())),
        tuple(sorted(sources)),
        Range.of([scenario for times in sources.values() for scenario, _ in times]),
    )


def _useful(times: Times, wanted: Collection[Choice]) -> dict[Pair, float]:
    described = np.asarray(np.isfinite(terms(list(times))).all(axis=1))
    return {pair: times[pair] for pair, is_known in zip(times, described, strict=True) if is_known or pair[1] in wanted}


def _measured(collective: str, sources: Sequence[Times]) -> tuple[tuple[Choice, int], ...]:
    """The first choice of each kind, and how many of the sources measured that kind."""
    first: dict[Kind, Choice] = {}
    count: Counter[Kind] = Counter()
    for times in sources:
        choices = sorted({choice for _, choice in times})
        for choice in choices:
            first.setdefault(kind_of(collective, choice), choice)
        count.update({kind_of(collective, choice) for choice in choices})
    return tuple(sorted((choice, count[kind]) for kind, choice in first.items()))


def _ratios(times: Times) -> Iterable[tuple[Pair, float]]:
    """Each pair with the logarithm of its time over the best, where there is something to compare with."""
    best: dict[Scenario, float] = {}
    count: dict[Scenario, int] = {}
    for (scenario, _), time_s in times.items():
        best[scenario] = min(time_s, best.get(scenario, time_s))
        count[scenario] = count.get(scenario, 0) + 1
    for pair, time_s in sorted(times.items()):
        if count[pair[0]] >= 2:
            yield pair, min(float(np.log(time_s / best[pair[0]])), _WORST)


def turn_by_turn(choice: Choice) -> Choice:
    """The choice that sends the same messages one after the other, whether or not there is one."""
    return Choice(re.sub(r"non_?blocking", "pairwise", choice.algorithm), choice.parameters)


def bearable(sources: Sequence[Times]) -> float:
    """The messages in flight that worked in every source, and half a doubling more; infinite without comparisons."""
    slowest: defaultdict[float, float] = defaultdict(float)
    for times in sources:
        for (scenario, choice), time_s in times.items():
            equivalent = turn_by_turn(choice)
            if equivalent != choice and (scenario, equivalent) in times:
                count = in_flight(scenario, choice)
                slowest[count] = max(slowest[count], time_s / times[scenario, equivalent])
    if not slowest:
        return np.inf
    borne = min(slowest)
    for count in sorted(slowest):
        if slowest[count] > _OVER_EQUIVALENT:
            break
        borne = count
    return float(borne * 2.0**_BEYOND)


def forest_of(estimator: Any) -> Forest:
    """The arrays of a fitted regression forest of scikit-learn."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in FIELDS}
    start = 0
    for grown in estimator.estimators_:
        tree = grown.tree_
        leaf = tree.children_left < 0
        missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count))
        for name, array in (
            ("feature", np.where(leaf, -1, tree.feature).astype(np.int16)),
            # Rounded down, so that no value that went left goes right.
            ("threshold", _round_down(tree.threshold)),
            ("left", np.where(leaf, 0, tree.children_left + start).astype(np.int32)),
            ("right", np.where(leaf, 0, tree.children_right + start).astype(np.int32)),
            ("missing_left", np.asarray(missing, dtype=bool)),
            ("value", tree.value[:, 0, :].astype(np.float32)),
            ("root", np.array([start], dtype=np.int32)),
        ):
            parts[name].append(array)
        start += tree.node_count
    return Forest(*(np.concatenate(parts[name]) for name in FIELDS))


def _round_down(threshold: Floats) -> NDArray[np.float32]:
    """The greatest single-precision number that is not above: x <= it is then x <= the threshold, for such x."""
    rounded = threshold.astype(np.float32)
    above = rounded.astype(np.float64) > threshold
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded).astype(np.float32)
