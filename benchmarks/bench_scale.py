"""Whether ten thousand hosts are too many: from the text of host list and topology to the first points placed.

``pack_10k_s``: expand the host list of a job on 10,000 nodes, parse the site's topology.conf, build the job's tree,
and place the first of 256 waiting points; then, as a measurement ends, choose what follows it. ``repack_10k_s`` is
the last of these alone, which is what a running campaign pays for each point. Median of five.

``machine_s_1024``, ``slowdown_1024``: see learned.py. ``decide_s_JOB``, ``rules_worst``, ``peak_mb``: see
scale_decide.py. ``init_ms``, ``lookups_per_node_N``: see scale_start.py. ``plan_NODES_MINUTES``,
``thinking_share_2048``, ``check_limit_s``: see scale_plan.py. ``request_kb_JOB``, ``journal_mb_JOB`` and more of a
store: see scale_store.py.

Merges its figures into bench/scale.json and prints that.
"""

from __future__ import annotations

import random
from statistics import median
from time import perf_counter

from colltune.core.hostlist import expand_hostlist
from colltune.core.sample import DEFAULT, Scenario
from colltune.core.space import Point
from colltune.core.topology import Top
from colltune.schedule.contract import Task
from colltune.schedule.filling import FillingPacker
from colltune.schedule.topology_files import of_paths, parse_slurm_conf
from harness import known_figures, write_figures
from learned import scale_1024
from scale_decide import scale_decide
from scale_plan import scale_plan
from scale_start import scale_lookups
from scale_store import scale_store

HOSTS, PER_LEAF, LEAVES_PER_SPINE, WAITING = 10_000, 16, 25, 256


def topology_conf() -> str:
    """625 leaf switches of 16 hosts below 25 spines below one core."""
    lines = []
    leaves = HOSTS // PER_LEAF
    for leaf in range(leaves):
        first = leaf * PER_LEAF
        lines.append(f"SwitchName=leaf{leaf:03} Nodes=nid[{first:05}-{first + PER_LEAF - 1:05}]")
    for spine in range(leaves // LEAVES_PER_SPINE):
        first = spine * LEAVES_PER_SPINE
        lines.append(f"SwitchName=spine{spine:02} Switches=leaf[{first:03}-{first + LEAVES_PER_SPINE - 1:03}]")
    lines.append(f"SwitchName=core Switches=spine[00-{leaves // LEAVES_PER_SPINE - 1:02}]")
    return "\n".join(lines) + "\n"


def waiting() -> list[Task]:
    """Points on 1 to 8,192 nodes, as a learner would rank them: in no order."""
    generator = random.Random(0)
    scenarios = [Scenario("allreduce", 2 ** generator.randrange(14), 8, 4 * (n + 1)) for n in range(WAITING)]
    return [Task(Point(scenario, (DEFAULT,)), generator.uniform(0.005, 0.1)) for scenario in scenarios]


def once(conf: str, tasks: list[Task]) -> tuple[float, float]:
    start = perf_counter()
    hosts = expand_hostlist(f"nid[00000-{HOSTS - 1:05}]")
    packer = FillingPacker(of_paths(parse_slurm_conf(conf, "topology.conf"), hosts, Top.SHARED, "topology.conf"))
    started = packer.start(tasks, 0.0)
    placed = perf_counter()
    begun = {id(placement.task) for placement in started}
    left = [task for task in tasks if id(task) not in begun]
    packer.finish(started[-1])
    packer.start(left, started[-1].task.duration_s)
    end = perf_counter()
    return end - start, end - placed


def main() -> None:
    conf, tasks = topology_conf(), waiting()
    measured = [once(conf, tasks) for _ in range(5)]
    figures = {
        "pack_10k_s": round(median(whole for whole, _ in measured), 4),
        "repack_10k_s": round(median(again for _, again in measured), 4),
        **scale_decide(),
        **scale_1024(),
        **scale_plan(),
        **scale_lookups(),
        **scale_store(),
    }
    write_figures("scale", {**known_figures("scale"), **figures})


if __name__ == "__main__":
    main()
