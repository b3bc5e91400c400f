"""What makes one launch of a job differ from another, and one moment of it from the next, for sources without a job."""

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Choice, Scenario

# Calls of a choice that share what a moment does to them.
ROUND = 10


@dataclass(frozen=True, slots=True)
class LaunchEffects:
    """Standard deviations of the logarithms of factors, all independent of each other.

    For a whole launch: ``together``, of all choices of a collective; ``algorithm``, of all that run one algorithm;
    ``pair``, of one choice at one scenario. For ten calls: ``round_together``, of what is measured side by side;
    ``round_own``, of each choice by itself.
    """

    together: float = 0.0
    algorithm: float = 0.0
    pair: float = 0.0
    round_together: float = 0.0
    round_own: float = 0.0

    def __call__(
        self, scenario: Scenario, choice: Choice, calls: int, launch: tuple[int, ...], group: int
    ) -> NDArray[np.float64]:
        """(calls,): the factors of calls in a launch, where ``group`` numbers what is measured side by side in it."""
        return self.of_launch(scenario, choice, launch) * self.of_calls(choice, calls, (*launch, group))

    def of_launch(self, scenario: Scenario, choice: Choice, key: tuple[int, ...]) -> float:
        """The factor in the launch of ``key``."""
        name = scenario.collective
        effects = (
            (self.together, name),
            (self.algorithm, f"{name} {choice.algorithm}"),
            (self.pair, f"{scenario} {choice}"),
        )
        return float(np.exp(sum(sd * _drawn(key, text) for sd, text in effects if sd)))

    def of_calls(self, choice: Choice, calls: int, key: tuple[int, ...]) -> NDArray[np.float64]:
        """(calls,): factors of the calls of one choice, where ``key`` is of all that is measured side by side."""
        rounds = list(self._of_rounds(choice, -(-calls // ROUND), key))
        return np.repeat(np.exp(np.array(rounds)), ROUND)[:calls]

    def _of_rounds(self, choice: Choice, rounds: int, key: tuple[int, ...]) -> Iterator[float]:
        for number in range(rounds):
            own = self.round_own * _drawn((*key, number), str(choice)) if self.round_own else 0.0
            yield own + (self.round_together * _drawn((*key, number), "") if self.round_together else 0.0)


NO_EFFECTS = LaunchEffects()
# As measured on 8 nodes x 2 ranks in network namespaces, in six launches of eight rounds of ten calls.
AS_MEASURED = LaunchEffects(0.28, 0.08, 0.05, 0.07, 0.08)


def _drawn(key: tuple[int, ...], text: str) -> float:
    return float(np.random.default_rng((*key, crc32(text.encode()))).standard_normal())
