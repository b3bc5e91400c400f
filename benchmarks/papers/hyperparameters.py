"""FACT's figure 10 and table IV: a collection that ran out of time, and hyperparameters tuned on what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from colltune.core.errors import InputError
from colltune.core.extras import extra
from colltune.core.sample import Sample, Scenario
from colltune.store.grid import Grid
from colltune_study.research.compare import estimate
from colltune_study.research.contract import Strategy
from colltune_study.research.figures import AXIS_LABELS, COLOURS, new_panels, save
from colltune_study.research.learners.published import PublishedSettings
from colltune_study.research.learners.tuned_parameters import as_tried, suggest
from colltune_study.research.metrics import score, select
from colltune_study.research.simulate import Run, simulate
from colltune_study.research.strategies import Contestant
from colltune_study.research.tunings_summary import Axis
from harness import part_of
from papers.entrants import entrant
from papers.study import Made, Study, text_of

_TRIALS = 20
_FOLDS = 3
_ENDS_AT = 22.2 / 36.0  # of the time to convergence: where the paper's user ran out of it
_CONVERGED = 1.02  # average slowdown in that experiment (V.C)
_THEIRS = {1: "1.04", 2: "1.057", _TRIALS: "1.019"}  # table IV


@dataclass(frozen=True)
class Trial:
    """One set of hyperparameters. ``aim``: what the search makes least; ``true``: slowdown on the whole table."""

    settings: PublishedSettings
    aim: float
    true: float


class Kept:
    """A strategy that keeps what it was told, so that other models can be trained on the same."""

    def __init__(self, inner: Contestant) -> None:
        self._inner = inner
        self.told: list[Sample] = []

    def __call__(self, space: Any, seed: int) -> Strategy:
        strategy = self._inner(space, seed)
        tell = strategy.tell

        def kept(samples: Sequence[Sample]) -> None:
            self.told += samples
            tell(samples)

        strategy.tell = kept  # type: ignore[method-assign]
        return strategy


def fact_10(study: Study) -> Made:
    """Slowdown over time of the slowest table, where time ran out, and what tuned hyperparameters make of it."""
    grid, run = _slowest(study)
    ends = _ENDS_AT * min(1.0, run.reach(_CONVERGED))
    collected = _collected(grid, ends)
    by_aim = {aim: [tune(grid, collected, seed, aim) for seed in range(study.seeds)] for aim in Aim}
    figure, panels = new_panels(2, width=4.8, height=3.3)
    panel, other = panels
    costs = [step.cost for step in run.steps]
    panel.plot(costs, [step.metrics.slowdown for step in run.steps], color=COLOURS[0], label="FACT")
    reached = min(1.0, run.reach(_CONVERGED))
    for place, label, style in ((ends, "out of time", "--"), (reached, "converged", ":")):
        panel.axvline(place, color="black", linestyle=style, linewidth=1, label=label)
    panel.axhline(_CONVERGED, color="grey", linestyle=":", linewidth=1)
    panel.set_ylim(0.99, 2.0)
    panel.set_xlabel(AXIS_LABELS[Axis.TIME], fontsize=8)
    panel.set_ylabel("average slowdown", fontsize=8)
    panel.set_title(f"{grid.name}, seed 0", fontsize=9)
    panel.legend(fontsize=8, frameon=False)
    best: dict[Aim, list[list[float]]] = {}
    for number, (aim, trials) in enumerate(by_aim.items(), 1):
        best[aim] = [[_best(own[: count + 1]).true for count in range(_TRIALS)] for own in trials]
        low, high = np.min(best[aim], axis=0), np.max(best[aim], axis=0)
        places = range(1, _TRIALS + 1)
        other.plot(places, np.median(best[aim], axis=0), color=COLOURS[number], marker="o", ms=3, label=aim)
        other.fill_between(places, low, high, color=COLOURS[number], alpha=0.15)
    other.legend(fontsize=8, frameon=False, title="judged by")
    other.axhline(_CONVERGED, color="grey", linestyle=":", linewidth=1)
    other.set_xlabel("trials of hyperparameters", fontsize=8)
    other.set_ylabel("average slowdown", fontsize=8)
    other.set_title("of the best trial so far", fontsize=9)
    figure.suptitle("FACT 10 and table IV: time runs out, and hyperparameters are tuned instead", fontsize=10)
    save(figure, study.out / "fact_10.png")
    rows = [
        [
            str(count + 1),
            text_of(estimate([own[count].true for own in by_aim[Aim.TABLE]])),
            *(text_of(estimate([row[count] for row in best[aim]])) for aim in Aim),
            _THEIRS.get(count + 1, ""),
        ]
        for count in (0, 1, 4, 9, _TRIALS - 1)
    ]
    caption = (
        f"{grid.name}, the reduce_scatter on which FACT takes longest; collected: {ends:.3f} of the time of measuring"
        f" everything, {_ENDS_AT:.2f} of what a slowdown of {_CONVERGED} takes, as in the paper. Optuna, {_TRIALS}"
        f" trials, {study.seeds} seeds, the first trial with the defaults. The paper judges a trial by its slowdown on"
        f" all data there is, which a user does not have; the last but one column judges it by {_FOLDS} folds of what"
        " was collected."
    )
    columns = ["trial", "its slowdown", "best so far, by all data", "best so far, by what was collected", "table IV"]
    return Made("fact_10", "FACT 10 and table IV: hyperparameters", caption, columns, rows, "fact_10.png")


def _slowest(study: Study) -> tuple[Grid, Run]:
    """The table that FACT takes longest to learn, and how it learns it; of those on which it ever does.

    Of reduce_scatter's, as in the paper, where there are some.
    """
    grids = [grid for grid in study.grids if grid.collective == "reduce_scatter" and len(grid.scenarios) >= 36]
    grids = grids[:4] or study.recorded()
    runs = [run for run in study.runs([entrant("fact")], grids) if run.seed == 0 and run.reach() < float("inf")]
    if not runs:
        raise InputError("FACT converges on none of the tables", "Give larger tables")
    slowest = max(runs, key=lambda run: run.reach())
    return next(grid for grid in grids if grid.name == slowest.grid), slowest


def _collected(grid: Grid, ends: float) -> list[Sample]:
    """What FACT has measured of a table when a share of the time of measuring everything is spent."""
    one = entrant("fact")
    keeper = Kept(one)
    run = simulate(grid, "fact", keeper, 0, pace=one.pace)
    spent_s = 0.0
    samples: list[Sample] = []
    for sample in keeper.told:
        spent_s += sample.cost_s
        if spent_s > ends * run.total_s and samples:
            break
        samples.append(sample)
    return samples


class Aim(StrEnum):
    """What a trial of hyperparameters is judged by."""

    TABLE = "all data"  # as in the paper
    COLLECTED = "what was collected"


def tune(grid: Grid, samples: Sequence[Sample], seed: int, aim: Aim) -> list[Trial]:
    """Optuna's trials on what was collected; the first one has the defaults. Raises InputError without Optuna."""
    optuna = extra("optuna", "tuning hyperparameters")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    trials: list[Trial] = []

    def objective(trial: Any) -> float:
        settings = suggest(trial, PublishedSettings())
        true = _slowdown(grid, samples, settings, seed)
        value = true if aim is Aim.TABLE else _held_out(grid, samples, settings, seed)
        trials.append(Trial(settings, value, true))
        return value

    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=8)
    search = optuna.create_study(sampler=sampler)
    search.enqueue_trial(as_tried(PublishedSettings()))
    search.optimize(objective, n_trials=_TRIALS)
    return trials


