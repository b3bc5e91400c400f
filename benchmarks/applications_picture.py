"""The picture of docs/how-to/does-it-pay.md: what whole programs gained, by their share of time in collectives.

    python benchmarks/applications_picture.py [--out docs/figures/applications.png]

Of what bench_applications.py keeps in bench/applications: a point for each row that was compared, with its 95%
interval. The curves say what a program gains whose collectives all take 1/1.2, 1/1.5 and 1/2 of their time.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from application_rows import kept_rows, programs
from applications import Place
from harness import ROOT, options_of

MARKS = {"mpich": "o", "openmpi": "s"}
HIGHEST = 2.05


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures" / "applications.png")
    asked = parser.parse_args()
    figure, axes = plt.subplots(figsize=(8.0, 4.4), layout="constrained")
    shares = np.linspace(0.0, 1.0, 200)
    for speed in (1.2, 1.5, 2.0):
        gains = 1.0 / (1.0 - shares * (1.0 - 1.0 / speed))
        axes.plot(100.0 * shares, gains, color="#bbbbbb", linewidth=1.0)
        axes.annotate(f"all {speed:g}x", (100.0, gains[-1]), fontsize=8, color="#666666", va="center")
    axes.axhline(1.0, color="#666666", linewidth=0.8)
    for program, where, steps in kept_rows(programs()):
        gain, low, high = steps.gain()
        if steps.share is None or low is None or high is None:
            continue
        surely = low > 1.0
        bounds = [[gain - low], [min(high, HIGHEST) - gain]]
        axes.errorbar(
            100.0 * steps.share,
            gain,
            yerr=bounds,
            fmt=MARKS[program.mpi],
            color="#2a78d6" if surely else "#999999",
            elinewidth=0.8,
            markersize=5,
        )
        label = program.title.split(",")[0] + ("" if where == "4x2" else f", {Place.parse(where)}")
        if surely:
            axes.annotate(
                label, (100.0 * steps.share, gain), xytext=(-6, 4), textcoords="offset points", fontsize=8, ha="right"
            )
    axes.set_xlim(0.0, 108.0)
    axes.set_ylim(0.8, HIGHEST)
    axes.set_xlabel("share of its time in collectives by default, %", fontsize=9)
    axes.set_ylabel("time by default over time tuned", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(asked.out, dpi=110, metadata={"Software": ""})
    print(f"wrote {asked.out}")


if __name__ == "__main__":
    main()
