"""What a campaign costs beside the calls that it times: bcast and allreduce at 2 ranks, 1 B to 64 KiB, default effort.

Writes bench/campaign.json and prints it; medians of several campaigns. Wants a quiet machine with an MPICH (beside
this Python, or the one of COLLTUNE_TEST_MPIEXEC). ``wall_over_timed``: the campaign's wall time, from the launch's
end on, over the first rank's time inside calls of the collectives. ``points_per_s``: (scenario, choice) pairs.
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

COLLECTIVES = ("bcast", "allreduce")
LARGEST_BYTES = 1 << 16
BUDGET_S = 180.0


def campaign(bench: Workbench, seed: int, directory: Path) -> dict[str, float]:
    """The figures of one campaign, from its launch to its last sample in the journal."""
    spaces = {name: bench.space(name, 1, LARGEST_BYTES) for name in COLLECTIVES}
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
                budget_s=BUDGET_S,
                effort=Effort(),
            ).run()
        finally:
            source.close()
    if set(outcome.reasons.values()) != {WHOLE}:
        raise SystemExit(f"the grid was not measured whole: {dict(outcome.reasons)}")
    agent_s = sum(sample.cost_s for sample in outcome.samples)
    return {
        "launches": source.launches,
        "launch_s": launched_s - started_s,
        "wall_s": outcome.elapsed_s,
        "timed_s": source.inside_s,
        "agent_s": agent_s,
        "wall_over_timed": outcome.elapsed_s / source.inside_s,
        "wall_over_agent": outcome.elapsed_s / agent_s,
        "points": len(outcome.samples),
        "points_per_s": len(outcome.samples) / outcome.elapsed_s,
    }


def main(runs: int = 5) -> None:
    mpiexec = os.environ.get("COLLTUNE_TEST_MPIEXEC") or str(Path(sys.executable).parent / "mpiexec")
    bench = open_workbench(MachineOptions(mpiexec=mpiexec, nodes=1, ppn=2), os.environ)
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
    main(*(int(text) for text in sys.argv[1:2]))
