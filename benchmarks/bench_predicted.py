"""How sure `colltune predict` is without any measurement, on clusters that are left out.

    python benchmarks/bench_predicted.py [--reuse] [--out bench]

Of each recorded table, in turn: every measured choice stands for the library's default, and the model of the other
clusters says how likely each other choice loses more than 3% against it. Hyperparameters are fitted without the
cluster too (`--reuse` takes those of an earlier run of this program or of bench_calibrated.py, in OUT). Reports what
would replace the default at some risks (nothing does outside of the range of the other clusters), how much of that
lost, and how fast all of them become (geometric mean over tables of equal weight); and draws how often losses of each
predicted probability came true: all clusters with equal weight, and the one with most losses. Writes
OUT/predicted.json, OUT/predicted_tables.json and OUT/predicted_reliability.png; prints the first two. Takes a minute or
two of a core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from bench_calibrated import Case, calibration_of, cases, hyperparameters
from colltune.predict.calibration import LOSS, MOST_PROBABLE, probability_of_loss
from colltune.predict.model import Range
from colltune.predict.transfer import TransferPrior

RISKS = (MOST_PROBABLE, 0.05, 0.1, 0.2, 0.3)
BINS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)


@dataclass(frozen=True)
class Compared:
    """One choice as the default of one scenario, and m others: mean and deviation (m,) of their log times over its
    own as predicted, and the recorded ones. ``inside``: whether other clusters measured such a scenario.
    """

    mean: np.ndarray
    std: np.ndarray
    true: np.ndarray
    inside: bool = True

    @property
    def lost(self) -> np.ndarray:
        """(m,): whether each is slower by more than LOSS."""
        return self.true > np.log1p(LOSS)


def compared(case: Case, theta: np.ndarray) -> list[Compared]:
    """Every measured choice of every scenario in place of the default, nothing being measured."""
    prior = TransferPrior(case.others, case.grid.choices, 0)
    known = calibration_of(case, prior, theta, 0)
    rows = [np.flatnonzero(np.isfinite(times)) for times in case.grid.time_s]
    groups = [
        [(scenario, case.grid.choices[column]) for column in own]
        for scenario, own in zip(case.grid.scenarios, rows, strict=True)
    ]
    trained = Range.of([scenario for times in case.others for scenario, _ in times])
    inside = trained.holds(case.grid.scenarios).tolist()
    found = []
    for times, own, near, (mean, covariance) in zip(
        case.grid.time_s, rows, inside, known.posteriors(groups), strict=True
    ):
        variance = np.diag(covariance)
        for place in range(len(own)):
            spread = variance + variance[place] - 2.0 * covariance[place]
            others = np.arange(len(own)) != place
            found.append(
                Compared(
                    (mean - mean[place])[others],
                    np.sqrt(np.maximum(spread, 0.0))[others],
                    np.log(times[own] / times[own[place]])[others],
                    near,
                )
            )
    return found


def handed_over(every: Sequence[Compared], risk: float) -> dict[str, float]:
    """What would replace the default at ``risk``: how often, how often at a loss, and how much faster."""
    gains, lost = [], 0
    for one in every:
        expected = one.mean + 0.5 * one.std**2
        safe = (probability_of_loss(one.mean, one.std) <= risk) & (expected < 0.0)
        if one.inside and safe.any():
            place = int(np.argmin(np.where(safe, expected, np.inf)))
            gains.append(-one.true[place])
            lost += int(one.lost[place])
    speedup = float(np.exp(np.mean(gains))) if gains else 1.0
    return {
        "defaults": float(len(every)),
        "handed_over": float(len(gains)),
        "lost": float(lost),
        "speedup": speedup,
        "gain": float(np.sum(gains)) / len(every),
    }


def reliability(tables: Mapping[str, Sequence[Compared]]) -> list[dict[str, float]]:
    """By bins of the predicted probability: its mean, the share that lost over tables of equal weight, and the greatest
    of any table with at least 20 choices in the bin.
    """
    said = {
        name: np.concatenate([probability_of_loss(one.mean, one.std) for one in some]) for name, some in tables.items()
    }
    lost = {name: np.concatenate([one.lost for one in some]) for name, some in tables.items()}
    rows = []
    for low, high in pairwise(BINS):
        inside = {name: (own > low) & (own <= high) for name, own in said.items()}
        held = {name: mine for name, mine in inside.items() if mine.sum() >= 20}
        if held:
            shares = [float(lost[name][mine].mean()) for name, mine in held.items()]
            rows.append(
                {
                    "predicted": float(np.mean([said[name][mine].mean() for name, mine in held.items()])),
                    "observed": float(np.mean(shares)),
                    "worst": max(shares),
                    "tables": float(len(held)),
                    "choices": float(sum(mine.sum() for mine in held.values())),
                }
            )
    return rows


def draw(rows: Sequence[Mapping[str, float]], path: Path) -> None:
    """The reliability plot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 4.0), layout="constrained")
    axes = figure.add_subplot(xlim=(0.0, 0.5), ylim=(0.0, 0.5))
    axes.plot([0.0, 0.5], [0.0, 0.5], color="0.6", linewidth=1)
    for key, label in (("observed", "mean of the tables"), ("worst", "table with most losses")):
        axes.plot([row["predicted"] for row in rows], [row[key] for row in rows], "o-", label=label)
    axes.set_xlabel("predicted probability of a loss of more than 3%")
    axes.set_ylabel("share of the choices that lost more")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reuse", action="store_true", help="take the hyperparameters of an earlier run, in OUT")
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    every = list(cases())
    theta = hyperparameters(every, options.out, reuse=options.reuse)
    tables = {case.name: compared(case, theta[case.cluster]) for case in every}
    risks = {f"{risk:g}": {name: handed_over(some, risk) for name, some in tables.items()} for risk in RISKS}
    rows = reliability(tables)
    draw(rows, options.out / "predicted_reliability.png")
    figures: dict[str, float] = {}
    for risk, by_table in risks.items():
        made = sum(row["handed_over"] for row in by_table.values())
        figures[f"handed_over_at_{risk}"] = made / sum(row["defaults"] for row in by_table.values())
        figures[f"lost_at_{risk}"] = sum(row["lost"] for row in by_table.values()) / max(made, 1.0)
        figures[f"speedup_at_{risk}"] = float(np.exp(np.mean([row["gain"] for row in by_table.values()])))
        figures[f"tables_at_{risk}"] = float(sum(row["handed_over"] > 0 for row in by_table.values()))
    rounded = {name: round(value, 4) for name, value in figures.items()}
    (options.out / "predicted.json").write_text(json.dumps(rounded, indent=2) + "\n")
    text = json.dumps({"risks": risks, "reliability": rows}, indent=1) + "\n"
    (options.out / "predicted_tables.json").write_text(text)
    print(text + json.dumps(rounded, indent=2))


if __name__ == "__main__":
    main()
