"""A cost model of algorithms: their traffic times a machine's constants.

A time is the sum of terms of LogGP (Alexandrov et al. 1995): rounds, messages and bytes of the busiest rank and node,
and work on memory (``colltune.traffic``). The constants are the mean of those of other clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from colltune.catalog.read import read_toml
from colltune.core.sample import DEFAULT, Choice, Scenario, parse_choice
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune.predict.bursts import in_flight
from colltune.traffic import COLUMNS, traffic_of

# A time is the sum of these numbers, each times a constant. Two thresholds stand for the protocol of large messages.
TERMS = (
    "call", "network_rounds", "local_rounds", "rank_messages", "node_messages", "rank_network_bytes", "node_bytes",
    "local_bytes", "reduced_bytes", "copied_bytes", "far_bytes", "rounds_beyond_8k", "rounds_beyond_256k",
)  # fmt: skip
_COUNTED = list(map(COLUMNS.index, TERMS[1:-2]))
_ROUNDS, _MESSAGES, _BYTES = map(COLUMNS.index, ("network_rounds", "rank_network_messages", "rank_network_bytes"))
# Textbook algorithms of each collective, two or none: by them what is sent is compared at one scenario.
_REFERENCE: dict[str, list[str]] = read_toml("textbook")
_ABSOLUTE = list(map(COLUMNS.index, ("burst", "burst_rank", "largest", "network_rounds")))
# What is compared with the references, beside the model's own time: all that adds up over the rounds, but for memory.
_RELATIVE = [at for at, name in enumerate(COLUMNS) if name not in ("burst", "burst_rank", "largest", "memory_bytes")]
RELATIVE_COLUMNS = len(_RELATIVE) + len(_ABSOLUTE)
_FARTHEST = 5.0
# Shapes and a size at which choices are compared by what they send: nodes, ranks per node, bytes.
_COMPARED_AT = ((16, 4, 65536), (8, 1, 1024))

Pair = tuple[Scenario, Choice]
Kind = tuple[object, ...]
Places = NDArray[np.intp]


def terms(pairs: Sequence[Pair]) -> Floats:
    """(n, d): the terms of each pair; NaN for one without a description."""
    return _terms(traffic_of(pairs))


def _terms(traffic: Floats) -> Floats:
    rounds = traffic[:, _ROUNDS]
    mean = traffic[:, _BYTES] / np.maximum(traffic[:, _MESSAGES], 1.0)
    call = np.where(np.isnan(rounds), np.nan, 1.0)
    return np.column_stack([call, traffic[:, _COUNTED], rounds * (mean > 8192), rounds * (mean > 262144)])


@dataclass(frozen=True, eq=False)
class Sent:
    """n pairs in s scenarios, and what they send.

    ``scenario`` (n,): the place of each pair's. ``z`` (n, 3): scenarios as numbers; ``flying`` (n,): messages in
    flight. ``traffic`` (n, t): in the order of COLUMNS; ``textbook`` (2 s, t): of two algorithms in each scenario; NaN
    where nobody knows.
    """

    pairs: Sequence[Pair]
    scenario: Places
    z: Floats
    flying: Floats
    traffic: Floats
    textbook: Floats

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Sent":
        places: dict[Scenario, int] = {}
        own = np.array([places.setdefault(scenario, len(places)) for scenario, _ in pairs], dtype=np.intp)
        flying = np.array([in_flight(*pair) for pair in pairs])
        textbook = traffic_of([(scenario, other) for scenario in places for other in _references(scenario.collective)])
        return cls(pairs, own, scenario_columns(list(places))[own], flying, traffic_of(pairs), textbook)

    def relative(self) -> Floats:
        """(n, RELATIVE_COLUMNS): logarithms of the traffic over that of textbook algorithms; -1 where unknown."""
        least = _least(self.textbook)[self.scenario]
        ratios = (self.traffic[:, _RELATIVE] + 1.0) / (least[:, _RELATIVE] + 1.0)
        logs = np.log2(np.hstack([ratios, self.traffic[:, _ABSOLUTE] + 1.0]))
        return np.where(np.isnan(ratios[:, :1]), -1.0, logs)

    def shares(self, values: Floats) -> Floats:
        """(n, d): of each term in the cost model's time, by the constants ``values`` (d,); 0 where unknown."""
        seconds = _terms(self.traffic) * values
        known = np.isfinite(seconds).all(axis=1, keepdims=True)
        whole = np.where(known, np.nansum(seconds, axis=1, keepdims=True), 1.0)
        return np.asarray(np.where(known, seconds, 0.0) / np.maximum(whole, 1e-30))

    def relative_seconds(self, values: Floats) -> Floats:
        """(n,): the logarithm of the model's time over the best textbook one's, cut off at 5; -1 where unknown."""
        ratio = _terms(self.traffic) @ values / _least(_terms(self.textbook) @ values)[self.scenario]
        known = np.isfinite(ratio) & (ratio > 0)
        return np.where(known, np.clip(np.log(np.where(known, ratio, 1.0)), -_FARTHEST, _FARTHEST), -1.0)


def _least(textbook: Floats) -> Floats:
    """Of the two of each scenario, or of that which is known."""
    return np.fmin(textbook[::2], textbook[1::2])


@cache
def _references(collective: str) -> tuple[Choice, Choice]:
    """The default, of which nobody knows anything, twice where there are none."""
    first, second = map(parse_choice, _REFERENCE.get(collective, (str(DEFAULT), str(DEFAULT))))
    return first, second


@lru_cache(maxsize=2_000)
def kind_of(collective: str, choice: Choice) -> Kind:
    """What a choice sends: alike for choices, of whatever library, that send the same; its name where none knows."""
    both = Sent.of([(Scenario(collective, *at), choice) for at in _COMPARED_AT])
    if np.isnan(both.traffic).any():
        return (str(choice),)
    return (*np.round(both.relative(), 3).ravel().tolist(), *np.round(np.log2(both.flying), 2).tolist())
