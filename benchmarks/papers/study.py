"""What all figures share: the tables, the seeds, the tunings that were simulated already, and the form of a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from colltune.core.errors import InputError
from colltune.store.grid import Grid
from colltune_study.research.compare import Estimate, estimate
from colltune_study.research.evaluation import Entrant, Plan, evaluate
from colltune_study.research.simulate import Run, Step

# Shares of the pairs at which training sets are compared (FACT, figure 3).
MARKS = (0.9, 0.5, 0.2, 0.1, 0.05, 0.03)


@dataclass(frozen=True)
class Made:
    """A figure that was drawn: what it shows, how, and its numbers. ``picture``: empty for a table."""

    name: str
    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    picture: str = ""


@dataclass
class Study:
    """``grids``: the tables; figures choose among them. ``seeds`` tunings each, in ``jobs`` processes."""

    grids: Sequence[Grid]
    out: Path
    seeds: int = 5
    jobs: int = 1
    deadline_s: float = float("inf")
    _known: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def runs(self, entrants: Sequence[Entrant], grids: Sequence[Grid]) -> list[Run]:
        """All tunings of ``grids`` by ``entrants``; what was done for another figure is not done again.

        Raises InputError where the time is over before all are done: half of a figure is none.
        """
        for entrant in entrants:
            missing = [grid for grid in grids if (entrant.name, grid.name) not in self._known]
            if not missing:
                continue
            limit_s = self.deadline_s - time.monotonic()
            done = evaluate(missing, Plan([entrant], self.seeds, limit_s, self.jobs))
            if done.cut:
                raise InputError("the time is over", "Give more --minutes, or fewer --seeds")
            for run in done.runs:
                self._known.setdefault((entrant.name, run.grid), []).append(run)
        return [run for entrant in entrants for grid in grids for run in self._known[entrant.name, grid.name]]

    def recorded(self, most: int = 5) -> list[Grid]:
        """The tables that the comparisons are made on: at most ``most``, of the recorded and the simulated ones."""
        usable = [grid for grid in self.grids if len(grid.choices) >= 3 and len(grid.scenarios) >= 36]
        if not usable:
            raise InputError("no table has 36 scenarios and three algorithms", "Give larger tables")
        # The greatest tables say most, but a fair part of each source should be there.
        by_file: dict[str, list[Grid]] = {}
        for grid in sorted(usable, key=lambda grid: -len(grid.scenarios)):
            by_file.setdefault(grid.name.rpartition("/")[0], []).append(grid)
        chosen: list[Grid] = []
        while len(chosen) < most and any(by_file.values()):
            for own in by_file.values():
                if own and len(chosen) < most:
                    chosen.append(own.pop(0))
        return chosen

    def with_other_sizes(self) -> list[Grid]:
        """The tables that hold both sizes that are powers of two and a fair number that are not."""
        found = []
        for grid in self.grids:
            other = sum(not is_power_of_two(scenario.size_bytes) for scenario in grid.scenarios)
            if other >= 10 and len(grid.scenarios) - other >= 24:
                found.append(grid)
        return found


def is_power_of_two(size_bytes: int) -> bool:
    return size_bytes & (size_bytes - 1) == 0


def at_mark(mark: float, metric: str) -> Callable[[Run], float]:
    """A metric of a run, or ``cost``, at the first state with at least this share of the pairs."""

    def value(run: Run) -> float:
        step = step_at(run, mark)
        return float(step.cost if metric == "cost" else getattr(step.metrics, metric))

    return value


def step_at(run: Run, mark: float) -> Step:
    return next((step for step in run.steps if step.share >= mark * (1.0 - 1e-9)), run.steps[-1])


def over_seeds(runs: Sequence[Run], name: str, value: Callable[[Run], float]) -> Estimate:
    """The median over the seeds of the mean over the tables."""
    by_seed: dict[int, list[float]] = {}
    for run in runs:
        if run.strategy == name:
            by_seed.setdefault(run.seed, []).append(value(run))
    return estimate([float(np.mean(values)) for values in by_seed.values()])


def text_of(value: Estimate, form: str = "{:.3f}") -> str:
    """``median [low, high]``."""
    return f"{form.format(value.median)} [{form.format(value.low)}, {form.format(value.high)}]"


def names_of(grids: Sequence[Grid]) -> str:
    return ", ".join(grid.name for grid in grids)
