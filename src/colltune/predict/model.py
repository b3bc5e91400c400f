"""What other clusters' times say of a machine before and after a few measurements: the model that colltune ships.

The file is a NumPy archive of plain arrays and one JSON text; reading it runs no code and needs no scikit-learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from colltune.core.choice import Choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.model_answers import Prediction
from colltune.core.scenario import Scenario
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune.machine.arrays import Archive
from colltune.machine.files import read_file, read_record
from colltune.predict.bursts import in_flight, posts_at_once
from colltune.predict.calibration import Calibration
from colltune.predict.cost import TERMS, Constants, Pair, described, pooled
from colltune.predict.pair_kernel import HYPERPARAMETERS, PairKernel
from colltune.predict.prior_rows import UNBORNE, prior_rows
from colltune.predict.trees import Forest

SCHEMA = 2
FILE = "model.npz"
HEAD = "head"
# How far beyond the clusters it was trained on a model is asked, in doublings of nodes, ranks per node and size. On
# clusters that were left out it lost as seldom there as inside (docs/design/prior.md).
_BEYOND = 1.0
# A collective without tables uses those of the one that moves the same data in the same way.
_LIKE = {"reduce_scatter_block": "reduce_scatter"}


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

    ``clusters``, ``trained``: whose times it learned from, and where these lie. It predicts elsewhere too.
    """

    forest: Forest
    number: Mapping[Choice, int]
    constants: Constants
    bearable: float
    clusters: tuple[str, ...]
    trained: Range

    def knows(self, pair: Pair) -> bool:
        """Whether it was measured, or it is known what it sends."""
        return pair[1] in self.number or described(*pair) is not None

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        """NaN for what nobody measured or described."""
        log_time = np.full(len(pairs), np.nan)
        known = [row for row, pair in enumerate(pairs) if self.knows(pair)]
        if known:
            some = [pairs[row] for row in known]
            risk = [float(posts_at_once(c) and in_flight(s, c) > self.bearable) for s, c in some]
            rows = prior_rows(some, self.number, self.constants.values)
            log_time[known] = self.forest.predict(rows).mean(axis=0)[:, 0] + UNBORNE * np.array(risk)
        return Prediction(log_time, np.where(np.isfinite(log_time), 0.5, np.inf))


@dataclass(frozen=True)
class TrainedTimes:
    """A Model: what ``times`` says where it was trained, and nothing elsewhere."""

    times: CollectiveTimes

    def predict(self, pairs: Sequence[Pair]) -> Prediction:
        said = self.times.predict(pairs)
        inside = self.times.trained.holds([scenario for scenario, _ in pairs])
        return Prediction(np.where(inside, said.log_time, np.nan), np.where(inside, said.std, np.inf))


class _Nothing:
    """A Model that knows nothing."""

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        return Prediction(np.full(len(pairs), np.nan), np.full(len(pairs), np.inf))


@dataclass(frozen=True, eq=False)
class TimesModel:
    """``theta`` (h,): hyperparameters of ``predict/pair_kernel.py``, fitted to what is left of left-out clusters."""

    collectives: Mapping[str, CollectiveTimes]
    theta: Floats

    def knows(self, collective: str) -> bool:
        """Whether other clusters measured it, or one that moves the same data in the same way."""
        return _LIKE.get(collective, collective) in self.collectives

    def of(self, collective: str) -> CollectiveTimes:
        """Raises KeyError for what is not known."""
        return self.collectives[_LIKE.get(collective, collective)]

    def calibration(
        self, collective: str, pairs: Sequence[Pair], seed: int = 0, defaults: Mapping[Scenario, Choice] | None = None
    ) -> Calibration:
        """What is known of ``pairs`` of one collective before any measurement; ``defaults`` as of Calibration.

        Of a collective without tables no choice is known to be better; the constants are the mean of the others'.
        """
        own = self.collectives.get(_LIKE.get(collective, collective))
        constants, bearable = self._mean() if own is None else (own.constants, own.bearable)
        kernel = PairKernel(self.theta, constants.values, bearable)
        return Calibration(pairs, own or _Nothing(), constants, kernel, seed, defaults=defaults)

    def _mean(self) -> tuple[Constants, float]:
        some = [one.constants for one in self.collectives.values()]
        return Constants(pooled(some), some[0].uncertainty), min(one.bearable for one in self.collectives.values())


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

    choices: tuple[str, ...]
    constants: tuple[float, ...]
    uncertainty: tuple[float, ...]
    bearable: float | None
    clusters: tuple[str, ...]
    trained: Range


class _ModelHead(msgspec.Struct):
    schema: int
    terms: tuple[str, ...]
    hyperparameters: tuple[str, ...]
    theta: tuple[float, ...]
    collectives: dict[str, _WrittenTimes]


def _read(arrays: Mapping[str, Any]) -> TimesModel:
    head = read_record(bytes(arrays[HEAD]), _ModelHead)
    if head.schema != SCHEMA or head.terms != tuple(TERMS):
        raise ValueError(f"it has schema {head.schema}, and this colltune reads {SCHEMA}")
    if head.hyperparameters != tuple(name for name, _ in HYPERPARAMETERS):
        raise ValueError("its hyperparameters are of another colltune")
    found = {}
    for collective, one in head.collectives.items():
        number = {parse_choice(text): place for place, text in enumerate(one.choices)}
        constants = Constants(np.array(one.constants), np.array(one.uncertainty))
        prefix = f"{collective}."
        # An array of the archive is decompressed when it is looked up.
        own = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
        some = [(Scenario(collective, 2, 1, 64), choice) for choice in list(number)[:1]]
        forest = Forest.from_arrays(own, prior_rows(some, number, constants.values).shape[1])
        bearable = np.inf if one.bearable is None else one.bearable
        found[collective] = CollectiveTimes(forest, number, constants, bearable, one.clusters, one.trained)
    return TimesModel(found, np.array(head.theta))
