"""What MPICH's compositions of network and shared memory gain beyond its flat algorithms (as ACCLAiM's figure 16).

    python benchmarks/compositions_on_cluster.py NODES [LAUNCHES]

NODES network namespaces with 2 ranks each, links of 1 Gbit/s, MPICH beside this Python. Of each call two launches find
the fastest flat algorithm and the fastest composition, which may hold another algorithm between the nodes; so many
fresh launches (10) compare these two. Prints each call with the time of the flat one over that of the composition and
its 99% interval for all calls together, and writes them to bench/compositions-NODES.json. Needs root, iproute2, gcc.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from statistics import median

from bench_compare import launchers
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.catalog import Kind
from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Status
from colltune.core.scenario import Scenario
from colltune.core.space import Point
from colltune.judge.verdict import compare_all, mean_speedup
from colltune.measure.contract import Effort
from on_cluster import namespace_cluster, on_first_node, require_namespaces

PPN, SIZES = 2, (64, 1 << 10, 8 << 10, 64 << 10)
COLLECTIVES, SCREENING, LAUNCHES = ("allreduce", "bcast", "reduce"), 2, 10
SCREEN, COMPARE = Effort(box_s=0.02, fewest=5, most=10), Effort(box_s=0.02, fewest=10, most=40)
Times = defaultdict[tuple[Scenario, Choice], list[float]]


def measured(bench: Workbench, points: list[Point], effort: Effort, launches: range) -> Times:
    """A median of each launch, by scenario and choice."""
    times: Times = defaultdict(list)
    for launch in launches:
        with closing(bench.launch(launch)) as source:
            for _, samples in source.measure(points, effort):
                for one in samples:
                    if one.status is Status.OK:
                        times[one.scenario, one.choice].append(one.time_s)
    return times


def inside(nodes: int, host_file: str, launches: int) -> None:
    bench = open_workbench(MachineOptions(str(launchers()["mpich"]), host_file=Path(host_file)), os.environ)
    scenarios = [Scenario(name, nodes, PPN, size) for name in COLLECTIVES for size in SIZES]
    screened = measured(bench, [Point(one, tuple(bench.legal(one))) for one in scenarios], SCREEN, range(SCREENING))
    fastest: dict[Scenario, dict[Kind, Choice]] = defaultdict(dict)
    for scenario, choice in sorted(screened, key=lambda pair: -median(screened[pair])):
        if choice != DEFAULT:
            fastest[scenario][bench.catalogue.algorithm(scenario.collective, choice).kind] = choice
    both = {s: (some[Kind.FLAT], some[Kind.COMPOSITION]) for s, some in fastest.items() if len(some) > 1}
    points = [Point(scenario, pair) for scenario, pair in both.items()]
    times = measured(bench, points, COMPARE, range(SCREENING, SCREENING + launches))
    found = compare_all({(s, pair[1]): (times[s, pair[0]], times[s, pair[1]]) for s, pair in both.items()}, paired=True)
    rows = [
        {
            "collective": one.scenario.collective,
            "size_bytes": one.scenario.size_bytes,
            "flat": str(both[one.scenario][0]),
            "composition": str(one.choice),
            "ratio": round(one.speedup.estimate, 3),
            "low": round(one.speedup.low, 3),
            "high": round(one.speedup.high, 3),
            "verdict": one.verdict.value,
        }
        for one in found
    ]
    for row in rows:
        print(*row.values())
    if (mean := mean_speedup(found)) is not None:
        print(f"mean {mean[0].estimate:.2f} ({mean[0].bounds_text()}) over {mean[1]} calls")
    target = Path(f"bench/compositions-{nodes}.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(rows, indent=2) + "\n")


def main(nodes: str, launches: str = str(LAUNCHES), host_file: str = "") -> None:
    if host_file:
        inside(int(nodes), host_file, int(launches))
        return
    require_namespaces()
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", int(nodes), "1gbit") as c:
        on_first_node(c, __file__, nodes, launches, str(c.host_file(PPN)))


if __name__ == "__main__":
    main(*sys.argv[1:])
