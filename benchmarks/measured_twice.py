"""A bound for every prediction: what is lost by choosing on one run of a cluster and paying on another one.

    python benchmarks/measured_twice.py [--halves] [TABLE...]

Of each table of times, the scenarios that two or more runs measured with at least two common choices: slowdown of the
choice that is fastest in one run, by the times of another, over all ordered pairs of runs. Nobody can be expected to
predict a cluster better than a measurement of the cluster itself does. With ``--halves``, medians of half of the runs
instead of single runs, over all ways to halve four runs or more, as the tables that predictions are judged by are
medians too. Prints a Markdown table; ``worst`` is of the scenario that loses most on average, ``worst cell`` of all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

from bench_prior import DATA, MPI_ADVANCE, PICO
from colltune.store.dataset import read_table

# With fewer runs a half is a single run.
_FEWEST_TO_HALVE = 4
_SCENARIO = ["collective", "nodes", "ppn", "msg_bytes", "dtype"]


def pairs_of(by_run: np.ndarray, halves: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """What is chosen by and what is paid by, each (m,), from the times (r, m) of r runs."""
    if not halves:
        yield from permutations(by_run, 2)
        return
    count = len(by_run)
    if count < _FEWEST_TO_HALVE:
        return
    for chosen in combinations(range(count), count // 2):
        rest = [run for run in range(count) if run not in chosen]
        # Only choices that every run measured: a median of other runs would be of another moment.
        both = np.where(np.isfinite(by_run).all(axis=0), by_run, np.nan)
        yield np.median(both[list(chosen)], axis=0), np.median(both[rest], axis=0)


def slowdowns(path: Path, halves: bool = False) -> dict[str, list[list[float]]]:
    """By collective: of each scenario that was measured twice, the slowdowns of all pairs."""
    table = read_table(path)
    table = table[~table["is_default"].astype(bool)]
    found: dict[str, list[list[float]]] = {}
    for (collective, *_), rows in table.groupby(_SCENARIO, sort=True):
        by_run = rows.pivot_table(index="run_id", columns="algorithm", values="time_us", aggfunc="median").to_numpy()
        lost = []
        for here, there in pairs_of(by_run, halves):
            both = np.isfinite(here) & np.isfinite(there)
            if both.sum() >= 2:
                lost.append(float(there[both][here[both].argmin()] / there[both].min()))
        if lost:
            found.setdefault(str(collective), []).append(lost)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--halves", action="store_true", help="choose by half of the runs, pay by the other half")
    options = parser.parse_args()
    print("| table | scenarios measured twice | slowdown | geometric mean | worst | worst cell |")
    print("|---|---|---|---|---|---|")
    for path in options.tables or [DATA / f"{name}.csv.gz" for name in (*PICO, *MPI_ADVANCE)]:
        for collective, some in slowdowns(path, options.halves).items():
            name = path.name.split(".")[0]
            means = [float(np.mean(lost)) for lost in some]
            figures = (np.mean(means), np.exp(np.log(means).mean()), max(means), max(map(max, some)))
            print(f"| {name}/{collective} | {len(some)} | " + " | ".join(f"{value:.2f}" for value in figures) + " |")


if __name__ == "__main__":
    main()
