"""What the trees of a prior see of a pair, as numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from colltune.learn.scenario_columns import Floats, scenario_columns
from colltune.predict.bursts import in_flight
from colltune.predict.cost import relative_columns, relative_seconds

# Added to the log time of a choice that has more messages in flight than worked on other machines.
UNBORNE = 1.5


def prior_rows(pairs: Sequence[tuple[Scenario, Choice]], number: Mapping[Choice, int], values: Floats | None) -> Floats:
    """(n, 8 + t + 1 + m): nodes, ppn and size, ranks, bytes times and over ranks, messages in flight, as logarithms;
    whether the ranks are no power of two; what the choice sends; the cost model's time, by the constants ``values`` if
    there are any; the choice, of m in ``number``.
    """
    nodes, ppn, size = scenario_columns([scenario for scenario, _ in pairs]).T
    ranks = nodes + ppn
    flying = np.log2([in_flight(*pair) for pair in pairs])
    odd = np.array([float(scenario.ranks & (scenario.ranks - 1) != 0) for scenario, _ in pairs])
    nothing = len(number)
    chosen = np.eye(nothing + 1)[[number.get(choice, nothing) for _, choice in pairs], :nothing]
    columns = np.stack([nodes, ppn, size, ranks, size + ranks, size - ranks, flying, odd], axis=1)
    modelled = np.zeros((len(pairs), 0)) if values is None else relative_seconds(pairs, values)[:, None]
    return np.hstack([columns, relative_columns(pairs), modelled, chosen])
