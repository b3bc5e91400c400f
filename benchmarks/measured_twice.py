"""A bound for every prediction: what is lost by choosing on one run of a cluster and paying on another one.

    python benchmarks/measured_twice.py [TABLE...]

Of each table of times, the scenarios that two or more runs measured with at least two common choices: slowdown of the
choice that is fastest in one run, by the times of another, over all ordered pairs of runs. Nobody can be expected to
predict a cluster better than a measurement of the cluster itself does. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
from itertools import permutations
from pathlib import Path

import numpy as np

from bench_prior import DATA, MPI_ADVANCE, PICO
from colltune.store.dataset import read_table

_SCENARIO = ["collective", "nodes", "ppn", "msg_bytes", "dtype"]


def slowdowns(path: Path) -> dict[str, list[float]]:
    """By collective: of each scenario that was measured twice, the mean over ordered pairs of runs."""
    table = read_table(path)
    table = table[~table["is_default"].astype(bool)]
    found: dict[str, list[float]] = {}
    for (collective, *_), rows in table.groupby(_SCENARIO, sort=True):
        by_run = rows.pivot_table(index="run_id", columns="algorithm", values="time_us", aggfunc="median").to_numpy()
        lost = []
        for here, there in permutations(by_run, 2):
            both = np.isfinite(here) & np.isfinite(there)
            if both.sum() >= 2:
                lost.append(float(there[both][here[both].argmin()] / there[both].min()))
        if lost:
            found.setdefault(str(collective), []).append(float(np.mean(lost)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path)
    options = parser.parse_args()
    print("| table | scenarios measured twice | slowdown | geometric mean | worst |\n|---|---|---|---|---|")
    for path in options.tables or [DATA / f"{name}.csv.gz" for name in (*PICO, *MPI_ADVANCE)]:
        for collective, some in slowdowns(path).items():
            name = path.name.split(".")[0]
            geometric = np.exp(np.log(some).mean())
            print(f"| {name}/{collective} | {len(some)} | {np.mean(some):.2f} | {geometric:.2f} | {max(some):.2f} |")


if __name__ == "__main__":
    main()
