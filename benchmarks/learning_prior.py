"""Which hyperparameters recorded and simulated tables have: the medians of the learner's prior, and how far they move.

    python benchmarks/learning_prior.py [TABLE...] [--points 24] [--draws 3]

Of each table, up to 10 choices at ``--points`` scenarios each, drawn at random ``--draws`` times, are explained by the
processes of ``colltune.learn.gaussian`` with next to no prior. Prints, as a Markdown table, the median over the tables
of each hyperparameter, the least and the greatest such median with one cluster's tables left out, the spread over the
tables, and the medians that the learner has.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench_learning import DATA, is_timed
from colltune.learn.gaussian import HYPERPARAMETERS, PRIOR_MEAN, PRIOR_SD, Floats, Group, Trend, fit_theta
from colltune.learn.scenario_columns import scenario_columns
from colltune.store.grid import Grid
from colltune_study.research.evaluation import load

_MOST_CHOICES = 10
_FEWEST_POINTS = 4
_KNOWN_SD = 0.02
_WIDE = 2.0  # spread of a prior that hardly says anything
_ITERATIONS = 60


def groups_of(grid: Grid, points: int, random: np.random.Generator) -> list[Group]:
    """What the processes are to explain: for each of some choices, log times less the trend that all share."""
    z = scenario_columns(grid.scenarios)
    rows: list[int] = []
    numbers: list[int] = []
    columns: list[int] = []
    for number, column in enumerate(random.permutation(len(grid.choices))[:_MOST_CHOICES]):
        known = np.flatnonzero(np.isfinite(grid.time_s[:, column]))
        if len(known) >= _FEWEST_POINTS:
            drawn = random.choice(known, min(len(known), points), replace=False)
            rows += drawn.tolist()
            numbers += [number] * len(drawn)
            columns += [int(column)] * len(drawn)
    number = np.array(numbers)
    log_time = np.log(grid.time_s[rows, columns])
    residual = log_time - Trend(z[rows], number, log_time, _MOST_CHOICES).at(z[rows])
    return [
        (z[rows][own], residual[own], np.full(int(own.sum()), _KNOWN_SD**2))
        for own in (number == one for one in np.unique(number))
    ]


def fitted(grids: Sequence[Grid], points: int, draws: int) -> dict[str, Floats]:
    """By the name of the table, the mean over the draws of the logarithms of the hyperparameters."""
    PRIOR_SD[:] = _WIDE  # of this process alone
    random = np.random.default_rng(0)
    return {
        grid.name: np.mean(
            [fit_theta(PRIOR_MEAN, groups_of(grid, points, random), _ITERATIONS) for _ in range(draws)], axis=0
        )
        for grid in grids
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--points", type=int, default=24)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    grids = load(options.tables or [path for path in sorted(DATA.glob("*")) if is_timed(path)])
    theta = fitted(grids, options.points, options.draws)
    clusters = sorted({name.rpartition("/")[0] for name in theta})
    without = np.array(
        [np.median([own for name, own in theta.items() if name.rpartition("/")[0] != one], axis=0) for one in clusters]
    )
    everything = np.array(list(theta.values()))
    middle, spread = np.exp(np.median(everything, axis=0)), everything.std(axis=0)
    print(f"{len(theta)} tables of {len(clusters)} files\n")
    print("| hyperparameter | median | one file left out | spread of the logarithm | the learner's |")
    print("|---|---|---|---|---|")
    for place, (name, own, _) in enumerate(HYPERPARAMETERS):
        low, high = np.exp(without[:, place].min()), np.exp(without[:, place].max())
        print(f"| {name} | {middle[place]:.2f} | {low:.2f} to {high:.2f} | {spread[place]:.2f} | {own} |")


if __name__ == "__main__":
    main()
