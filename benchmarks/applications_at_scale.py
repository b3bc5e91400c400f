"""What tuning is worth in two real programs on clusters of 64 and 512 nodes: all of it by simulation, nothing measured.

    python benchmarks/applications_at_scale.py [--only pw,elk] [--clusters dragonfly:8x1,...] [--budget 300]
        [--messages 1500000]
    python benchmarks/applications_at_scale.py --record pw|elk DIRECTORY

Profiles of 2, 4 and 8 ranks (data/at_scale) say by their laws what a job of the cluster's ranks calls. From them comes
a skeleton (skeleton.py): its calls in their proportions, computing between them. The cluster is simulated by SimGrid's
SMPI (Debian: `apt-get install libsimgrid-dev`), tuned by the engine that tunes real jobs, and the skeleton is replayed
there by one program with the default's algorithms and with the tuned ones (native/skeleton). Of a run of more than
``--messages`` messages a part is replayed, with the calls in their proportions; the mean time of a kind of call is then
taken as often as the run makes it.

Writes bench/applications_at_scale.json, and prints the table as benchmarks/history/at_scale.md has it. *Sum over
replay*: the time in calls from single calls that all ranks begin together, over that of the replay. ``--record`` makes
the profiles again (`apt-get install quantum-espresso quantum-espresso-data elk-lapw openmpi-bin`; six minutes, nothing
else running).
"""

from __future__ import annotations

import json
import math
import operator
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.learn.expected_gain import ExpectedGain
from colltune.profile.application_profile import Profile, time_shares
from colltune.profile.extrapolate import extrapolate
from colltune.profile.profile_files import load_profile
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.session.tuning.tune import tune
from colltune.store.tuning import Tuning
from colltune_study.simulated.simulated_cluster import NATIVE, Simulation, find_simgrid, open_simulation
from colltune_study.simulated.smpi_cluster import SimulatedCluster
from colltune_study.simulated.smpi_process import SimulatedCall, settings
from harness import options_of
from skeleton import ROOTED, Computing, Kind, Skeleton, computing_of, make_skeleton, order_of

HERE = Path(__file__).resolve().parent
DATA = HERE / "data" / "at_scale"
RANKS = (2, 4, 8)
CLUSTERS = "dragonfly:8x1,dragonfly:64x1,dragonfly:64x4,dragonfly:512x1"
STEPS = 32  # of a loop over all ranks, as in a tuning
RUNTIME_S = 3.6e6  # of the program, still to come: every measurement is worth its time
_LIMIT_S = 300.0  # of one replay


@dataclass(frozen=True)
class Code:
    """``words``: its command, in a directory where ``input`` is called ``named``. ``alike_s``: what its own timers say
    took as long on two ranks as on one. ``steps``: of those it makes, where each first computes and then calls; 0 where
    calls and computing alternate."""

    title: str
    words: tuple[str, ...]
    input: str
    named: str
    alike_s: float
    steps: int = 0


CODES = {
    "pw": Code("Quantum ESPRESSO, Al wire", ("pw.x", "-ndiag", "1", "-in", "wire.in"), "wire.in", "wire.in", 0.06),
    "elk": Code("Elk, Si, 512 k points", ("elk-lapw",), "elk_512.in", "elk.in", 0.27, steps=3),
}


@dataclass(frozen=True, slots=True)
class Way:
    """Seconds of one rank, the mean over the ranks: in calls by replay and by the sum of single calls.

    ``replayed`` calls of all; ``ended_s``: when the replay ended, on the simulated clock.
    """

    calls_s: float
    sum_s: float
    replayed: int
    ended_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """``compute_s`` of each rank: shared out perfectly, and with what every rank does alike."""

    code: str
    cluster: str
    ranks: int
    left_out: float
    why: str
    proven: int
    compute_s: tuple[float, float]
    default: Way
    tuned: Way
    tuning_s: float
    replay_s: float

    def shares(self, which: int) -> tuple[float, float, float]:
        """In collectives by default, tuned; and the run's time by default over tuned."""
        base, better = (self.compute_s[which] + way.calls_s for way in (self.default, self.tuned))
        return 1.0 - self.compute_s[which] / base, 1.0 - self.compute_s[which] / better, base / better


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--only", default=",".join(CODES))
    parser.add_argument("--clusters", default=CLUSTERS)
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of a tuning")
    parser.add_argument("--messages", type=float, default=1.5e6, help="of a replay, about")
    parser.add_argument("--record", nargs=2, metavar=("CODE", "DIRECTORY"))
    asked = parser.parse_args()
    if asked.record:
        record(CODES[asked.record[0]], asked.record[0], Path(asked.record[1]))
        return
    kept = Path("bench") / "applications_at_scale.json"
    kept.parent.mkdir(exist_ok=True)
    rows: list[Row] = []
    for cluster in split(asked.clusters):
        for code in asked.only.split(","):
            rows.append(row_of(code, cluster, asked.budget, asked.messages))
            kept.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
            print(cells_of(rows[-1]), flush=True)
    print("\n".join(["", *HEAD, *map(cells_of, rows)]))


