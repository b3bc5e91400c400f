"""What other clusters' times say of a machine that nobody measured: the model that colltune ships.

The file is a NumPy archive of plain arrays and one JSON text; reading it runs no code and needs no scikit-learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import compress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario, parse_choice
from colltune.core.space import Prediction
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune.machine.arrays import Archive
from colltune.machine.files import read_file, read_record
from colltune.predict.bursts import posts_at_once
from colltune.predict.cost import RELATIVE_COLUMNS, TERMS, Kind, Pair, Sent, kind_of
from colltune.predict.deviation import HYPERPARAMETERS, deviations
from colltune.predict.trees import Forest
from colltune.traffic import traffic_of

SCHEMA = 3
FILE = "model.npz"
HEAD = "head"
# How far beyond the clusters it was trained on a model is asked, in doublings of nodes, ranks per node and size. On
# clusters that were left out it lost as seldom there as inside (docs/design/prior.md).
_BEYOND = 2.0
# Added to the log time of a choice that has more messages in flight than worked on other machines.
_UNBORNE = 1.5
# What fewer clusters measured may be a habit of one of them.
FEWEST_CLUSTERS = 2
# Of the columns of ``prior_rows``, those that the scenario and the messages in flight are.
_PLAIN = 8
# A scenario, the default's algorithm, and others to compare with it.
Group = tuple[Scenario, Choice, Sequence[Choice]]
# A collective without tables uses those of the one that moves the same data in the same way.
LIKE = {"reduce_scatter_block": "reduce_scatter"}


def prior_rows(sent: Sent, column: Mapping[Kind, int], values: Floats) -> Floats:
    """What the trees see of each pair. (n, _PLAIN + t + 1 + m): nodes, ppn and size, ranks, bytes times and over ranks,
    messages in flight, as logarithms; whether the ranks are no power of two; what the choice sends; the cost model's
    time, by the constants ``values``; the kind of the choice, of m in ``column``.
    """
    nodes, ppn, size = sent.z.T
    ranks = nodes + ppn
    odd = np.array([float(scenario.ranks & (scenario.ranks - 1) != 0) for scenario, _ in sent.pairs])
    nothing = len(column)
    kinds = [column.get(kind_of(scenario.collective, choice), nothing) for scenario, choice in sent.pairs]
    columns = np.stack([nodes, ppn, size, ranks, size + ranks, size - ranks, np.log2(sent.flying), odd], axis=1)
    modelled = sent.relative_seconds(values)[:, None]
    return np.hstack([columns, sent.relative(), modelled, np.eye(nothing + 1)[kinds, :nothing]])


@dataclass(frozen=True)
class Range:
    """The log2 nodes, ppn and size that were trained on, least and greatest."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> "Range":
        z = scenario_columns(scenarios)
        return cls(tuple(z.min(axis=0).tolist()), tuple(z.max(axis=0).tolist()))

    def holds(self, scenarios: Sequence[Scenario]) -> NDArray[np.bool_]:
        """(n,)."""
        z = scenario_columns(scenarios)
        inside = (z >= np.array(self.low) - _BEYOND) & (z <= np.array(self.high) + _BEYOND)
        return np.asarray(inside.all(axis=1))


@dataclass(frozen=True, eq=False)
class CollectiveTimes:
    """A Model of the log of each time over the best of its scenario, from trees as arrays; of one collective.

    ``measured``: a choice of each kind that was trained on, and how many clusters measured that kind. ``constants``
    (d,): of the cost model. ``bearable``: messages in flight that worked on every cluster. ``clusters``, ``trained``:
    whose times it learned from, and where these lie.
    """

    collective: str
    forest: Forest
    measured: tuple[tuple[Choice, int], ...]
    constants: Floats
    bearable: float
    clusters: tuple[str, ...]
    trained: Range

    @cached_property
    def column(self) -> dict[Kind, int]:
        return {kind_of(self.collective, choice): place for place, (choice, _) in enumerate(self.measured)}

    def knows(self, pairs: Sequence[Pair]) -> NDArray[np.bool_]:
        """(n,): whether enough clusters measured what the choice sends, and it is known what that is here."""
        fewest = min(FEWEST_CLUSTERS, len(self.clusters))
        kinds = {kind for kind, place in self.column.items() if self.measured[place][1] >= fewest}
        known = np.array([kind_of(scenario.collective, choice) in kinds for scenario, choice in pairs], dtype=bool)
        known[known] = ~np.isnan(traffic_of(list(compress(pairs, known)))).any(axis=1)
        return known

    def unborne(self, sent: Sent) -> Floats:
        """(n,): 1 for what posts more messages at once than any cluster bore, else 0."""
        at_once = np.array([posts_at_once(choice) for _, choice in sent.pairs], dtype=float)
        return at_once * (sent.flying > self.bearable)

    def ratios(self, sent: Sent) -> Floats:
        """(n,): the log of each time over the best of its scenario, as the trees have it."""
        logs = self.forest.predict(prior_rows(sent, self.column, self.constants))
        return np.asarray(logs.mean(axis=0)[:, 0])

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        """With caution for what posts too many messages at once. NaN for what nobody measured or described."""
        sent = Sent.of(pairs)
        log_time = self.ratios(sent) + _UNBORNE * self.unborne(sent)
        measured = np.array(
            [kind_of(scenario.collective, choice) in self.column for scenario, choice in pairs], dtype=bool
        )
        known = measured | ~np.isnan(sent.traffic).any(axis=1)
        return Prediction(np.where(known, log_time, np.nan), np.where(known, 0.5, np.inf))


