"""What `study predict` needs: the model of times alone, or forests by family that propose and times that judge.

    python benchmarks/bench_proposals.py [--seeds 5] [--out bench]

One cluster is left out at a time, from the forests by family and from the times. The forests of best algorithms are
the shipped ones: their tables are of other clusters. Both ways have the shipped hyperparameters. Every
measured choice of the recorded tables stands for the library's default in turn. Of each risk: how many defaults are
replaced, how many of these lose more than 3%, and how fast all of them become (geometric mean over tables of equal
weight). Also the slowdown of what each model selects without measurements. The forests may learn from two clusters
here, as the model of times may. Writes OUT/proposals.json: means over seeds and, of the difference, 95% intervals
(bootstrap over tables and seeds).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, process_time

import numpy as np

from bench_calibrated import Case, calibration_of, cases
from bench_prior import DATA, MPI_ADVANCE, PICO
from colltune.core.hardware import Hardware
from colltune.predict import train
from colltune.predict.calibration import LOSS, MOST_PROBABLE, probability_of_loss
from colltune.predict.families import family_of_choice
from colltune.predict.model import PretrainedModel, load_model
from colltune.predict.table import read_hardware, read_tables
from colltune.predict.times_model import load_times
from colltune.predict.transfer import TransferPrior

RISKS = (MOST_PROBABLE, 0.05, 0.1, 0.2, 0.3, 0.5)


def forests(left_out: str, labels: PretrainedModel, timed: Sequence, hardware: dict, seed: int) -> PretrainedModel:
    some = [one for one in timed if one.cluster != left_out]
    learned = train.train_model([], some, hardware, seed)
    names = {*labels.forests, *learned.forests}
    return PretrainedModel({n: [*labels.forests.get(n, ()), *learned.forests.get(n, ())] for n in names})


def compared(case: Case, model: PretrainedModel, hardware: Hardware, theta: np.ndarray, seed: int) -> dict:
    """Of each risk and way (defaults, replaced, lost, sum of log gains); and the slowdowns of what is selected."""
    grid, name = case.grid, case.grid.collective
    prior = TransferPrior(case.others, grid.choices, seed)
    known = calibration_of(case, prior, theta, seed)
    rows = [np.flatnonzero(np.isfinite(times)) for times in grid.time_s]
    groups = [[(s, grid.choices[c]) for c in own] for s, own in zip(grid.scenarios, rows, strict=True)]
    family_of = [family_of_choice(name, choice) for choice in grid.choices]
    inside = model.knows(name, grid.scenarios)
    opinions = {
        now: model.opinions(name, grid.scenarios, hardware, [now] * len(grid.scenarios)) for now in set(family_of)
    }
    said = model.relative(name, grid.scenarios, hardware)
    found = {f"{risk:g} {way}": np.zeros(4) for risk in RISKS for way in ("times", "both")} | {"families": np.zeros(4)}
    selected: list[tuple[float, float]] = []
    for row, (own, (mean, covariance)) in enumerate(zip(rows, known.posteriors(groups), strict=True)):
        times, variance = grid.time_s[row, own], np.diag(covariance)
        by_family = np.array([said[f][row] if (f := family_of[c]) in said else np.nan for c in own])
        if np.isfinite(by_family).sum() >= 2:
            first = prior.predict(groups[row]).log_time
            best = times.min()
            selected.append((float(times[np.nanargmin(first)] / best), float(times[np.nanargmin(by_family)] / best)))
        for place, column in enumerate(own):
            gap = mean - mean[place]
            std = np.sqrt(np.maximum(variance + variance[place] - 2.0 * covariance[place], 0.0))
            true = np.log(times / times[place])
            loss, expected = probability_of_loss(gap, std), gap + 0.5 * std**2
            others = np.arange(len(own)) != place
            opinion = opinions[family_of[column]][row]
            proposed = np.zeros(len(own), dtype=bool)
            if inside[row] and family_of[column] is not None and opinion.family not in (None, family_of[column]):
                proposed[[n for n, c in enumerate(own) if family_of[c] == opinion.family][:1]] = True
            _add(found["families"], proposed, expected, true)
            for risk in RISKS:
                safe = others & (loss <= risk) & (expected < 0.0)
                _add(found[f"{risk:g} times"], safe, expected, true)
                _add(found[f"{risk:g} both"], safe & proposed, expected, true)
    return {key: value.tolist() for key, value in found.items()} | {"selected": selected}


def _add(row: np.ndarray, allowed: np.ndarray, expected: np.ndarray, true: np.ndarray) -> None:
    row[0] += 1
    if allowed.any():
        place = int(np.argmin(np.where(allowed, expected, np.inf)))
        row[1:] += (1.0, float(true[place] > np.log1p(LOSS)), -true[place])


def summary(tables: dict[str, list[dict]]) -> dict[str, object]:
    found: dict[str, object] = {}
    names = [key for key in next(iter(tables.values()))[0] if key != "selected"]
    for key in names:
        every = np.array([[one[key] for one in some] for some in tables.values()])  # (tables, seeds, 4)
        total = every.sum(axis=(0, 1))
        gain = every[..., 3] / every[..., 0]
        lost = every[..., 2].sum(axis=1) / np.maximum(every[..., 1].sum(axis=1), 1.0)
        found[key] = {
            "replaced": total[1] / total[0],
            "lost": total[2] / max(total[1], 1.0),
            "lost_most_of_a_table": float(lost.max()),
            "tables": int((every[..., 1].sum(axis=1) > 0).sum()),
            "speedup": float(np.exp(gain.mean())),
            "gain": gain.tolist(),
        }
    random = np.random.default_rng(0)
    for risk in RISKS:
        gaps = np.array(found[f"{risk:g} times"]["gain"]) - np.array(found[f"{risk:g} both"]["gain"])
        found[f"{risk:g} times over both"] = interval(gaps, random)
    slow = {name: np.array([one["selected"] for one in some]) for name, some in tables.items() if some[0]["selected"]}
    found["selected"] = {name: own.mean(axis=(0, 1)).tolist() for name, own in slow.items()}
    gaps = np.array([np.log(own[..., 0] / own[..., 1]).mean(axis=1) for own in slow.values()])
    found["selected times over families"] = interval(gaps, random)
    for key in names:
        del found[key]["gain"]
    return found


def interval(gaps: np.ndarray, random: np.random.Generator) -> list[float]:
    """exp of the mean of (tables, seeds), and its 95% interval."""
    drawn = [
        gaps[random.integers(0, len(gaps), len(gaps))][:, random.integers(0, gaps.shape[1], gaps.shape[1])].mean()
        for _ in range(4000)
    ]
    return [float(np.exp(value)) for value in (gaps.mean(), *np.quantile(drawn, (0.025, 0.975)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    train._FEWEST_CLUSTERS = 2
    every = list(cases())
    known, shipped = load_times(), load_model()
    by_label = PretrainedModel(
        {name: [one for one in some if one.kind == "classifier"] for name, some in shipped.forests.items()}
    )
    hardware = read_hardware(DATA / "clusters.csv")
    _, timed = read_tables([DATA / f"{name}.csv.gz" for name in (*PICO, *MPI_ADVANCE)])
    tables: dict[str, list[dict]] = {case.name: [] for case in every}
    for seed in range(options.seeds):
        for cluster in sorted({case.cluster for case in every}):
            name = cluster.split("_")[1]
            model = forests(name, by_label, timed, hardware, seed)
            for case in every:
                if case.cluster == cluster:
                    print(case.name, process_time(), flush=True)
                    tables[case.name].append(compared(case, model, hardware[name], known.theta, seed))
        (options.out / "proposals_tables.json").write_text(json.dumps(tables) + "\n")
        found = summary(tables) | {"seeds": seed + 1}
        (options.out / "proposals.json").write_text(json.dumps(found, indent=1) + "\n")
        print(seed, monotonic(), flush=True)


if __name__ == "__main__":
    main()
