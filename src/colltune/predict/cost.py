"""A cost model of algorithms: their traffic times a machine's constants.

A time is the sum of terms of LogGP (Alexandrov et al. 1995): rounds, messages and bytes of the busiest rank and node,
and work on memory (``colltune.traffic``). The constants are the mean of those of other clusters.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from operator import attrgetter

import numpy as np

from colltune.catalog.read import read_toml
from colltune.core.sample import DEFAULT, Choice, Scenario, parse_choice
from colltune.learn.scenario_columns import Floats
from colltune.predict.bursts import in_flight
from colltune.traffic import Traffic, describe

# A time is the sum of these numbers, each times a constant. Two thresholds stand for the protocol of large messages.
TERMS = (
    "call", "network_rounds", "local_rounds", "rank_messages", "node_messages", "rank_network_bytes", "node_bytes",
    "local_bytes", "reduced_bytes", "copied_bytes", "far_bytes", "rounds_beyond_8k", "rounds_beyond_256k",
)  # fmt: skip
_counted = attrgetter(*TERMS[1:-2])
_MOST_RANKS = 16384
# Textbook algorithms of each collective: by them terms are compared at one scenario.
_REFERENCE: dict[str, list[str]] = read_toml("textbook")

Pair = tuple[Scenario, Choice]


def terms(pairs: Sequence[Pair]) -> Floats:
    """(n, d): the terms of each pair; NaN for one without a description."""
    return np.array([_terms(*pair) for pair in pairs], dtype=float).reshape(len(pairs), len(TERMS))


@lru_cache(maxsize=100_000)
def described(scenario: Scenario, choice: Choice) -> Traffic | None:
    """The traffic of a pair; None for the default, and on more ranks than there is time to go through."""
    return None if choice == DEFAULT or scenario.ranks > _MOST_RANKS else describe(scenario, choice)


@lru_cache(maxsize=100_000)
def _terms(scenario: Scenario, choice: Choice) -> tuple[float, ...]:
    found = described(scenario, choice)
    if found is None:
        return (float("nan"),) * len(TERMS)
    mean = found.rank_network_bytes / max(found.rank_network_messages, 1.0)
    return 1.0, *_counted(found), found.network_rounds * (mean > 8192), found.network_rounds * (mean > 262144)


_ABSOLUTE = ("burst", "burst_rank", "largest", "network_rounds")
# What is compared with the references, beside the model's own time: all that adds up over the rounds, but for memory.
_RELATIVE = tuple(one for one in Traffic.__slots__ if one not in ("burst", "burst_rank", "largest", "memory_bytes"))
RELATIVE_COLUMNS = len(_RELATIVE) + len(_ABSOLUTE)
_compared, _absolute = attrgetter(*_RELATIVE), attrgetter(*_ABSOLUTE)
_FARTHEST = 5.0


# Shapes and a size at which choices are compared by what they send: nodes, ranks per node, bytes.
_COMPARED_AT = ((16, 4, 65536), (8, 1, 1024))
Kind = tuple[object, ...]


@lru_cache(maxsize=2_000)
def kind_of(collective: str, choice: Choice) -> Kind:
    """What a choice sends: alike for choices, of whatever library, that send the same; its name where none knows."""
    pairs = [(Scenario(collective, *at), choice) for at in _COMPARED_AT]
    if any(described(*pair) is None for pair in pairs):
        return (str(choice),)
    sent = np.round(relative_columns(pairs), 3).ravel().tolist()
    return (*sent, *(round(np.log2(in_flight(*pair)), 2) for pair in pairs))


@lru_cache(maxsize=20_000)
def _references(scenario: Scenario) -> tuple[Choice, ...]:
    return tuple(choice for choice in _textbook(scenario.collective) if described(scenario, choice) is not None)


@cache
def _textbook(collective: str) -> tuple[Choice, ...]:
    return tuple(map(parse_choice, _REFERENCE.get(collective, ())))


@lru_cache(maxsize=20_000)
def _least(scenario: Scenario) -> tuple[float, ...] | None:
    """The least of each of _RELATIVE that a reference has; None where there is no reference."""
    others = [described(scenario, other) for other in _references(scenario)]
    return tuple(map(min, zip(*(_compared(other) for other in others if other is not None), strict=True))) or None


def relative_columns(pairs: Sequence[Pair]) -> Floats:
    """(n, RELATIVE_COLUMNS): logarithms of the traffic over that of textbook algorithms; -1 where unknown."""
    found = np.full((len(pairs), RELATIVE_COLUMNS), -1.0)
    own = [(described(*pair), _least(pair[0])) for pair in pairs]
    known = [(row, traffic, least) for row, (traffic, least) in enumerate(own) if traffic is not None and least]
    if known:
        rows, sent, references = zip(*known, strict=True)
        compared, absolute = np.array([_compared(one) for one in sent]), np.array([_absolute(one) for one in sent])
        ratios = (compared + 1.0) / (np.array(references) + 1.0)
        found[list(rows)] = np.log2(np.hstack([ratios, absolute + 1.0]))
    return found


def textbook_seconds(scenarios: Sequence[Scenario], values: Floats) -> Floats:
    """(n,): the model's time of the best textbook algorithm in each scenario; NaN where there is none."""
    others = [_references(scenario) for scenario in scenarios]
    pairs = [(scenario, other) for scenario, some in zip(scenarios, others, strict=True) for other in some]
    found = np.full(len(scenarios), np.inf)
    np.minimum.at(found, np.repeat(np.arange(len(scenarios)), list(map(len, others))), terms(pairs) @ values)
    return np.where(np.isfinite(found), found, np.nan)


def relative_seconds(pairs: Sequence[Pair], values: Floats) -> Floats:
    """(n,): the logarithm of the model's time over the best textbook algorithm's, cut off at 5; -1 where unknown."""
    own = terms(pairs) @ values
    scenarios = list(dict.fromkeys(scenario for scenario, _ in pairs))
    best = dict(zip(scenarios, textbook_seconds(scenarios, values), strict=True))
    ratio = own / np.array([best[scenario] for scenario, _ in pairs])
    known = np.isfinite(ratio) & (ratio > 0)
    return np.where(known, np.clip(np.log(np.where(known, ratio, 1.0)), -_FARTHEST, _FARTHEST), -1.0)
