"""What a model of collective times answers, whoever trained it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Choice, Scenario


@dataclass(frozen=True)
class Prediction:
    """Expected times of n pairs.

    ``log_time`` (n,): natural logarithm of the time, up to a constant that is the same for all choices of one
    scenario (a model may know ratios only). ``std`` (n,): its standard deviation, >= 0.
    """

    log_time: NDArray[np.float64]
    std: NDArray[np.float64]


class Model(Protocol):
    """Predicts times and says how sure it is."""

    def predict(self, pairs: Sequence[tuple[Scenario, Choice]]) -> Prediction:
        """Predictions for ``pairs``, in their order."""
        ...
