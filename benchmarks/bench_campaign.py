"""What a campaign costs beside the calls that it times: bcast and allreduce at 2 ranks, 1 B to 64 KiB, default effort.

    python benchmarks/bench_campaign.py [RUNS]        on 2 ranks, the whole grid
    python benchmarks/bench_campaign.py RUNS 8        on 8 network namespaces x 2, 30 s of four collectives

Writes bench/campaign.json and prints it; medians of several campaigns. Wants a quiet machine with an MPI (beside
this Python, or the one of COLLTUNE_TEST_MPIEXEC). ``wall_over_timed``: the campaign's wall time, from the launch's
end on, over the first rank's time inside calls of the collectives; ``outside``: the part of the wall time that is not
inside. ``points_per_s``: (scenario, choice) pairs. Namespaces need root and iproute2.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.learn.decision import DecisionLearner
from colltune.measure.contract import Effort
from colltune.search.campaign import WHOLE, Campaign
from colltune.store.journal import Journal
from on_cluster import namespace_cluster, on_first_node

COLLECTIVES = ("bcast", "allreduce")
ON_NAMESPACES = (*COLLECTIVES, "alltoall", "allgather")
LARGEST_BYTES = 1 << 16
BUDGET_S, BUDGET_ON_NAMESPACES_S = 180.0, 30.0


def campaign(bench: Workbench, seed: int, directory: Path) -> dict[str, float]:
    """The figures of one campaign, from its launch to its last sample in the journal."""
    names, budget_s = (COLLECTIVES, BUDGET_S) if bench.nodes == 1 else (ON_NAMESPACES, BUDGET_ON_NAMESPACES_S)
    spaces = {name: bench.space(name, 1, LARGEST_BYTES) for name in names}
    source = bench.launch(seed)
    with Journal.create(directory / f"journal-{seed}.jsonl", bench.environment) as journal:
        started_s = time.monotonic()
        source.start()
        launched_s = time.monotonic()
        try:
            outcome = Campaign(
                source=source,
                spaces=spaces,
                learners={name: DecisionLearner(space, seed) for name, space in spaces.items()},
                record=journal.append,
                budget_s=budget_s,
                effort=Effort(),
            ).run()
        finally:
            source.close()
    if bench.nodes == 1 and set(outcome.reasons.values()) != {WHOLE}:
        raise SystemExit(f"the grid was not measured whole: {dict(outcome.reasons)}")
    agent_s = sum(sample.cost_s for sample in outcome.samples)
    return {
        "launches": source.launches,
        "launch_s": launched_s - started_s,
        "wall_s": outcome.elapsed_s,
        "timed_s": source.inside_s,
        "agent_s": agent_s,
        "wall_over_timed": outcome.elapsed_s / source.inside_s,
        "outside": 1.0 - source.inside_s / outcome.elapsed_s,
        "wall_over_agent": outcome.elapsed_s / agent_s,
        "points": len(outcome.samples),
        "points_per_s": len(outcome.samples) / outcome.elapsed_s,
    }


def main(runs: int = 5, nodes: int = 1, hosts: Path | None = None) -> None:
    if nodes > 1 and hosts is None:
        with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", nodes) as cluster:
            on_first_node(cluster, __file__, str(runs), str(nodes), str(cluster.host_file(2)))
        return
    mpiexec = os.environ.get("COLLTUNE_TEST_MPIEXEC") or str(Path(sys.executable).parent / "mpiexec")
    bench = open_workbench(MachineOptions(mpiexec=mpiexec, host_file=hosts, nodes=nodes, ppn=2), os.environ)
    with tempfile.TemporaryDirectory() as directory:
        found = [campaign(bench, seed, Path(directory)) for seed in range(1, runs + 1)]
    figures = {name: round(median(one[name] for one in found), 3) for name in found[0]}
    figures["launches"] = max(int(one["launches"]) for one in found)
    figures["runs"] = runs
    target = Path("bench/campaign.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *map(Path, sys.argv[3:4]))
