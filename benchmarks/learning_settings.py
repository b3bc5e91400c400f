"""Which settings of our learner tables choose, and how good these are on a table that had no say.

    python benchmarks/learning_settings.py [TABLE...] [--seeds 1] [--minutes 20] [--most-pairs 1400] [--out bench]

Each setting is varied alone. *Reach* is the share of the cost of measuring everything until the average slowdown stays
at or below 1.03, as in bench_learning.py. With each table left out in turn, and with all tables of each file, the
variant with the least geometric mean of reach on the others is chosen, and judged on what was left out. Only tables
that have all variants count. Prints Markdown after every seed, and leaves it as learning_settings.md, with
learning_settings.csv.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from bench_learning import DATA, is_timed

from colltune.core.space import Space
from colltune.evaluate.compare import reach_by_grid, write_table
from colltune.evaluate.contract import Strategy
from colltune.evaluate.simulate import Pace, Run
from colltune.evaluation import Plan, evaluate, load
from colltune.learn.decision import DecisionLearner, DecisionSettings
from colltune.strategies import OURS, contestants

AS_IT_IS = "as it is"
VARIANTS: Mapping[str, Mapping[str, float]] = {
    AS_IT_IS: {},
    "gain / cost^0.5": {"thrift": 0.5},
    "gain / cost^0.75": {"thrift": 0.75},
    "insurance 0.1": {"insurance": 0.1},
    "insurance 0.5": {"insurance": 0.5},
    "first looks of 2": {"fewest": 2},
    "first looks of 5": {"fewest": 5},
    "freedom 10": {"freedom": 10.0},
    "all choices first at 2 scenarios": {"design": 2},
}
# Of table and variant: the median over the seeds.
Reach = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Variant:
    name: str
    settings: DecisionSettings
    pace: Pace

    def __call__(self, space: Space, seed: int) -> Strategy:
        return DecisionLearner(space, seed, self.settings)


def entrants() -> list[Variant]:
    [own] = contestants([OURS])
    pace = replace(own.pace, to_stop=False)
    return [Variant(name, replace(DecisionSettings(), **changes), pace) for name, changes in VARIANTS.items()]


def geometric(reach: Reach, tables: Sequence[str], variant: str) -> float:
    return float(np.exp(np.mean([np.log(reach[table, variant]) for table in tables])))


def left_out(reach: Reach, tables: Sequence[str], group: Callable[[str], str]) -> tuple[Counter[str], float]:
    """How often each variant is chosen without one group of tables, and its geometric mean of reach on these."""
    chosen: Counter[str] = Counter()
    logs: list[float] = []
    for one in sorted({group(table) for table in tables}):
        others = [table for table in tables if group(table) != one]
        best = min(VARIANTS, key=lambda variant: geometric(reach, others, variant))
        chosen[best] += 1
        logs += [float(np.log(reach[table, best])) for table in tables if group(table) == one]
    return chosen, float(np.exp(np.mean(logs)))


def report(runs: Sequence[Run]) -> str:
    """Markdown."""
    estimates = reach_by_grid(runs)
    reach = {key: value.median for key, value in estimates.items()}
    tables = sorted({table for table, _ in reach if all((table, variant) in reach for variant in VARIANTS)})
    if len({_file(table) for table in tables}) < 2:
        return "too few tables yet\n"
    by_table, reach_by_table = left_out(reach, tables, lambda table: table)
    by_file, reach_by_file = left_out(reach, tables, _file)
    lines = [
        f"{len(tables)} tables of {len({_file(table) for table in tables})} files,"
        f" {min(value.seeds for value in estimates.values())} seed(s)",
        "",
        "| variant | reach | over that as it is | chosen, one table left out | chosen, one file left out |",
        "|---|---|---|---|---|",
    ]
    for variant in VARIANTS:
        ratios = [np.log(reach[table, variant] / reach[table, AS_IT_IS]) for table in tables]
        error = float(np.std(ratios) / np.sqrt(len(ratios)))
        cells = [f"{geometric(reach, tables, variant):.4f}", f"{np.exp(np.mean(ratios)):.2f} +- {error:.2f}"]
        lines.append(f"| {variant} | {' | '.join(cells)} | {by_table[variant]} | {by_file[variant]} |")
    lines += ["", f"Reach on what was left out: {reach_by_table:.4f} (table), {reach_by_file:.4f} (file)"]
    return "\n".join(lines) + "\n"


def _file(table: str) -> str:
    return table.rpartition("/")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--most-pairs", type=int, default=1400, help="leave out tables with more pairs than this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench"))
    options = parser.parse_args()
    grids = load(options.tables or [path for path in sorted(DATA.glob("*")) if is_timed(path)])
    grids = [grid for grid in grids if grid.pairs <= options.most_pairs]
    options.out.mkdir(parents=True, exist_ok=True)

    def keep(runs: Sequence[Run]) -> None:
        write_table(options.out / "learning_settings.csv", reach_by_grid(runs))
        text = report(runs)
        (options.out / "learning_settings.md").write_text(text)
        print(text, flush=True)

    evaluate(grids, Plan(entrants(), options.seeds, 60.0 * options.minutes, options.jobs), keep=keep)


if __name__ == "__main__":
    main()
