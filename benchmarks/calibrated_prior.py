"""What a few dozen measurements of a machine that no source has seen are worth, on recorded tables.

    python benchmarks/calibrated_prior.py [--pairs 40] [--budget-s 10] [--thrift 0.6] [--seeds 1] [--only TEXT]

One cluster is left out at a time. The decision learner, with the prior of the others, asks for pairs one by one; then
the cost model's constants are fitted to them and the prior is made anew. Prints the mean slowdown of what each selects.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from bench_prior import FEWEST_SCENARIOS, MPI_ADVANCE, PICO, grids_of, times_of
from colltune.core.model import Model
from colltune.core.sample import Sample, Status
from colltune.core.space import Point
from colltune.learn.bursts import Times
from colltune.learn.cost import Constants, fit_constants
from colltune.learn.decision import DecisionLearner, DecisionSettings
from colltune.learn.transfer import TransferPrior
from colltune.store.grid import Grid

_ASKED = 12
_SET_UP_S = 1e-3
# What is expected to take longer than this share of the time left is not begun.
_SHARE = 0.67
_FIT_EVERY = 6


def shared_part(grid: Grid, others: Sequence[Times]) -> Grid | None:
    """The choices that another table has too, at the scenarios that measured two of them."""
    columns = [n for n, choice in enumerate(grid.choices) if any(choice == c for times in others for _, c in times)]
    rows = [row for row, times in enumerate(grid.time_s[:, columns]) if np.isfinite(times).sum() >= 2]
    if len(columns) < 2:
        return None
    return Grid(
        grid.name,
        grid.collective,
        tuple(grid.scenarios[row] for row in rows),
        tuple(grid.choices[column] for column in columns),
        grid.time_s[np.ix_(rows, columns)],
        grid.default_s[rows],
    )


def measured(grid: Grid, point: Point) -> list[Sample]:
    """The recorded times of a point, with what a look at each would have cost."""
    found = []
    for choice in point.choices:
        time_s, calls = grid.time(point.scenario, choice), point.repetitions or 20
        cost_s = _SET_UP_S + (calls + max(1, round(0.1 * calls))) * time_s
        found.append(Sample(point.scenario, choice, Status.OK, (time_s,) * calls, cost_s=cost_s))
    return found


def times_in(samples: Sequence[Sample]) -> Times:
    return {(sample.scenario, sample.choice): sample.time_s for sample in samples}


def fits(point: Point, constants: Constants | None, left_s: float) -> bool:
    """Whether a look at a point is expected to end in good time."""
    if constants is None:
        return left_s > 0
    said = constants.seconds([(point.scenario, choice) for choice in point.choices])
    return float(np.nansum(said)) * ((point.repetitions or 20) + 1) <= _SHARE * left_s


def calibrate(
    grid: Grid, prior: TransferPrior, seed: int, pairs: int, budget_s: float, settings: DecisionSettings
) -> tuple[list[Sample], float]:
    """What the learner asked for, and the machine time that it took."""
    learner = DecisionLearner(grid.space, seed, settings, prior=prior)
    samples: list[Sample] = []
    constants, spent_s = prior.constants, 0.0
    while len(samples) < pairs:
        points = [point for point in learner.ask(_ASKED) if fits(point, constants, budget_s - spent_s)]
        if not points:
            break
        learner.tell_pending(points[0])
        found = measured(grid, points[0])
        samples += found
        spent_s += sum(sample.cost_s for sample in found)
        learner.tell(found)
        if len(samples) % _FIT_EVERY == 0:
            constants = fit_constants(times_in(samples), constants.values if constants else None) or constants
    return samples, spent_s


def slowdowns(grid: Grid, model: Model) -> np.ndarray:
    """(N,): of the choice that ``model`` holds to be the fastest."""
    pairs = [(scenario, choice) for scenario in grid.scenarios for choice in grid.choices]
    said = model.predict(pairs).log_time.reshape(grid.time_s.shape)
    said = np.where(np.isfinite(grid.time_s) & np.isfinite(said), said, np.inf)
    return grid.time_s[np.arange(len(said)), said.argmin(axis=1)] / grid.best_s


def informed(grid: Grid, prior: Model | None, samples: Sequence[Sample], seed: int) -> Model:
    learner = DecisionLearner(grid.space, seed, prior=prior)
    learner.tell(samples)
    return learner.model()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--budget-s", type=float, default=10.0)
    parser.add_argument("--thrift", type=float, default=None, help="below 0.6 a pair's cost counts for less")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="tables whose name holds this")
    options = parser.parse_args()
    settings = DecisionSettings()
    if options.thrift is not None:
        settings = DecisionSettings(thrift=options.thrift, design=0, insurance=0.0)
    rows: list[dict[str, float]] = []
    for names in (PICO, MPI_ADVANCE):
        for collective, by_cluster in grids_of(names, FEWEST_SCENARIOS).items():
            for name, whole in by_cluster.items():
                others = [times_of(other) for key, other in by_cluster.items() if key != name]
                grid = shared_part(whole, others)
                if grid is None or options.only not in f"{name}/{collective}":
                    continue
                for seed in range(options.seeds):
                    prior = TransferPrior(others, grid.choices, seed)
                    samples, spent_s = calibrate(grid, prior, seed, options.pairs, options.budget_s, settings)
                    anew = TransferPrior(others, grid.choices, seed, times_in(samples))
                    models = {"prior": prior, "own constants": anew, "told": informed(grid, prior, samples, seed)}
                    models["told anew"] = informed(grid, anew, samples, seed)
                    models["no prior"] = informed(grid, None, samples, seed)
                    row = {kind: float(slowdowns(grid, model).mean()) for kind, model in models.items()}
                    row["default"] = float(np.nanmean(grid.default_s / grid.best_s))
                    rows.append(row)
                    said = ", ".join(f"{kind} {value:.3f}" for kind, value in row.items())
                    print(f"{name}/{collective}: {len(samples)} pairs, {spent_s:.1f} s: {said}", flush=True)
    for kind in rows[0] if rows else ():
        print(f"{kind}: {fmean(row[kind] for row in rows):.3f}")


if __name__ == "__main__":
    main()
