"""Compares strategies on recorded tables: many simulated tunings, one per (seed, table, strategy)."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from colltune.core.errors import InputError
from colltune.core.sample import parse_collectives
from colltune.core.space import Space
from colltune.machine.files import parse_json, read_file
from colltune.profile.profile_files import load_profile
from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.contract import Strategy
from colltune_study.research.metrics import SIGNIFICANT
from colltune_study.research.processes import run_seeds
from colltune_study.research.simulate import GOOD_ENOUGH, CutShortError, Pace, Run, Scoring, simulate
from colltune_study.research.weights import CallCounts, calls_per_second, load_call_counts, weights_of

Task = tuple[int, int, int]  # seed, number of the grid, number of the contestant


class Entrant(Protocol):
    """What is compared: makes a strategy for a space and a seed. Must be picklable for several processes."""

    @property
    def name(self) -> str: ...

    @property
    def pace(self) -> Pace: ...

    def __call__(self, space: Space, seed: int) -> Strategy: ...


@dataclass(frozen=True)
class Plan:
    """``seeds`` tunings of each table by each contestant, in ``jobs`` processes, for ``limit_s`` seconds at most.

    ``good``: the average slowdown that is good enough. ``significant``: from which share on a slower choice is a
    significant mistake. ``done``: (table, strategy, seed) of tunings that are known already, and not simulated again.
    """

    contestants: Sequence[Entrant]
    seeds: int = 20
    limit_s: float = float("inf")
    jobs: int = 1
    good: float = GOOD_ENOUGH
    significant: float = SIGNIFICANT
    profile: CallCounts | None = None
    done: Collection[tuple[str, str, int]] = ()


@dataclass(frozen=True)
class StrategyComparison:
    """``runs`` in the order in which they ended; ``cut``: whether time ran out, or somebody interrupted."""

    runs: tuple[Run, ...]
    cut: bool


def load(paths: Sequence[Path], collectives: Sequence[str] = ()) -> list[Grid]:
    """The grids of tables, of some collectives only where these are given. Raises InputError."""
    collectives = parse_collectives(collectives)
    grids = load_grids(paths)
    kept = [grid for grid in grids if not collectives or grid.collective in collectives]
    if not kept:
        there = ", ".join(sorted({grid.collective for grid in grids}))
        raise InputError(f"the tables hold none of {', '.join(collectives)}", f"They hold {there}")
    return kept


def load_weights(path: Path) -> CallCounts:
    """What an application calls: a file of `colltune profile`, or counts written by hand. Raises InputError."""
    try:
        by_hand = "kind" not in parse_json(read_file(path, link=True))
    except (OSError, ValueError, TypeError):
        by_hand = False  # the reader of profiles says what is wrong
    if by_hand:
        return load_call_counts(path)
    rates = calls_per_second(load_profile(path))
    if not rates:
        raise InputError(f"{path} holds no call that can be tuned", "Profile a program with blocking collectives")
    return CallCounts(tuple(rates.items()))


def evaluate(
    grids: Sequence[Grid],
    plan: Plan,
    progress: Callable[[int, int, Run], None] = lambda _done, _total, _run: None,
    keep: Callable[[Sequence[Run]], None] = lambda _runs: None,
) -> StrategyComparison:
    """Seed by seed, small tables first. ``keep`` is given all runs so far after every seed.

    What was not done when the time ended is left out as a whole: half a tuning says nothing. Raises InputError where
    not one was done.
    """
    small_first = sorted(grids, key=lambda grid: len(grid.recorded))
    tasks = [
        (seed, grid, contestant)
        for seed in range(plan.seeds)
        for grid in range(len(small_first))
        for contestant in range(len(plan.contestants))
        if (small_first[grid].name, plan.contestants[contestant].name, seed) not in plan.done
    ]
    deadline_s = time.monotonic() + plan.limit_s
    # What a grid has worked out of itself does not travel.
    fresh = [replace(grid) for grid in small_first] if plan.jobs > 1 else small_first
    worker = partial(_Worker, fresh, plan, deadline_s)
    runs, cut = run_seeds(worker, tasks, plan.jobs, deadline_s, progress, keep)
    if not runs and tasks:
        raise InputError("not one simulated tuning ended in the time given", "Give more --minutes, or smaller tables")
    return StrategyComparison(tuple(runs), cut)


class _Worker:
    def __init__(self, grids: Sequence[Grid], plan: Plan, deadline_s: float) -> None:
        self._grids, self._plan, self._deadline_s = grids, plan, deadline_s
        self._scorings = [
            Scoring(None if plan.profile is None else weights_of(plan.profile, grid), plan.significant)
            for grid in grids
        ]

    def __call__(self, task: Task) -> Run | None:
        seed, number, who = task
        grid, contestant = self._grids[number], self._plan.contestants[who]
        pace = replace(contestant.pace, good=self._plan.good)
        try:
            return simulate(
                grid,
                contestant.name,
                contestant,
                seed,
                pace=pace,
                scoring=self._scorings[number],
                go_on=lambda: time.monotonic() < self._deadline_s,
                keep=seed == 0,  # samples of all seeds are too many to hold
            )
        except CutShortError:
            return None