def split(clusters: str) -> list[str]:
    """A cluster's own commas come before a name with "="."""
    found: list[str] = []
    for part in clusters.split(","):
        if "=" in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def row_of(code: str, text: str, budget_s: float, messages: float) -> Row:
    profiles = [load_profile(DATA / f"{code}_{ranks}.json") for ranks in RANKS]
    computing = computing_of(load_profile(DATA / f"{code}_1.json"), profiles[0], CODES[code].alike_s)
    with closing(open_simulation(text, os.environ)) as simulation, tempfile.TemporaryDirectory() as name:
        place, ranks = Path(name), simulation.nodes * simulation.ppn
        skeleton = make_skeleton(profiles, simulation.nodes, simulation.ppn)
        began_s = time.monotonic()
        tuning, proven = tuned(simulation, profiles, budget_s, place / "tuned")
        tuning_s = time.monotonic() - began_s
        program = compile_skeleton(place / "skeleton")
        compute_s = Computing(computing.whole_s).on(ranks), computing.on(ranks)
        ways: list[Way] = []
        for choose in (lambda _scenario: DEFAULT, chooser(tuning)):
            algorithms = [simulation.algorithm(kind.scenario, choose(kind.scenario)) for kind in skeleton.kinds]
            ways.append(way_of(simulation, program, skeleton, algorithms, compute_s[1], CODES[code].steps, messages))
        replay_s = time.monotonic() - began_s - tuning_s
    default, better = ways
    return Row(
        code, text, ranks, skeleton.left_out, skeleton.why, proven, compute_s, default, better, tuning_s, replay_s
    )


def tuned(simulation: Simulation, profiles: Sequence[Profile], budget_s: float, out: Path) -> tuple[Tuning, int]:
    """The tuning of the cluster for the program, as that of a real job, and how many of its decisions are proven."""
    shape = simulation.nodes, simulation.ppn
    profile, _ = extrapolate(profiles, *shape)
    share = {one: part for one, part in time_shares(profile).items() if one.collective in simulation.catalogue.entries}
    called = sorted({scenario.collective for scenario in share})
    options = TuneOptions(called, budget_s=budget_s, expected_gain=ExpectedGain(share, RUNTIME_S))
    result = tune(simulation, options, out, Listener(note=lambda text: print(text, file=sys.stderr, flush=True)))
    return result.tuning, sum(one.verdict is Verdict.KEPT for one in result.decisions)


def chooser(tuning: Tuning) -> Callable[[Scenario], Choice]:
    def choose(scenario: Scenario) -> Choice:
        rules = tuning.rule_sets.get(scenario.collective)
        return DEFAULT if rules is None else rules.evaluate(scenario)

    return choose


def way_of(
    simulation: Simulation,
    program: Path,
    skeleton: Skeleton,
    algorithms: Sequence[SimulatedCall],
    compute_s: float,
    steps: int,
    messages: float,
) -> Way:
    alone = [single_s(simulation, kind, one) for kind, one in zip(skeleton.kinds, algorithms, strict=True)]
    calls = [kind.calls for kind in skeleton.kinds]
    sent = sum(map(operator.mul, calls, (messages_of(one, skeleton.kinds[0].scenario.ranks) for one in algorithms)))
    order = order_of(calls, min(1.0, messages / sent), steps)
    text = lines_of(skeleton, algorithms, [(kind, share * compute_s) for kind, share in order])
    means, ended_s = replay(program, simulation.cluster, text)
    return Way(sum(map(operator.mul, calls, means)), sum(map(operator.mul, calls, alone)), len(order), ended_s)


def messages_of(algorithm: SimulatedCall, ranks: int) -> float:
    """About how many a call sends."""
    if algorithm.collective in ROOTED:
        return ranks
    if any(name in algorithm.name for name in ("ring", "pairwise", "batched", "linear", "neighbor")):
        return ranks * min(ranks, 2 * STEPS)
    return ranks * math.log2(ranks)


