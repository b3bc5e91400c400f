"""How much of our learner's advantage is first looks of few repetitions: the comparison with equal repetitions.

    python benchmarks/equal_looks.py [TABLE...] [--seeds 2] [--minutes 20] [--few 3] [--out bench]

Simulated tuning as in bench_learning.py, of the published methods with 20 repetitions and with ``--few`` everywhere,
and of ours with 20 everywhere and as it is. Leaves learning_looks.json, a flat object of our cost over theirs (median
over the tables), and learning_looks_reach.csv, after every seed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench_learning import DATA, is_timed

from colltune.core.model import Model
from colltune.core.sample import Sample
from colltune.core.space import Point, Space
from colltune.evaluate.compare import cost_ratio, reach_by_grid, stop_share, write_table
from colltune.evaluate.contract import Strategy
from colltune.evaluate.simulate import Pace, Run
from colltune.evaluation import Plan, evaluate, load
from colltune.learn.decision import DecisionLearner, DecisionSettings
from colltune.strategies import NAMES, OURS, Contestant, contestants, shown_as

_FULL = "20 each"


@dataclass(frozen=True)
class FewEach:
    """A published method that measures with ``repetitions`` everywhere."""

    inner: Contestant
    name: str
    repetitions: int
    pace: Pace

    def __call__(self, space: Space, seed: int) -> Strategy:
        return _Few(self.inner(space, seed), self.repetitions)


class _Few:
    def __init__(self, inner: Strategy, repetitions: int) -> None:
        self._inner, self._repetitions = inner, repetitions

    def ask(self, count: int) -> list[Point]:
        return [replace(point, repetitions=self._repetitions) for point in self._inner.ask(count)]

    def tell(self, samples: Sequence[Sample]) -> None:
        self._inner.tell(samples)

    def should_stop(self) -> str | None:
        return self._inner.should_stop()

    def model(self) -> Model:
        return self._inner.model()


@dataclass(frozen=True)
class FullOurs:
    """Our learner without first looks."""

    name: str
    pace: Pace

    def __call__(self, space: Space, seed: int) -> Strategy:
        settings = DecisionSettings()
        return DecisionLearner(space, seed, replace(settings, fewest=settings.repetitions))


def few_name(name: str, few: int) -> str:
    return f"{name}, {few} each"


def entrants(few: int) -> list[Contestant | FewEach | FullOurs]:
    found: list[Contestant | FewEach | FullOurs] = []
    for one in contestants(NAMES):
        pace = one.pace if one.name == OURS else replace(one.pace, to_stop=False)
        found.append(shown_as(one, one.name, pace))
        if one.name == OURS:
            found.append(FullOurs(f"{OURS}, {_FULL}", pace))
        else:
            found.append(FewEach(one, few_name(one.name, few), few, pace))
    return found


def figures(runs: Sequence[Run], few: int) -> dict[str, float | int]:
    reach = reach_by_grid(runs)
    done = {strategy for _, strategy in reach}
    found: dict[str, float | int] = {}
    for other in NAMES[1:]:
        if {OURS, f"{OURS}, {_FULL}", other, few_name(other, few)} <= done:
            found[f"cost_ratio_{other}"] = round(cost_ratio(reach, OURS, other), 4)
            found[f"cost_ratio_{other}_full_looks_for_both"] = round(cost_ratio(reach, f"{OURS}, {_FULL}", other), 4)
            found[f"cost_ratio_{other}_few_looks_for_both"] = round(cost_ratio(reach, OURS, few_name(other, few)), 4)
    for name, own in (("stop_share", OURS), ("stop_share_full_looks", f"{OURS}, {_FULL}")):
        if own in done:
            found[name] = round(stop_share(runs, own), 4)
    found["tables"] = len({grid for grid, _ in reach})
    found["seeds"] = min(estimate.seeds for estimate in reach.values())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--few", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    grids = load(options.tables or [path for path in sorted(DATA.glob("*")) if is_timed(path)])
    options.out.mkdir(parents=True, exist_ok=True)

    def keep(runs: Sequence[Run]) -> None:
        write_table(options.out / "learning_looks_reach.csv", reach_by_grid(runs))
        text = json.dumps(figures(runs, options.few), indent=2)
        (options.out / "learning_looks.json").write_text(text + "\n")
        print(text, flush=True)

    evaluate(grids, Plan(entrants(options.few), options.seeds, 60.0 * options.minutes, options.jobs), keep=keep)


if __name__ == "__main__":
    main()
