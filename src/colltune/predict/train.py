"""Trains the model that colltune ships, and finds from where on it may be believed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from colltune.core.errors import InputError
from colltune.core.hardware import Hardware
from colltune.predict.classify import make_trees
from colltune.predict.columns import Floats, columns_of
from colltune.predict.families import family
from colltune.predict.model import FamilyForest, PretrainedModel, Range, save_model
from colltune.predict.relative import FamilyTimes, by_family, fit_relative, relative_rows, with_families
from colltune.predict.table import Label, Timed, holds_times, read_tables
from colltune.predict.times_training import read_times, times_arrays, train_times
from colltune.predict.trees import forest_of

# On clusters held back, the word of a model must have been right this often, above its threshold.
_WANTED = 0.9
_FEWEST_CLUSTERS = 3
_FEWEST_ROWS = 40
_CLASSIFIER_TREES = 40
_CLASSIFIER_LEAF = 4
# A family within this share of the best is as good as the best: its word counts as right.
_TIE = float(np.log(1.05))

Listener = Callable[[str], None]


def train_into(
    out: Path,
    tables: Sequence[Path],
    hardware: dict[str, Hardware],
    seed: int = 0,
    listen: Listener = lambda _text: None,
) -> PretrainedModel:
    """Learns from ``tables``, of best algorithms and of times, and writes the file ``out``. Raises InputError.

    The file holds the forests by family and, where two clusters measured one collective, the model of times.
    """
    labels, timed = read_tables(tables)
    listen(f"{len(labels)} best algorithms, {len(timed)} scenarios with times")
    model = train_model(labels, timed, hardware, seed, listen)
    try:
        times = train_times(read_times([path for path in tables if holds_times(path)]), seed) if timed else None
    except InputError as error:
        listen(f"no model of times: {error.what}")
        times = None
    known = [] if times is None else list(times.collectives)
    model = replace(model, card={**model.card, "times": known})
    save_model(model, out, None if times is None else times_arrays(times))
    return model


def train_model(
    labels: Sequence[Label],
    timed: Sequence[Timed],
    hardware: dict[str, Hardware],
    seed: int = 0,
    listen: Listener = lambda _text: None,
) -> PretrainedModel:
    """One forest per collective and kind of data of which there are enough clusters. Raises InputError without any."""
    forests: dict[str, list[FamilyForest]] = {}
    card: dict[str, list[str]] = {}
    known = [label for label in labels if family(label.scenario.collective, label.algorithm) is not None]
    for collective, own in sorted(_by_collective(known).items()):
        if _enough(collective, "classifier", own, listen):
            _keep(forests, card, collective, _classifier(own, hardware, seed), own, listen)
    for collective, some in sorted(_by_collective(by_family(timed)).items()):
        if _enough(collective, "relative", some, listen):
            _keep(forests, card, collective, _relative(some, hardware, seed), some, listen)
    if not forests:
        raise InputError(
            f"no collective has {_FEWEST_ROWS} rows of {_FEWEST_CLUSTERS} clusters", "Give tables of more clusters"
        )
    return PretrainedModel(forests, {"clusters": card, "seed": seed})


_Row = TypeVar("_Row", Label, FamilyTimes)


def _by_collective(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    found: defaultdict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.scenario.collective].append(row)
    return found


def _enough(collective: str, kind: str, rows: Sequence[Label] | Sequence[FamilyTimes], listen: Listener) -> bool:
    clusters = {row.cluster for row in rows}
    enough = len(clusters) >= _FEWEST_CLUSTERS and len(rows) >= _FEWEST_ROWS
    if not enough:
        listen(f"{collective}, {kind}: {len(rows)} rows of {len(clusters)} clusters are too few to learn from")
    return enough


def _keep(
    forests: dict[str, list[FamilyForest]],
    card: dict[str, list[str]],
    collective: str,
    made: FamilyForest,
    rows: Sequence[Label] | Sequence[FamilyTimes],
    listen: Listener,
) -> None:
    forests.setdefault(collective, []).append(made)
    names = sorted({row.cluster for row in rows})
    card[f"{collective} {made.kind}"] = names
    believed = "never" if made.threshold is None else f"from {made.threshold:.2f} on, right {made.precision:.0%}"
    listen(f"{collective}, {made.kind}: {len(rows)} rows of {len(names)} clusters; on unseen ones believed {believed}")


def _held_back(clusters: NDArray[np.str_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    for name in np.unique(clusters):
        yield clusters != name, clusters == name


def _classifier(labels: Sequence[Label], hardware: dict[str, Hardware], seed: int) -> FamilyForest:
    def grown(x: Floats, y: NDArray[np.str_]) -> Any:
        return make_trees(seed, _CLASSIFIER_TREES, _CLASSIFIER_LEAF).fit(x, y)

    nothing = Hardware()
    scenarios = [label.scenario for label in labels]
    x = columns_of(scenarios, [hardware.get(label.cluster, nothing) for label in labels])
    y = np.array([family(label.scenario.collective, label.algorithm) or "" for label in labels])
    share, right = np.zeros(len(y)), np.zeros(len(y), dtype=bool)
    for train, test in _held_back(np.array([label.cluster for label in labels])):
        model = grown(x[train], y[train])
        shares = model.predict_proba(x[test])
        share[test] = shares.max(axis=1)
        right[test] = model.classes_[shares.argmax(axis=1)] == y[test]
    threshold, precision = _threshold(share, right)
    model = grown(x, y)
    families = tuple(str(name) for name in model.classes_)
    return FamilyForest("classifier", families, forest_of(model), Range.of(scenarios), threshold, precision)


def _relative(times: Sequence[FamilyTimes], hardware: dict[str, Hardware], seed: int) -> FamilyForest:
    families = sorted({name for one in times for name in one.times_s})
    clusters = np.array([one.cluster for one in times])
    gaps: list[float] = []
    right: list[bool] = []
    for train, test in _held_back(clusters):
        model = fit_relative(relative_rows(_picked(times, train), hardware, families), seed)
        held = _picked(times, test)
        x = columns_of([one.scenario for one in held], [hardware.get(one.cluster, Hardware()) for one in held])
        said = model.predict(with_families(x, families)).reshape(len(held), -1)
        for row, one in zip(said, held, strict=True):
            for gap, is_right in _switches(row, one, families):
                gaps.append(gap)
                right.append(is_right)
    threshold, precision = _threshold(np.array(gaps), np.array(right, dtype=bool))
    forest = forest_of(fit_relative(relative_rows(times, hardware, families), seed))
    trained = Range.of([one.scenario for one in times])
    return FamilyForest("relative", tuple(families), forest, trained, threshold, precision)


def _picked(times: Sequence[FamilyTimes], rows: NDArray[np.bool_]) -> list[FamilyTimes]:
    return [one for one, is_wanted in zip(times, rows, strict=True) if is_wanted]


def _switches(said: Floats, one: FamilyTimes, families: Sequence[str]) -> Iterator[tuple[float, bool]]:
    """Each switch from a family to the one that is said to be best: the gap that is said, and whether it pays."""
    measured = {name: float(said[families.index(name)]) for name in one.times_s}
    best = min(measured, key=lambda name: measured[name])
    for name in measured:
        if name != best:
            yield measured[name] - measured[best], one.times_s[best] <= one.times_s[name]


def _threshold(sureness: Floats, right: NDArray[np.bool_]) -> tuple[float | None, float]:
    """The least value from which on the share of right ones is _WANTED, with enough of them to tell; and that share."""
    order = np.argsort(-sureness)
    share = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero((share >= _WANTED) & (np.arange(1, len(order) + 1) >= _FEWEST_ROWS))
    if not len(good):
        return None, 0.0
    last = int(good[-1])
    return float(sureness[order[last]]), float(share[last])
