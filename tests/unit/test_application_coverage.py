"""How often the interval of `run --measure` holds the truth, over hundreds of simulated programs of many kinds."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from colltune.core.choice import Choice
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.session.application_gain import gain_of

CHOICES = [Choice("ring")]
BLOCK_CALLS, TUNED_CALLS, CALL_S = 100, 100_000, 1e-4
# Standard deviation and autocorrelation of the blocks' logarithms, their drift over the run, and their tails.
KINDS = {
    "quiet": (0.02, 0.0, 0.0, "normal"),
    "noisy": (0.3, 0.0, 0.0, "normal"),
    "correlated": (0.1, 0.9, 0.0, "normal"),
    "drifting": (0.1, 0.5, 1.0, "normal"),
    "tails": (0.1, 0.0, 0.0, "student"),
    "spikes": (0.05, 0.5, 0.3, "spikes"),
}
# In rounds of two blocks each pair has an order of its own; in longer ones every second order is the first reversed.
BLOCKS_A_ROUND = (2, 6)


def noise(random: np.random.Generator, blocks: int, kind: str) -> NDArray[np.float64]:
    """The logarithm of what disturbs each block."""
    spread, correlation, drift, tails = KINDS[kind]
    steps = random.standard_normal(blocks) if tails != "student" else 0.6 * random.standard_t(2.5, blocks)
    made = np.empty(blocks)
    made[0] = steps[0]
    for at in range(1, blocks):
        made[at] = correlation * made[at - 1] + math.sqrt(1.0 - correlation**2) * steps[at]
    made = spread * made + drift * np.arange(blocks) / blocks
    if tails == "spikes":  # the node does other things now and then
        made += np.where(random.random(blocks) < 0.03, random.exponential(1.0, blocks), 0.0)
    return np.asarray(made)


def program(
    random: np.random.Generator, rounds: int, blocks: int, ratio: float, kind: str, adds: bool
) -> tuple[Sequence[BlockPair], float]:
    """The pairs of a run, and the true seconds that the tuning saved in it.

    ``adds``: the default adds a fixed time to a block, whatever disturbs it; else it multiplies.
    """
    tuned = np.exp(noise(random, blocks * rounds, kind))
    default = tuned + ratio - 1.0 if adds else tuned * ratio
    pairs, first = [], True
    for number in range(rounds):
        first = bool(random.integers(2)) if blocks == 2 or number % 2 == 0 else not first
        at = blocks * number + int(random.integers(blocks - 1))
        slow, fast = (at, at + 1) if first else (at + 1, at)
        times = [
            BlockTimes(0.3 * wall_s, wall_s, 0.0, 0.0)
            for wall_s in (BLOCK_CALLS * CALL_S * default[slow], BLOCK_CALLS * CALL_S * tuned[fast])
        ]
        pairs.append(BlockPair(BLOCK_CALLS, 8, first, times[0], times[1]))
    return tuple(pairs), float(default.mean() - tuned.mean()) * CALL_S * TUNED_CALLS


def covered(ratio: float, kind: str, blocks: int, seed: int) -> bool:
    """Whether the interval holds the truth; with equal choices, whether nothing is said to be faster."""
    random = np.random.default_rng([seed, round(100 * ratio), list(KINDS).index(kind)])
    pairs, truth_s = program(random, 10 + 10 * (seed % 4), blocks, ratio, kind, adds=seed % 2 == 0)
    cell = Cell("bcast", 0, 64, 64, 4, 1, 4, TUNED_CALLS, 500, 1, 0, 0.01, tuple(pairs))
    gain = gain_of(Experiment(4, 1, 5, 1e9, 0, (cell,)), CHOICES)
    low, high = gain.saved_s.low, gain.saved_s.high
    if ratio == 1.0:
        return not gain.is_sure
    return (low is None or low <= truth_s) and (high is None or truth_s <= high)


@pytest.mark.parametrize("blocks", BLOCKS_A_ROUND)
@pytest.mark.parametrize(
    "ratio", [1.0, pytest.param(1.05, marks=pytest.mark.slow), 1.2, pytest.param(0.9, marks=pytest.mark.slow)]
)
def test_the_interval_holds_the_truth(ratio: float, blocks: int) -> None:
    """96 programs for each effect: 93 of 100 hold it, 95 of 100 with equal choices; each kind by itself nearly so."""
    held = {kind: [covered(ratio, kind, blocks, seed) for seed in range(16)] for kind in KINDS}
    every = [one for some in held.values() for one in some]
    assert np.mean(every) >= (0.95 if ratio == 1.0 else 0.93), held
    assert min(np.mean(some) for some in held.values()) >= 0.8, held