@dataclass(frozen=True, eq=False)
class TimesModel:
    """``theta``: HYPERPARAMETERS of ``predict/deviation.py``, fitted to what is left of left-out clusters."""

    collectives: Mapping[str, CollectiveTimes]
    theta: Mapping[str, float]

    def knows(self, collective: str) -> bool:
        """Whether other clusters measured it, or one that moves the same data in the same way."""
        return LIKE.get(collective, collective) in self.collectives

    def of(self, collective: str) -> CollectiveTimes:
        """Raises KeyError for what is not known."""
        return self.collectives[LIKE.get(collective, collective)]

    def against(self, collective: str, groups: Sequence[Group]) -> tuple[Floats, Floats]:
        """(n,): mean and deviation of the log time of each choice of each group over that of the group's default.

        What posts too many messages at once is marked down as a choice, and not as the default: on a machine that bears
        more than others did its default is fast.
        """
        own, counts = self.of(collective), np.array([len(choices) for _, _, choices in groups], dtype=np.intp)
        sent = Sent.of([(scenario, choice) for scenario, default, some in groups for choice in (default, *some)])
        defaults = np.cumsum(counts + 1) - counts - 1
        bases, rows = np.repeat(defaults, counts), np.delete(np.arange(len(sent.pairs)), defaults)
        ratio, mark = own.ratios(sent), own.unborne(sent)
        mean = self.theta["trees"] * (ratio[rows] - ratio[bases] + _UNBORNE * mark[rows])
        return mean, deviations(self.theta, own.constants, sent, rows, bases, mark)


def load_model(path: Path | None = None) -> TimesModel:
    """The model of a file, or the one that colltune ships. Raises InputError for a file that is no model."""
    try:
        shipped = resources.files("colltune.predict").joinpath(FILE)
        data = shipped.read_bytes() if path is None else read_file(path, link=True)
        return _read(Archive(data))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path or 'the shipped model'} is not a model: {error!r}", "Make one by `colltune study train`"
        ) from error


class _WrittenTimes(msgspec.Struct):
    """What of ``CollectiveTimes`` is no array."""

    measured: tuple[tuple[str, int], ...]
    constants: tuple[float, ...]
    bearable: float | None
    clusters: tuple[str, ...]
    trained: Range


class _ModelHead(msgspec.Struct):
    schema: int
    terms: tuple[str, ...]
    theta: dict[str, float]
    collectives: dict[str, _WrittenTimes]


def _read(arrays: Mapping[str, NDArray[Any]]) -> TimesModel:
    head = read_record(bytes(arrays[HEAD]), _ModelHead)
    if head.schema != SCHEMA or head.terms != tuple(TERMS):
        raise ValueError(f"it has schema {head.schema}, and this colltune reads {SCHEMA}")
    if set(head.theta) != set(HYPERPARAMETERS) or not np.isfinite(list(head.theta.values())).all():
        raise ValueError("its hyperparameters are of another colltune")
    models = {}
    for name, times in head.collectives.items():
        if len(times.constants) != len(TERMS):
            raise ValueError(f"{name} has {len(times.constants)} constants")
        measured = tuple((parse_choice(text), count) for text, count in times.measured)
        column = {kind_of(name, choice): place for place, (choice, _) in enumerate(measured)}
        prefix = f"{name}."
        # An array of the archive is decompressed when it is looked up.
        own = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
        forest = Forest.from_arrays(own, _PLAIN + RELATIVE_COLUMNS + 1 + len(column))
        bearable = np.inf if times.bearable is None else times.bearable
        values = np.array(times.constants)
        models[name] = CollectiveTimes(name, forest, measured, values, bearable, times.clusters, times.trained)
    return TimesModel(models, head.theta)
