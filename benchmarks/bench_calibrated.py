"""What a dozen to forty measurements of a machine that no source has seen are worth, on recorded tables.

    python benchmarks/bench_calibrated.py [--seeds 3] [--pairs 40] [--budget-s 10] [--only TEXT] [--out bench]

One cluster is left out at a time, also when hyperparameters are fitted. Only recorded pairs can be measured; such a
measurement is the median of 3 to 20 repetitions drawn about the recorded one. Writes bench/calibrated.json, a flat
object of figures, and bench/calibrated_tables.json; prints both.

Part plain: the choices that other tables have too, slowdown against the best of them. Part default: the library's
default is measured as well, as `colltune predict --calibrate` does, and stays where a choice may lose more than
3% with a probability of more than 1%; draws how often losses of each predicted probability came true.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from time import monotonic

import numpy as np

from bench_prior import FEWEST_SCENARIOS, MPI_ADVANCE, PICO, grids_of, times_of
from colltune.core.choice import DEFAULT, Choice
from colltune.core.model_answers import Model
from colltune.core.sample import Sample, Status
from colltune.core.scenario import Scenario
from colltune.learn.noise import cautious_sd
from colltune.predict.bursts import Times
from colltune.predict.calibration import LOSS, MOST_PROBABLE, Calibration, probability_of_loss
from colltune.predict.pair_kernel import PairKernel
from colltune.predict.transfer import TransferPrior
from colltune.store.grid import Grid
from colltune_study.training.pair_kernel_fit import fit_pair_theta, studies_of

_SET_UP_S = 1e-3
_FEWEST, _MOST, _BOX_S = 3, 20, 0.05
# At which numbers of pairs the selection is looked at.
LOOKS = (0, 12, 24, 40)
# Bounds of predicted probabilities that are looked at together.
BINS = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Case:
    """A cluster's table, cut to the choices that others have too; ``others``: their times."""

    cluster: str
    grid: Grid
    others: Sequence[Times]

    @property
    def name(self) -> str:
        return f"{self.cluster}/{self.grid.collective}"


def cases() -> Iterator[Case]:
    for names in (PICO, MPI_ADVANCE):
        for by_cluster in grids_of(names, FEWEST_SCENARIOS).values():
            for name, whole in by_cluster.items():
                others = [times_of(other) for key, other in by_cluster.items() if key != name]
                grid = shared_part(whole, others)
                if grid is not None:
                    yield Case(name, grid, others)


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
        spread=None if grid.spread is None else grid.spread[np.ix_(rows, columns)],
    )


def fitted(clusters: Sequence[str]) -> dict[str, np.ndarray]:
    """By cluster, hyperparameters fitted to the tables of all others, each predicted from the rest of them."""
    found = {}
    for left_out in clusters:
        tables: dict[str, dict[str, Times]] = {}
        for names in (PICO, MPI_ADVANCE):
            for collective, by_cluster in grids_of(names, FEWEST_SCENARIOS).items():
                rest = {key: times_of(grid) for key, grid in by_cluster.items() if key != left_out}
                tables.setdefault(collective, {}).update(rest)
        found[left_out] = fit_pair_theta(studies_of(tables))
    return found


def repetitions_of(time_s: np.ndarray) -> np.ndarray:
    return np.clip(np.round(_BOX_S / time_s), _FEWEST, _MOST)


def cost_of(time_s: np.ndarray) -> np.ndarray:
    """Seconds: set-up, a warm-up and the repetitions."""
    return _SET_UP_S + time_s * (1 + repetitions_of(time_s))


def calibration_of(
    case: Case, prior: TransferPrior, theta: np.ndarray, seed: int, defaults: Mapping[Scenario, Choice] | None = None
) -> Calibration:
    kernel = PairKernel(theta, prior.constants.values, prior.bearable)
    pairs = [pair for pair in case.grid.recorded if defaults is None or pair[0] in defaults]
    return Calibration(pairs, prior, prior.constants, kernel, seed, defaults=defaults)


def measure(case: Case, known: Calibration, seed: int, pairs: int, budget_s: float) -> Iterator[tuple[int, float]]:
    """Measures up to ``pairs``; how many there are and seconds spent, after each step."""
    spent_s = 0.0
    while len(known.told) < pairs:
        proposal = known.ask(cost_of, budget_s - spent_s, pairs - len(known.told))
        if proposal is None:
            return
        for pair in proposal.pairs:
            count = int(repetitions_of(known.expected_s([pair]))[0])
            times_s = case.grid.repetitions(*pair, count, (seed, len(known.told)))
            spent_s += _SET_UP_S + float(times_s.mean()) * (1 + count)
            known.tell(pair, float(np.median(times_s)), cautious_sd(Sample(*pair, Status.OK, tuple(times_s))))
            yield len(known.told), spent_s


