"""Scenarios and hardware as numbers for a model.

Notations: n rows, d columns. Everything that spans orders of magnitude is a base-2 logarithm; missing is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from colltune.core.hardware import NUMBERS, Fabric, Hardware
from colltune.core.scenario import Scenario

Floats = NDArray[np.float64]

SCENARIO_COLUMNS = ("nodes", "ppn", "ranks", "msg_size", "total_size", "power_of_two")
HARDWARE_COLUMNS = (*NUMBERS, "link_gbits", "subscription", *(f"is_{fabric.value}" for fabric in Fabric))
COLUMNS = (*SCENARIO_COLUMNS, *HARDWARE_COLUMNS)


def columns_of(scenarios: Sequence[Scenario], hardware: Sequence[Hardware]) -> Floats:
    """(n, d) in the order of COLUMNS; ``subscription`` is ranks per node over cores."""
    known = {one: _hardware_row(one) for one in dict.fromkeys(hardware)}
    rows = np.empty((len(scenarios), len(COLUMNS)))
    for place, (scenario, one) in enumerate(zip(scenarios, hardware, strict=True)):
        nodes, ppn, size = (np.log2(max(v, 1)) for v in (scenario.nodes, scenario.ppn, scenario.size_bytes))
        odd = scenario.ranks & (scenario.ranks - 1)
        rows[place, : len(SCENARIO_COLUMNS)] = (nodes, ppn, nodes + ppn, size, size + nodes + ppn, float(not odd))
        rows[place, len(SCENARIO_COLUMNS) :] = known[one]
        rows[place, _SUBSCRIPTION] = scenario.ppn / one.cores if one.cores else np.nan
    return rows


_SUBSCRIPTION = COLUMNS.index("subscription")


def _hardware_row(hardware: Hardware) -> list[float]:
    numbers = [getattr(hardware, name) for name in NUMBERS]
    row = [float(np.log2(value)) if value else np.nan for value in (*numbers, hardware.link_gbits)]
    fabrics = [np.nan if hardware.fabric is None else float(hardware.fabric is one) for one in Fabric]
    return [*row, np.nan, *fabrics]
