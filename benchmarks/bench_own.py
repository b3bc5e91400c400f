"""What `colltune tune` gains for this job's own shape on a real cluster of 8 nodes, judged by OSU's programs.

    make bench-own OWN='--osu DIR'          DIR: a build of the OSU Micro-Benchmarks

Network namespaces with links of 1 Gbit/s and real TCP; needs root, iproute2 and gcc, and takes about three hours on
two idle cores: eight minutes for each tuning of five, and ten for each launch in which every choice is timed. It may be
stopped and goes on: what is in bench/own is not done again. That holds, for each tuning of --plan (SHAPE:BUDGET:HOW
MANY), its directory and the times of OSU's launches (judge_osu.py); and for each shape the launches in which every
choice was timed (own_launch.py), of which `make bench-variance` makes its table.

Writes bench/own.json and prints it. ``geomean_BUDGET_SHAPE``: default over tuned at the calls of the whole job, one
without a rule counts as 1; the median of the tunings. ``best_SHAPE``: the same of the fastest choice of each call, the
default among them, chosen in one half of the extra launches and judged in the other, by OSU's convention; both ways.
``captured_BUDGET_SHAPE``: log(geomean) over log(best). ``slower``: calls of all tunings that are slower beyond an
interval that holds for all calls of one at once. ``decided_share``: of the calls, those with a rule, in all tunings.
``own_BUDGET_SHAPE``: what `colltune verify` says, all its calls counted.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.store.journal import read_journal
from on_cluster import ROOT, NamespaceCluster, namespace_cluster, on_first_node, require_namespaces

KEPT = Path("bench/own")
COLLECTIVES = ("bcast", "allreduce", "alltoall", "allgather")
# By launch, call and choice: the logarithms of the times of its rounds.
Rounds = dict[Scenario, dict[Choice, list[float]]]


@dataclass(frozen=True)
class Plan:
    """``count`` tunings of ``shape``, which is written as 8x2, of ``budget`` each."""

    shape: str
    budget: str
    count: int

    @classmethod
    def parse(cls, text: str) -> Plan:
        match = re.fullmatch(r"(\d+x\d+):(\w+):(\d+)", text)
        if match is None:
            raise argparse.ArgumentTypeError(f"{text} is not SHAPE:BUDGET:COUNT, as 8x2:5m:3 is")
        return cls(match[1], match[2], int(match[3]))

    @property
    def directories(self) -> list[Path]:
        return [KEPT / f"{self.shape}-{self.budget}-{number + 1}" for number in range(self.count)]

    @property
    def label(self) -> str:
        return f"{self.budget}_{self.shape}"


def parsed(shape: str) -> tuple[int, int]:
    nodes, ppn = map(int, shape.split("x"))
    return nodes, ppn


def run_all(asked: argparse.Namespace) -> None:
    """What of the plan is not there yet, shape by shape."""
    for shape in dict.fromkeys(plan.shape for plan in asked.plan):
        nodes, ppn = parsed(shape)
        with (
            tempfile.TemporaryDirectory() as place,
            namespace_cluster(Path(place) / "cluster", nodes, asked.rate) as cluster,
        ):
            where = ("--hostfile", str(cluster.host_file(ppn)))
            for plan in (one for one in asked.plan if one.shape == shape):
                for number, tuned in enumerate(plan.directories):
                    tune_and_judge(cluster, tuned, plan, (*where, "--seed", str(number + 1)), asked)
            time_choices(cluster, shape, where, asked)
        write(figures(asked))


def tune_and_judge(
    cluster: NamespaceCluster, tuned: Path, plan: Plan, where: Sequence[str], asked: argparse.Namespace
) -> None:
    if not (tuned / "tuning.json").exists():
        # What a tuning that was cut off measured would make the next one longer.
        shutil.rmtree(tuned, ignore_errors=True)
        words = (*asked.collectives, "--budget", plan.budget, "--max-size", str(max(asked.sizes)), "--out", str(tuned))
        on_first_node(cluster, "-m", "colltune", "tune", *words, *where)
    judge = str(ROOT / "benchmarks" / "judge_osu.py")
    sizes = ("--node-counts", str(parsed(plan.shape)[0]), "--sizes", *map(str, asked.sizes))
    kept = ("--record", str(tuned / "osu.jsonl"), "--out", str(tuned / "osu.csv"))
    launches = ("--launches", str(asked.launches), "--iterations", str(asked.iterations))
    printed = on_first_node(cluster, judge, str(tuned), "--osu", str(asked.osu), *sizes, *launches, *kept, *where)
    (tuned / "osu.json").write_text(printed.splitlines()[-1] + "\n")
    if asked.verify and not (tuned / "verify.txt").exists():
        host_file = where[:2]
        answer = on_first_node(cluster, "-m", "colltune", "verify", str(tuned), "--launches", "2", *host_file)
        (tuned / "verify.txt").write_text(answer)


def time_choices(cluster: NamespaceCluster, shape: str, where: Sequence[str], asked: argparse.Namespace) -> None:
    for number in range(asked.extra):
        out = KEPT / shape / f"launch-{number + 1}.jsonl"
        if not out.exists():
            out.parent.mkdir(parents=True, exist_ok=True)
            program = str(ROOT / "benchmarks" / "own_launch.py")
            words = ("--collectives", *asked.collectives, "--sizes", *map(str, asked.sizes))
            rounds = ("--ppn", shape.split("x")[1], "--rounds", str(asked.rounds), "--seed", str(number + 1))
            on_first_node(cluster, program, str(out), *words, *rounds, *where)


def launches_of(shape: str, *, osu: bool = False) -> list[Rounds]:
    """What was recorded of ``shape``, by launch. ``osu``: by OSU's convention, in place of the slowest rank's times."""
    found: list[Rounds] = []
    for path in sorted((KEPT / shape).glob("launch-*.jsonl")):
        rounds: Rounds = {}
        for sample in read_journal(path).samples:
            time_s = sample.osu_mean_s if osu else sample.time_s
            if sample.status is Status.OK and time_s:
                rounds.setdefault(sample.scenario, {}).setdefault(sample.choice, []).append(math.log(time_s))
        found.append(rounds)
    return found


def means_of(launches: Iterable[Rounds], scenario: Scenario) -> dict[Choice, float]:
    """By choice that all of them timed, the mean over launches of log(default / choice) over their rounds."""
    each = [
        {choice: fmean(some[DEFAULT]) - fmean(values) for choice, values in some.items()}
        for some in (launch.get(scenario, {}) for launch in launches)
        if DEFAULT in some
    ]
    common = set(each[0]).intersection(*each) if each else set()
    return {choice: fmean(one[choice] for one in each) for choice in common}


def best_log(launches: Sequence[Rounds]) -> float | None:
    """The mean over calls of the log speed-up of the fastest, chosen in half of the launches, judged in the rest."""
    halves = launches[::2], launches[1::2]
    gains = []
    for chosen, judged in (halves, halves[::-1]):
        for scenario in sorted(launches[0]) if launches else ():
            by, paid = means_of(chosen, scenario), means_of(judged, scenario)
            both = sorted(by.keys() & paid.keys())
            if both:
                gains.append(paid[max(both, key=lambda choice: by[choice])])
    return fmean(gains) if gains else None


def figures(asked: argparse.Namespace) -> dict[str, float]:
    made: dict[str, float] = {}
    slower, ruled, points = 0, 0, 0
    best = {plan.shape: best_log(launches_of(plan.shape, osu=True)) for plan in asked.plan}
    made |= {f"best_{shape}": round(math.exp(value), 3) for shape, value in best.items() if value is not None}
    for plan in asked.plan:
        judged = [json.loads((one / "osu.json").read_text()) for one in plan.directories if (one / "osu.json").exists()]
        if not judged:
            continue
        logs = [one["osu_ruled"] / one["osu_points"] * math.log(one.get("osu_geomean_ruled", 1.0)) for one in judged]
        made[f"geomean_{plan.label}"] = round(math.exp(median(logs)), 3)
        made[f"tunings_{plan.label}"] = len(judged)
        if top := best[plan.shape]:
            made[f"captured_{plan.label}"] = round(median(logs) / top, 3)
        slower += sum(one["osu_slower"] for one in judged)
        ruled += sum(one["osu_ruled"] for one in judged)
        points += sum(one["osu_points"] for one in judged)
        if verified := list(verified_in(plan.directories)):
            made[f"own_{plan.label}"] = round(median(verified), 3)
    return made | {"slower": slower, "decided_share": round(ruled / max(points, 1), 3)}


def verified_in(directories: Iterable[Path]) -> Iterator[float]:
    for path in (one / "verify.txt" for one in directories):
        mean = re.search(r"geometric mean over \d+ points: ([0-9.]+)", path.read_text() if path.exists() else "")
        if mean is not None:
            yield float(mean[1])


def write(made: dict[str, float]) -> None:
    target = KEPT.with_suffix(".json")
    target.write_text(json.dumps(made, indent=2) + "\n")
    print(json.dumps(made, indent=2), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osu", type=Path, required=True, help="directory of a build of the OSU Micro-Benchmarks")
    plans = ["8x2:5m:3", "8x1:5m:3", "8x2:1m:1", "8x2:20m:1"]
    parser.add_argument("--plan", type=Plan.parse, nargs="+", default=[Plan.parse(one) for one in plans])
    parser.add_argument("--collectives", nargs="+", default=list(COLLECTIVES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[4 << step for step in range(14)], help="bytes")
    parser.add_argument("--launches", type=int, default=4, help="of each side, by OSU's programs")
    parser.add_argument("--iterations", type=int, default=100, help="of OSU's programs")
    parser.add_argument("--extra", type=int, default=4, help="launches of each shape in which every choice is timed")
    parser.add_argument("--rounds", type=int, default=2, help="of ten calls of each choice in such a launch")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--verify", action="store_true", help="compare by colltune verify as well")
    asked = parser.parse_args()
    require_namespaces()
    KEPT.mkdir(parents=True, exist_ok=True)
    asked.osu = asked.osu.resolve()
    run_all(asked)


if __name__ == "__main__":
    main()
