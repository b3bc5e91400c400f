"""Judges by the OSU Micro-Benchmarks what `colltune guidelines` calls violated.

    python benchmarks/guidelines_by_osu.py FOUND.json --mpiexec PATH --osu DIR [--launches 10] [--hostfile F]

FOUND.json: what `colltune guidelines --json` printed. In every launch of a round each program that is needed runs
once, in random order; a row is the sum of the mock-up's times over that of the call, by rounds. Below 1, and surely so
where the 99% interval is: OSU's programs find the guideline violated too. They time each rank's own call after a
barrier and print the mean over ranks, so a collective in which some ranks are done early looks cheaper than to its
slowest rank. Rows of which a program is missing (OSU has none for scans) are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.measure.osu import OsuBenchmarks
from colltune.prove.compare.guidelines import Guideline, guidelines_at, judge_guidelines
from colltune.prove.compare.two_sides import Launched

OPTIONS = ("-i", "1000", "-x", "100")


def violated(path: Path) -> list[Guideline]:
    rows = [row for row in json.loads(path.read_text())["comparisons"] if row["verdict"] == "slower"]
    found = []
    for row in rows:
        call = Scenario(**{name: row["scenario"][name] for name in ("collective", "nodes", "ppn", "size_bytes")})
        of_shape = guidelines_at(call.nodes, call.ppn, 1, 1 << 24)
        found += [one for one in of_shape if (one.call, one.text) == (call, row["choice"])]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", type=Path)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--osu", type=Path, required=True)
    parser.add_argument("--hostfile", type=Path)
    parser.add_argument("--launches", type=int, default=10)
    asked = parser.parse_args()
    guidelines = violated(asked.found)
    nodes, ppn = ((one := guidelines[0].call).nodes, one.ppn) if guidelines else (1, 1)
    bench = open_workbench(MachineOptions(asked.mpiexec, nodes=nodes, ppn=ppn, host_file=asked.hostfile), os.environ)
    programs: dict[str, OsuBenchmarks] = {}
    for name in sorted({scenario.collective for one in guidelines for scenario in (one.call, *one.mock_up)}):
        try:
            programs[name] = OsuBenchmarks.find(asked.osu, [name], OPTIONS)
        except InputError as error:
            print(f"left out: {error.what}")
    judged = [one for one in guidelines if {s.collective for s in (one.call, *one.mock_up)} <= programs.keys()]
    needed = sorted({scenario for one in judged for scenario in (one.call, *one.mock_up)})
    times, draw = Launched(), random.Random(1)
    for _ in range(asked.launches):
        for scenario in draw.sample(needed, len(needed)):
            measured = programs[scenario.collective].medians(bench.command, {}, bench.process_environment, [scenario])
            times.times_s[scenario].append(measured[scenario])
    found = judge_guidelines(judged, times)
    for one in found:
        call, violation = f"{one.scenario.collective} of {one.scenario.size_bytes} B", one.speedup
        times = f"{1 / violation.estimate:.2f} ({1 / violation.high:.2f} to {1 / violation.low:.2f})"
        print(f"{call}: {times} times {one.choice}, {one.verdict}")
    surely = sum(one.verdict.value == "slower" for one in found)
    print(f"{surely} of {len(found)} violated by OSU's programs too, {len(guidelines) - len(found)} not judged")


if __name__ == "__main__":
    main()
