"""What whole campaigns deliver at several budgets: many seeds on recorded tables. What `evaluate --campaign` does."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from colltune.core.errors import InputError
from colltune.session.recorded_campaign import LAUNCH_S
from colltune.store.grid import Grid
from colltune_study.research.delivery import Delivery, by_cluster, deliver
from colltune_study.research.processes import run_seeds


@dataclass(frozen=True)
class CampaignPlan:
    """``seeds`` campaigns of each table with each of ``budgets_s``, in ``jobs`` processes, for ``limit_s`` at most.

    ``launch_s``: what a launch of the replayed job takes.
    """

    budgets_s: Sequence[float]
    seeds: int = 20
    limit_s: float = float("inf")
    jobs: int = 1
    launch_s: float = LAUNCH_S


@dataclass(frozen=True)
class Campaigns:
    """``delivered`` in the order in which they ended; ``cut``: whether time ran out, or somebody interrupted.

    ``refused``: tables that no campaign can tune, with the reason.
    """

    delivered: tuple[Delivery, ...]
    cut: bool
    refused: Mapping[str, str]


def run_campaigns(
    grids: Sequence[Grid],
    plan: CampaignPlan,
    progress: Callable[[int, int, Delivery], None] = lambda _done, _total, _delivery: None,
    keep: Callable[[Sequence[Delivery]], None] = lambda _delivered: None,
) -> Campaigns:
    """Seed by seed, the collectives of one cluster together. ``keep`` is given all campaigns so far after every seed.

    A campaign that runs when the time ends is ended; no further one is begun. Raises InputError where no table can be
    tuned, and where not one campaign ended.
    """
    tables = by_cluster(grids)
    with_default = {name for name, some in tables.items() if any(np.isfinite(one.default_s).any() for one in some)}
    refused = {name: "the library's default was not recorded" for name in tables if name not in with_default}
    names = sorted(tables.keys() - refused.keys(), key=lambda name: sum(len(grid.recorded) for grid in tables[name]))
    if not names:
        raise InputError(
            f"the default was not recorded in {', '.join(sorted(refused))}, so nothing can be compared with it",
            "Mark its rows with is_default, or leave out --campaign",
        )
    tasks = [(seed, name, budget_s) for seed in range(plan.seeds) for name in names for budget_s in plan.budgets_s]
    deadline_s = time.monotonic() + plan.limit_s
    # What a grid has worked out of itself does not travel to another process.
    worker = partial(_Campaigner, {name: [replace(grid) for grid in tables[name]] for name in names}, plan.launch_s)
    delivered, cut = run_seeds(worker, tasks, plan.jobs, deadline_s, progress, keep)
    if not delivered:
        raise InputError("not one campaign ended in the time given", "Give more --minutes, or smaller tables")
    return Campaigns(tuple(delivered), cut, refused)


class _Campaigner:
    """Does one campaign; picklable, so that it can be made in another process."""

    def __init__(self, tables: Mapping[str, Sequence[Grid]], launch_s: float) -> None:
        self._tables, self._launch_s = tables, launch_s

    def __call__(self, task: tuple[int, str, float]) -> Delivery:
        seed, name, budget_s = task
        return deliver(name, self._tables[name], budget_s, seed, self._launch_s)