def _best(trials: Sequence[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.aim)


def _held_out(grid: Grid, samples: Sequence[Sample], settings: PublishedSettings, seed: int) -> float:
    """Mean slowdown on collected scenarios by models that were trained on the others."""
    scenarios = sorted({sample.scenario for sample in samples})
    order = np.random.default_rng(seed).permutation(len(scenarios))
    total = 0.0
    folds = min(_FOLDS, len(scenarios))
    for fold in range(folds):
        left_out = {scenarios[place] for place in order[fold::folds]}
        rest = [sample for sample in samples if sample.scenario not in left_out]
        if rest:
            total += _slowdown(_only(grid, left_out), rest, settings, seed, grid) * len(left_out)
    return total / len(scenarios)


def _only(grid: Grid, scenarios: set[Scenario]) -> Grid:
    return part_of(grid, [grid.rows[scenario] for scenario in sorted(scenarios)])


def _slowdown(
    tested: Grid, samples: Sequence[Sample], settings: PublishedSettings, seed: int, space_of: Grid | None = None
) -> float:
    """Average slowdown on ``tested`` of a model with ``settings``, trained on ``samples``."""
    one = replace(entrant("fact"), settings=settings)
    strategy = one((space_of or tested).space, seed)
    strategy.tell(samples)
    selected, _ = select(strategy.model(), tested)
    return score(selected, tested).slowdown