def slowdowns(grid: Grid, model: Model) -> np.ndarray:
    """(N,): of the choice that ``model`` holds to be the fastest."""
    said = np.full(grid.time_s.shape, np.inf)
    log_time = model.predict(grid.recorded).log_time
    said[grid.known] = np.where(np.isfinite(log_time), log_time, np.inf)
    return grid.time_s[np.arange(len(said)), said.argmin(axis=1)] / grid.best_s


def run_with_default(
    case: Case, theta: np.ndarray, seed: int, pairs: int, budget_s: float
) -> tuple[dict[str, float], np.ndarray]:
    """Figures, and of each choice at each scenario mean and deviation of its log time over the default's, predicted,
    and the recorded one (k, 3); the first of each scenario is the best guess.
    """
    grid = case.grid.with_default()
    wide = Case(case.cluster, grid, case.others)
    prior = TransferPrior(case.others, case.grid.choices, seed)
    rows = np.flatnonzero(np.isfinite(grid.time_s[:, 0]))
    known = calibration_of(wide, prior, theta, seed, {grid.scenarios[row]: DEFAULT for row in rows})
    for _ in measure(wide, known, seed, pairs, budget_s):
        pass
    columns = [np.flatnonzero(np.isfinite(grid.time_s[row, 1:])) + 1 for row in rows]
    asked = [
        (grid.scenarios[row], DEFAULT, [grid.choices[column] for column in own])
        for row, own in zip(rows, columns, strict=True)
    ]
    gaps, chosen, default, handed, lost = [], [], [], 0, 0
    for row, own, (mean, std) in zip(rows, columns, known.against(asked), strict=True):
        true = np.log(grid.time_s[row, own] / grid.time_s[row, 0])
        order = np.argsort(mean + 0.5 * std**2)
        gaps.append(np.stack([mean, std, true], axis=1)[order])
        safe = probability_of_loss(mean, std) <= MOST_PROBABLE
        safe &= mean + 0.5 * std**2 < 0.0
        best = case.grid.best_s[row]
        default.append(grid.time_s[row, 0] / best)
        if safe.any():
            place = int(np.argmin(np.where(safe, mean + 0.5 * std**2, np.inf)))
            handed, lost = handed + 1, lost + int(true[place] > np.log1p(LOSS))
            chosen.append(grid.time_s[row, own[place]] / best)
        else:
            chosen.append(default[-1])
    figures = {
        "slowdown": fmean(chosen),
        "default": fmean(default),
        "worst": max(chosen),
        "scenarios": float(len(rows)),
        "handed_over": float(handed),
        "lost": float(lost),
    }
    return figures, np.concatenate(gaps)


def reliability(gaps: np.ndarray) -> list[dict[str, float]]:
    """How often choices lost more than LOSS, of those whose predicted probability of it lies in each bin."""
    said = probability_of_loss(gaps[:, 0], gaps[:, 1])
    lost = gaps[:, 2] > np.log1p(LOSS)
    rows = []
    for low, high in pairwise(BINS):
        mine = (said > low) & (said <= high)
        if mine.any():
            rows.append({"predicted": said[mine].mean(), "observed": lost[mine].mean(), "choices": float(mine.sum())})
    return rows


