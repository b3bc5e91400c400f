"""Makes the shipped model of times, src/colltune/predict/times.npz, from the timed tables of benchmarks/data.

python benchmarks/make_times_model.py [--out FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

from bench_prior import FEWEST_SCENARIOS, MPI_ADVANCE, PICO, grids_of, times_of
from colltune.predict.bursts import Times
from colltune.predict.times_model import FILE, load_times
from colltune.predict.times_training import save_times, train_times

SHIPPED = Path(__file__).parents[1] / "src" / "colltune" / "predict" / FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    options = parser.parse_args()
    tables: dict[str, dict[str, Times]] = {}
    for names in (PICO, MPI_ADVANCE):
        for collective, by_cluster in grids_of(names, FEWEST_SCENARIOS).items():
            tables.setdefault(collective, {}).update({name: times_of(grid) for name, grid in by_cluster.items()})
    save_times(train_times(tables), options.out)
    before_s = process_time()
    known = load_times(options.out)
    took_s = process_time() - before_s
    size_mb, names = options.out.stat().st_size / 1e6, ", ".join(known.collectives)
    print(f"{options.out}: {size_mb:.2f} MB, {names}, read in {took_s:.3f} s")


if __name__ == "__main__":
    main()
