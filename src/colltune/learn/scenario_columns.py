"""Scenarios as numbers: ``columns`` (n, 3) of n scenarios are log2 nodes, log2 ppn, log2 (size + 1)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Scenario

Floats = NDArray[np.float64]


def scenario_columns(scenarios: Sequence[Scenario]) -> Floats:
    """(n, 3): base-2 logarithms, because nodes, ppn and sizes span orders of magnitude (ACCLAiM, IV.A)."""
    raw = np.array([(s.nodes, s.ppn, s.size_bytes + 1) for s in scenarios], dtype=float)
    return np.asarray(np.log2(raw.reshape(-1, 3)))
