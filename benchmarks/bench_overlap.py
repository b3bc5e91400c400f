"""What a computation hides of every choice of the non-blocking collectives, on a cluster of network namespaces.

4 nodes of 2 ranks with links of 1 Gbit/s, real TCP. For each choice: ``pure``, the call and its wait; ``seen``, the
time in MPI with a computation between the two, as long as an exchange of the same data; ``tested``, the same where the
computation calls MPI_Test; and the shares ``hidden`` and ``hidden_tested`` of pure (docs/design/nonblocking.md).
Medians over the launches, in microseconds.

Writes bench/overlap.json, a flat object, and prints a table. Takes 3 minutes or so for each launch; times are worth
something on an idle machine only. Needs root, iproute2 and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "mpi"))

from colltune.bench.workbench import MachineOptions, open_workbench  # noqa: E402
from colltune.core.sample import Overlap, Sample  # noqa: E402
from colltune.core.scenario import NONBLOCKING, Scenario  # noqa: E402
from colltune.core.space import Point  # noqa: E402
from colltune.core.text_table import TextTable  # noqa: E402
from colltune.measure.contract import Effort  # noqa: E402

FIGURES = ("pure_us", "seen_us", "tested_us", "hidden", "hidden_tested")


def hidden(overlap: Overlap, seen_s: float) -> float:
    """The share of the call that the computation hid, from 0 to 1, by the time in MPI that was left of it.

    1 - (t_total - t_compute) / t_pure, as OSU's benchmarks of non-blocking collectives print it in percent.
    """
    return min(max(1.0 - seen_s / overlap.pure_s, 0.0), 1.0) if overlap.pure_s > 0.0 else 0.0


def figures_of(sample: Sample) -> tuple[float, ...] | None:
    """In the order of FIGURES; None for a choice that was not measured to the end."""
    overlap = sample.overlap
    if not sample.times_s or overlap is None:
        return None
    times_s = (overlap.pure_s, sample.time_s, overlap.tested_s)
    return (*(1e6 * time for time in times_s), *(hidden(overlap, time) for time in times_s[1:]))


def measure(host_file: Path, sizes: list[int], launches: int, box_s: float) -> dict[str, tuple[float, ...]]:
    """By collective, size and choice: medians over the launches."""
    bench = open_workbench(MachineOptions(host_file=host_file), os.environ)
    effort = Effort(relative_width=0.05, box_s=box_s, fewest=10, most=200, warm_up=2)
    scenarios = [Scenario(name, bench.nodes, bench.ppn, size) for name in NONBLOCKING for size in sizes]
    points = [Point(scenario, bench.legal(scenario)) for scenario in scenarios]
    found: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for launch in range(launches):
        source = bench.launch(seed=launch + 1)
        try:
            together = [sample for _, some in source.measure(points, effort) for sample in some]
            # What cannot be the best is not measured to the end beside the others.
            rest = [Point(one.scenario, (one.choice,)) for one in together if figures_of(one) is None]
            alone = [sample for _, some in source.measure(rest, effort) for sample in some]
            for sample in (*together, *alone):
                label = f"{sample.scenario.collective} {sample.scenario.size_bytes} {sample.choice}"
                if (figures := figures_of(sample)) is not None:
                    found[label].append(figures)
        finally:
            source.close()
    return {label: tuple(map(median, zip(*rows, strict=True))) for label, rows in found.items()}


def show(found: dict[str, tuple[float, ...]]) -> None:
    table = TextTable(["collective", "bytes>", "choice", *(f"{name}>" for name in FIGURES)])
    for label, row in sorted(found.items(), key=lambda one: (one[0].split()[0], int(one[0].split()[1]), one[1][1])):
        table.add_row(*label.split(" ", 2), *(f"{value:.1f}" for value in row[:3]), *(f"{v:.0%}" for v in row[3:]))
    print("\n".join(table.lines(120)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--ppn", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[64, 4096, 65536, 1 << 20], help="bytes, multiples of 4"
    )
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--box", type=float, default=0.1, help="seconds for each choice of a point")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # on the first node: the host file
    options = parser.parse_args()
    if options.inside is not None:
        print(json.dumps(measure(options.inside, options.sizes, options.launches, options.box)))
        return
    from namespaces import namespace_cluster, why_not

    if (reason := why_not()) is not None:
        sys.exit(f"no cluster of namespaces here: {reason}")
    with (
        tempfile.TemporaryDirectory() as place,
        namespace_cluster(Path(place) / "cluster", options.nodes, options.rate) as cluster,
    ):
        environment = {**os.environ, **cluster.environment, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        arguments = ["--inside", str(cluster.host_file(options.ppn)), "--launches", str(options.launches)]
        arguments += ["--box", str(options.box), "--sizes", *map(str, options.sizes)]
        command = cluster.inside(sys.executable, "-u", __file__, *arguments)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    show(found)
    flat = {
        f"{label}: {name}": round(v, 4) for label, row in found.items() for name, v in zip(FIGURES, row, strict=True)
    }
    target = Path("bench/overlap.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(flat, indent=2) + "\n")


if __name__ == "__main__":
    main()