def single_s(simulation: Simulation, kind: Kind, algorithm: SimulatedCall) -> float:
    """Seconds of one call that all ranks begin together, to the end of the last one."""
    where = kind.scenario
    found = simulation.simulator.time(algorithm, where.nodes, where.ppn, where.size_bytes)
    if isinstance(found, str):
        raise InputError(f"{algorithm.words()} of {where} cannot be simulated: {found}", "Use a smaller cluster")
    return found.time_s


def lines_of(skeleton: Skeleton, algorithms: Sequence[SimulatedCall], order: Sequence[tuple[int, float]]) -> str:
    """The file that native/skeleton reads; ``order``: kinds, and the seconds of computing before each."""
    kinds = [
        f"kind {'moving ' * kind.moving}{one.words()} {kind.scenario.size_bytes}"
        for kind, one in zip(skeleton.kinds, algorithms, strict=True)
    ]
    return "\n".join([f"steps {STEPS}", *kinds, *(f"run {kind} {compute_s!r}" for kind, compute_s in order), ""])


def compile_skeleton(program: Path) -> Path:
    """The program that replays skeletons, with the algorithms of simulated clusters."""
    own = NATIVE
    sources = [HERE / "native" / "skeleton" / "skeleton.cpp"]
    sources += sorted(path for path in own.glob("*.cpp") if path.name not in ("main.cpp", "verify.cpp"))
    words = ["smpicxx", "-std=gnu++17", "-O2", "-Wall", "-Wextra", "-iquote", str(own), *map(str, sources)]
    done = subprocess.run([*words, "-o", str(program)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"smpicxx cannot compile the skeleton: {done.stderr[:300]}", "Update SimGrid")
    return program


def replay(program: Path, cluster: SimulatedCluster, text: str) -> tuple[list[float], float]:
    """Seconds of a rank in a call of each kind, the mean over ranks and calls, and when the replay ended."""
    simgrid = find_simgrid(os.environ)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "platform.xml").write_text(cluster.platform())
        (place / "hosts").write_text(cluster.host_file(cluster.nodes, cluster.ppn))
        (place / "skeleton").write_text(text)
        words = [str(simgrid.smpirun), "-no-privatize", "-platform", "platform.xml", "-hostfile", "hosts"]
        words += settings(cluster, simgrid.version)
        words += [str(program), str(cluster.ppn), *[repr(1e-9 / cluster.memory_gbyte)] * 2, "skeleton"]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    means = [float(line[3]) / int(line[2]) for line in lines if line and line[0] == "kind"]
    ended = [float(line[1]) for line in lines if line and line[0] == "ended"]
    if done.returncode or len(ended) != 1:
        raise RuntimeError(f"the replay on {cluster.text} failed: {done.stderr[-500:]}")
    return means, ended[0]


HEAD = [
    "| code | cluster, simulated | ranks | in collectives: default, tuned | run: default / tuned | of calls alone |"
    " sum / replay: default, tuned | proven | left out | tuning, replays |",
    "|---|---|---|---|---|---|---|---|---|---|",
]


def cells_of(row: Row) -> str:
    """Of two figures the first is with perfectly shared computing, the second with what every rank does alike."""
    shares = [row.shares(which) for which in (0, 1)]
    base, better = row.default, row.tuned
    cells = [
        CODES[row.code].title,
        row.cluster,
        str(row.ranks),
        "; ".join(f"{share[0]:.1%}, {share[1]:.1%}" for share in shares),
        "; ".join(f"{share[2]:.3f}" for share in shares),
        f"{base.calls_s / better.calls_s:.2f}",
        f"{base.sum_s / base.calls_s:.2f}, {better.sum_s / better.calls_s:.2f}",
        str(row.proven),
        f"{row.left_out:.1%}",
        f"{row.tuning_s:.0f} s, {row.replay_s:.0f} s",
    ]
    return "| " + " | ".join(cells) + " |"


def record(code: Code, name: str, place: Path) -> None:
    """Profiles of 1, 2, 4 and 8 ranks on this machine, into data/at_scale."""
    place.mkdir(parents=True, exist_ok=True)
    (place / code.named).write_bytes((HERE / "application_inputs" / code.input).read_bytes())
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    mpiexec = "/usr/bin/mpiexec.openmpi"
    for ranks in (1, *RANKS):
        out = (DATA / f"{name}_{ranks}.json").resolve()
        words = [sys.executable, "-m", "colltune", "profile", "--out", str(out), "--mpiexec", mpiexec]
        job = ["--", mpiexec, "--oversubscribe", "-n", str(ranks), *code.words]
        subprocess.run([*words, *job], cwd=place, env={**os.environ, **threads, **root}, check=True)


if __name__ == "__main__":
    main()
