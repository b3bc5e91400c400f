"""What a whole campaign delivers, its proof included: the tuning as deployed, scored on the table it was made from.

Captured headroom is the sum of log(default / tuned) over the sum of log(default / best), over every scenario of the
table, each by its weight. A choice that is not legal at a scenario leaves it to the default, as the library does.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.bench.recorded_cluster import RecordedBench
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT
from colltune.core.space import Weight, weights_by_ranks
from colltune.prove.audit.harm import SLOWER
from colltune.session.tuning.options import Listener, TuneOptions, TuneResult
from colltune.session.tuning.tune import tune
from colltune.store.grid import Grid

# A launch of the replay, in seconds, and the standard deviation of the logarithm of what a launch does to a time.
LAUNCH_S, LAUNCH_SD = 5.0, 0.05
# The standard deviation of the logarithm of what all times of the replay share as time goes by.
DRIFT_SD = 0.05


@dataclass(frozen=True, slots=True)
class TableScore:
    """A tuning on all that its tables hold.

    ``captured``: of the headroom. ``harmed``: the share of the weighted scenarios that are slower by more than 3%;
    ``worst``: the greatest time over the default's. ``decided``: how many of the ``scenarios`` have a rule that departs
    from the default.
    """

    captured: float
    harmed: float
    worst: float
    decided: int
    scenarios: int


def tune_recorded(
    out: Path,
    bench: RecordedBench,
    budget_s: float,
    seed: int,
    listener: Listener | None = None,
    *,
    store: Path | None = None,
    weights: Callable[[int, int], Weight] = weights_by_ranks,
) -> tuple[TableScore, TuneResult]:
    """Tunes all sizes of the tables of ``bench`` with ``budget_s``, and leaves the tuning in ``out``.

    ``store``: that of its site, if it has one. ``weights``: of gains, in the tuning and in the score. Raises InputError
    where there is no default.
    """
    grids = bench.grids
    sizes = [scenario.size_bytes for grid in grids for scenario in grid.scenarios]
    names = tuple(grid.collective for grid in grids)
    options = TuneOptions(names, min(sizes), max(sizes), budget_s=budget_s, seed=seed, store=store, weights=weights)
    result = tune(bench, options, out, listener)
    scores = list(_scores(grids, result.tuning.rule_sets, weights(bench.nodes, bench.ppn)))
    weight = sum(score.weight for score in scores)
    headroom = sum(score.weight * score.best for score in scores)
    score = TableScore(
        captured=sum(score.weight * score.tuned for score in scores) / headroom if headroom > 0.0 else 1.0,
        harmed=sum(score.weight for score in scores if score.tuned < -math.log(SLOWER)) / weight,
        worst=math.exp(-min(score.tuned for score in scores)),
        decided=sum(score.decided for score in scores),
        scenarios=len(scores),
    )
    return score, result


@dataclass(frozen=True, slots=True)
class _Score:
    """Log speed-ups over the default: of the tuning, and of the best recorded choice (0 where that is the default)."""

    weight: float
    tuned: float
    best: float
    decided: bool


def _scores(grids: Sequence[Grid], rules: Mapping[str, RuleSet], weight: Weight) -> Iterator[_Score]:
    for grid in grids:
        for row, scenario in enumerate(grid.scenarios):
            default_s = float(grid.default_s[row])
            if not math.isfinite(default_s):
                continue
            choice = RuleSet.decided(rules, scenario)
            legal = choice != DEFAULT and choice in grid.space.choices(scenario)
            tuned_s = grid.time(scenario, choice) if legal else default_s
            best_s = min(default_s, float(grid.best_s[row]))
            yield _Score(weight(scenario), math.log(default_s / tuned_s), math.log(default_s / best_s), legal)
