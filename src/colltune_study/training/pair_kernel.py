"""How alike the times of two pairs are expected to be: the covariance of what a prior from other machines leaves.

Notations: n pairs; ``theta`` (h,): logarithms of the hyperparameters, in the order of _MEDIANS; d terms of the
cost model. The logarithm of a pair's time is a level that all choices of a scenario share, plus ``trees`` times the
prior's prediction, plus a Gaussian process whose covariance is the sum of

- a part of each choice: constant, linear and Matern-5/2 over log nodes, ppn and size,
- a part of what a pair sends (``colltune.traffic`` over textbook algorithms): pairs that send alike err alike,
- a part of the cost model's terms: the share of each term in the time is the slope of the log time over the log of the
  term's constant, so this part is the model's constants, unknown by a factor of exp(``constants``),
- a part of what posts more messages at once than any other machine bore (``predict/bursts.py``), and
- what no smooth function explains.

So a few measurements correct the prediction of many choices, also of some that were not measured. Background: Rasmussen
and Williams 2006, chapters 2 and 5; Bonilla, Chai and Williams 2008 for descriptions of tasks as inputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Choice, Scenario
from colltune.learn.scenario_columns import Floats
from colltune.predict.bursts import posts_at_once
from colltune.predict.cost import Pair, Sent
from colltune.predict.deviation import CENTRE, HYPERPARAMETERS, SCALE, UNBORNE_LENGTH, UNBORNE_SD, relative_traffic

# Name and median of the prior of each. Amplitudes are in units of log time, lengths in doublings (traffic: of the root
# mean square difference of its columns; shares: of their Euclidean distance).
_MEDIANS = (
    ("constant", 0.2), ("linear", 0.1), ("smooth", 0.25), ("traffic_smooth", 0.25), ("traffic", 0.25),
    ("constants", 0.3), ("shares", 0.2), ("rough", 0.1), ("traffic_length", 1.0), ("shares_length", 0.3),
    ("nodes_length", 3.0), ("ppn_length", 3.0), ("size_length", 4.0), ("trees", 1.0),
)  # fmt: skip
PRIOR_THETA: Floats = np.log([median for _, median in _MEDIANS])
_PLACE = {name: place for place, (name, _) in enumerate(_MEDIANS)}

# The level of a scenario: variance of its constant and linear part, of its smooth part, and of its own.
_LEVEL = (1.0, 0.5, 0.1)
_LEVEL_LENGTH = 3.0
# A pair of which the prior knows nothing counts as this much slower than the best.
UNKNOWN = 0.5
# The library's own selection may be any algorithm, so of its time less is known than of an algorithm's.
_UNDESCRIBED = 0.5


def amplitudes(theta: Floats) -> dict[str, float]:
    """What ``predict/deviation.py`` needs of the hyperparameters."""
    return {name: float(np.exp(theta[_PLACE[name]])) for name in HYPERPARAMETERS}


@dataclass(frozen=True, slots=True)
class Columns:
    """What the kernel sees of n pairs: ``z`` (n, 3), ``traffic`` (n, t), ``shares`` (n, d) of the terms in the time;
    ``described``, ``unborne`` (n,) as 0 or 1; ``flying`` (n,) log2 messages in flight; ``scenario``, ``choice`` (n,)
    numbers.
    """

    z: Floats
    traffic: Floats
    shares: Floats
    described: Floats
    unborne: Floats
    flying: Floats
    scenario: NDArray[np.intp]
    choice: NDArray[np.intp]


@dataclass(frozen=True)
class PairKernel:
    """``values`` (d,): the cost model's constants, seconds per unit; ``bearable``: messages in flight that worked on
    every source.
    """

    theta: Floats
    values: Floats
    bearable: float = np.inf
    _scenarios: dict[Scenario, int] = field(default_factory=dict)
    _choices: dict[Choice, int] = field(default_factory=dict)

    @property
    def trees(self) -> float:
        """The weight of the prior's prediction."""
        return float(np.exp(self.theta[_PLACE["trees"]]))

    def columns(self, pairs: Sequence[Pair]) -> Columns:
        """Columns of ``pairs``, in their order; scenarios and choices keep their numbers from call to call."""
        sent = Sent.of(pairs)
        at_once = np.array([posts_at_once(choice) for _, choice in pairs], dtype=bool)
        return Columns(
            z=sent.z,
            traffic=relative_traffic(sent),
            shares=sent.shares(self.values),
            described=np.isfinite(sent.traffic).all(axis=1).astype(float),
            unborne=(at_once & (sent.flying > self.bearable)).astype(float),
            flying=np.log2(sent.flying),
            scenario=np.array([self._scenarios.setdefault(s, len(self._scenarios)) for s, _ in pairs], dtype=np.intp),
            choice=np.array([self._choices.setdefault(c, len(self._choices)) for _, c in pairs], dtype=np.intp),
        )

    def covariance(self, one: Columns, other: Columns) -> Floats:
        """(n, m): of the log times of two sets of pairs."""
        h = dict(zip(_PLACE, np.exp(self.theta), strict=True))
        lengths = np.array([h["nodes_length"], h["ppn_length"], h["size_length"]])
        near = _matern(one.z, other.z, lengths)
        line = ((one.z - CENTRE) / SCALE) @ ((other.z - CENTRE) / SCALE).T
        same = one.choice[:, None] == other.choice[None]
        here = one.scenario[:, None] == other.scenario[None]
        found = same * (h["constant"] ** 2 + h["linear"] ** 2 * line + h["smooth"] ** 2 * near)
        both = one.described[:, None] * other.described[None]
        apart = _squared(one.traffic, other.traffic) / one.traffic.shape[1]
        alike = both * np.exp(-0.5 * apart / h["traffic_length"] ** 2)
        found += alike * (h["traffic"] ** 2 + h["traffic_smooth"] ** 2 * near)
        found += h["constants"] ** 2 * (one.shares @ other.shares.T)
        close = both * np.exp(-_squared(one.shares, other.shares) * 0.5 / h["shares_length"] ** 2)
        found += h["shares"] ** 2 * close * near
        found += h["rough"] ** 2 * (same & here)
        found += _UNDESCRIBED**2 * same * (1.0 - one.described[:, None]) * (1.0 + near)
        doublings = np.abs(one.flying[:, None] - other.flying[None])
        found += UNBORNE_SD**2 * np.outer(one.unborne, other.unborne) * np.exp(-doublings / UNBORNE_LENGTH)
        found += _LEVEL[0] * (1.0 + line) + _LEVEL[1] * _matern(one.z, other.z, np.full(3, _LEVEL_LENGTH))
        found += _LEVEL[2] * here
        return np.asarray(found)


def _squared(one: Floats, other: Floats) -> Floats:
    """(n, m): squared Euclidean distances."""
    found = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None] - 2.0 * (one @ other.T)
    return np.asarray(np.maximum(found, 0.0))


def _matern(one: Floats, other: Floats, lengths: Floats) -> Floats:
    radius = np.sqrt(5.0 * _squared(one / lengths, other / lengths))
    return np.asarray((1.0 + radius + radius * radius / 3.0) * np.exp(-radius))