def draw(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """The reliability plot, of logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.0), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlim=(5e-4, 1.2), ylim=(5e-4, 1.2))
    axes.plot([5e-4, 1.0], [5e-4, 1.0], color="0.6", linewidth=1)
    shown = [row for row in rows if row["observed"] > 0]
    axes.plot([row["predicted"] for row in shown], [row["observed"] for row in shown], "o-")
    axes.axvline(MOST_PROBABLE, color="0.6", linestyle=":")
    axes.set_xlabel("predicted probability of a loss of more than 3%")
    axes.set_ylabel("share of the choices that lost more")
    figure.savefig(path, dpi=120)


def default_part(
    every: Sequence[Case], theta: Mapping[str, np.ndarray], options: argparse.Namespace
) -> tuple[dict[str, float], dict[str, object]]:
    found = {
        case.name: run_with_default(case, theta[case.cluster], 0, options.pairs, options.budget_s) for case in every
    }
    rows = {name: row for name, (row, _) in found.items()}
    gaps = np.concatenate([gap for _, gap in found.values()])
    np.savez(options.out / "calibrated_gaps.npz", **{name.replace("/", "."): gap for name, (_, gap) in found.items()})
    bins = reliability(gaps)
    draw(bins, options.out / "calibrated_reliability.png")
    handed = sum(row["handed_over"] for row in rows.values())
    figures = {
        "vetoed_slowdown": fmean(row["slowdown"] for row in rows.values()),
        "vetoed_default_slowdown": fmean(row["default"] for row in rows.values()),
        "vetoed_no_worse_than_default": fmean(row["slowdown"] <= row["default"] for row in rows.values()),
        "vetoed_handed_over": handed / sum(row["scenarios"] for row in rows.values()),
        "vetoed_lost": sum(row["lost"] for row in rows.values()) / max(handed, 1.0),
    }
    return figures, {"default": rounded_rows(rows), "reliability": bins}


def rounded_rows(rows: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {key: round(value, 3) for key, value in sorted(row.items())} for name, row in rows.items()}


def run(case: Case, theta: np.ndarray, seed: int, pairs: int, budget_s: float) -> dict[str, float]:
    prior = TransferPrior(case.others, case.grid.choices, seed)
    known = calibration_of(case, prior, theta, seed)
    found = {"slowdown_0": float(slowdowns(case.grid, known).mean())}
    steps = [(0, 0.0)]
    for count, spent_s in measure(case, known, seed, pairs, budget_s):
        steps.append((count, spent_s))
        if count in LOOKS:
            found[f"slowdown_{count}"] = float(slowdowns(case.grid, known).mean())
    selected = slowdowns(case.grid, known)
    return found | {
        "slowdown": float(selected.mean()),
        "worst": float(selected.max()),
        "default": float(np.nanmean(case.grid.default_s / case.grid.best_s)),
        "pairs": float(steps[-1][0]),
        "spent_s": steps[-1][1],
    }


def summary(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    values = list(rows.values())
    return {
        "calibrated_slowdown": fmean(row["slowdown"] for row in values),
        "calibrated_slowdown_0": fmean(row["slowdown_0"] for row in values),
        "calibrated_slowdown_12": fmean(row.get("slowdown_12", row["slowdown"]) for row in values),
        "calibrated_slowdown_24": fmean(row.get("slowdown_24", row["slowdown"]) for row in values),
        "calibrated_worst_cell": max(row["worst"] for row in values),
        "calibrated_better_than_default": fmean(row["slowdown"] <= row["default"] for row in values),
        "calibrated_no_worse_than_zero_shot": fmean(row["slowdown"] <= row["slowdown_0"] for row in values),
        "calibrated_most_s": max(row["spent_s"] for row in values),
        "calibrated_cases": len(values),
    }


def plain_part(
    every: Sequence[Case], theta: Mapping[str, np.ndarray], options: argparse.Namespace
) -> tuple[dict[str, float], dict[str, object]]:
    until_s = monotonic() + 60.0 * options.minutes
    runs: dict[str, list[dict[str, float]]] = {case.name: [] for case in every}
    seeds = 0
    for seed in range(options.seeds):
        if seed and monotonic() > until_s:
            break
        for case in every:
            runs[case.name].append(run(case, theta[case.cluster], seed, options.pairs, options.budget_s))
        seeds += 1
    rows = {
        name: {key: fmean(row[key] for row in some) for key in set.intersection(*(set(row) for row in some))}
        | {"worst": max(row["worst"] for row in some)}
        for name, some in runs.items()
    }
    return summary(rows) | {"calibrated_seeds": seeds}, {"plain": rounded_rows(rows)}


def hyperparameters(every: Sequence[Case], out: Path, *, reuse: bool) -> dict[str, np.ndarray]:
    """By cluster, fitted to the others; kept in ``out``, and with ``reuse`` taken from there."""
    out.mkdir(exist_ok=True)
    kept = out / "calibrated_theta.json"
    if reuse and kept.exists():
        return {name: np.array(own) for name, own in json.loads(kept.read_text()).items()}
    theta = fitted(sorted({case.cluster for case in every}))
    kept.write_text(json.dumps({name: own.tolist() for name, own in theta.items()}) + "\n")
    return theta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="plain,default")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--budget-s", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3, help="of the part plain; the other one has one")
    parser.add_argument("--minutes", type=float, default=9.0, help="no further seed is begun after this")
    parser.add_argument("--only", default="", help="tables whose name holds this")
    parser.add_argument("--reuse", action="store_true", help="take the hyperparameters of an earlier run, in OUT")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    every = [case for case in cases() if options.only in case.name]
    theta = hyperparameters(every, options.out, reuse=options.reuse)
    figures: dict[str, float] = {}
    tables: dict[str, object] = {}
    for name, part in (("plain", plain_part), ("default", default_part)):
        if name in options.parts.split(","):
            found, more = part(every, theta, options)
            figures |= found
            tables |= more
    rounded = {name: round(float(value), 4) for name, value in figures.items()}
    (options.out / "calibrated.json").write_text(json.dumps(rounded, indent=2) + "\n")
    (options.out / "calibrated_tables.json").write_text(json.dumps(tables, indent=1) + "\n")
    print(json.dumps(tables, indent=1))
    print(json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
