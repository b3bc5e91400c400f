"""One launch of the job in which every choice of some calls is timed, side by side and in rounds, and kept.

    python benchmarks/own_launch.py OUT --collectives bcast ... --sizes 64 ... --ppn 2 --hostfile F [--rounds 4]

Runs where the job would start (bench_own.py runs it on the first node of its cluster). A round times each choice of
each call, ``--calls`` times, the choices by turns. OUT is a journal (docs/design/formats.md) and there once it is
complete: the n-th sample of a choice is its n-th round.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.sample import REDUCTIONS, Scenario
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.store.journal import Journal

_BOX_S = 1.0  # no call takes so long that fewer would do


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--collectives", nargs="+", required=True)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="bytes")
    parser.add_argument("--ppn", type=int, required=True)
    parser.add_argument("--hostfile", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    bench = open_workbench(MachineOptions(host_file=asked.hostfile, ppn=asked.ppn), os.environ)
    scenarios = [
        Scenario(name, bench.nodes, bench.ppn, size)
        for name in asked.collectives
        for size in asked.sizes
        if name not in REDUCTIONS or size % 4 == 0
    ]
    points = [Point(scenario, bench.legal(scenario)) for scenario in scenarios]
    effort = Effort(relative_width=0.0, box_s=_BOX_S, fewest=asked.calls, most=asked.calls)
    unfinished = asked.out.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    source = bench.launch(asked.seed)
    with Journal.create(unfinished, bench.environment) as journal:
        source.start()
        try:
            for number in range(asked.rounds):
                for _, samples in source.measure(iter(points), effort):
                    journal.append(samples)
                print(f"round {number + 1} of {asked.rounds}", flush=True)
        finally:
            source.close()
    unfinished.rename(asked.out)


if __name__ == "__main__":
    main()
