"""A job of Intel MPI on network namespaces, or on this machine, whose launches of IMB-MPI1 are kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.machine.benchmark_output import parse_output
from on_cluster import ROOT, NamespaceCluster, namespace_cluster, require_namespaces

COLLECTIVES = ("allreduce", "alltoall", "allgather", "bcast")
SIZES = tuple(1 << exponent for exponent in range(3, 15))
EXPONENTS = ("-msglog", "3:14")
# As many repetitions of each size as are asked for, and no fewer where they take long.
AS_MANY = ("-iter_policy", "off", "-time", "1000")
KEPT = Path("bench/vendor").absolute()
# A launch of the benchmark that takes longer hangs.
PATIENCE_S = 180.0
Times = Mapping[Scenario, float]


@dataclass
class Place:
    """Where the jobs of ``shape`` run. ``words`` name the nodes for mpiexec, ``where`` for colltune."""

    mpiexec: Path
    shape: str
    directory: Path
    environment: Mapping[str, str]
    cluster: NamespaceCluster | None = None
    words: Sequence[str] = ()
    where: Sequence[str] = ()
    record: dict[str, dict[str, object]] = field(default_factory=dict)

    @property
    def nodes_ppn(self) -> tuple[int, int]:
        nodes, ppn = map(int, self.shape.split("x"))
        return nodes, ppn

    def benchmark(self, iterations: int) -> list[str]:
        """The command of the judge."""
        nodes, ppn = self.nodes_ppn
        ranks = str(nodes * ppn)
        job = [str(self.mpiexec), *self.words, "-n", ranks, "-ppn", str(ppn)]
        judge = [str(self.mpiexec.with_name("IMB-MPI1")), "-npmin", ranks, "-sync", "on", "-iter", str(iterations)]
        return [*job, *judge, *AS_MANY, *EXPONENTS, *COLLECTIVES]

    def run(self, command: Sequence[str], patience_s: float, **variables: str) -> str:
        """What ``command`` prints. Raises subprocess.SubprocessError where it fails or does not end."""
        inside = self.cluster.inside(*command) if self.cluster is not None else list(command)
        with subprocess.Popen(
            inside, env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=self.directory,
        ) as process:  # fmt: skip
            try:
                printed, _ = process.communicate(timeout=patience_s)
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            print(printed[-2000:], file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command[:4], printed)
        return printed

    def launched(self, key: str, iterations: int, **variables: str) -> Times:
        """Seconds of each call in the launch ``key``, which is made unless it is known; none where it failed."""
        if key not in self.record:
            began_s = time.monotonic()
            try:
                printed = self.run(self.benchmark(iterations), PATIENCE_S, **variables)
                found = parse_output(printed.encode(), Path("IMB-MPI1"), self.nodes_ppn).times_s
                times = {f"{s.collective} {s.size_bytes}": values[0] for (s, _), values in found.items()}
            except (subprocess.SubprocessError, InputError) as error:
                print(f"{key}: {error}", file=sys.stderr)
                times = {}
            self.keep(key, {"times_s": times, "took_s": time.monotonic() - began_s})
            print(f"{self.shape} {key}: {self.record[key]['took_s']:.1f} s", flush=True)
        nodes, ppn = self.nodes_ppn
        times_s = self.record[key]["times_s"]
        assert isinstance(times_s, dict)
        called = (name.split() for name in times_s)
        every = {Scenario(name, nodes, ppn, int(size)): times_s[f"{name} {size}"] for name, size in called}
        return {scenario: time_s for scenario, time_s in every.items() if scenario.size_bytes in SIZES}

    def keep(self, key: str, value: dict[str, object]) -> None:
        self.record[key] = value
        with (self.directory / "launches.jsonl").open("a") as file:
            file.write(json.dumps({key: value}) + "\n")

    def timed(self, key: str, made: Path) -> float | None:
        """Seconds that the tuning ``key`` took, where it was made already."""
        return self.record[key]["took_s"] if key in self.record and made.exists() else None  # type: ignore[return-value]


@contextmanager
def place_of(shape: str, mpiexec: Path) -> Iterator[Place]:
    """Raises InputError where there is no such MPI."""
    root, nodes = mpiexec.resolve().parents[1], int(shape.partition("x")[0])
    kept = KEPT / shape
    kept.mkdir(parents=True, exist_ok=True)
    record: dict[str, dict[str, object]] = {}
    path = kept / "launches.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):  # one that was cut off
            record |= json.loads(line)
    library = ":".join(filter(None, (str(root / "lib"), os.environ.get("LD_LIBRARY_PATH", ""))))
    theirs = {"I_MPI_ROOT": str(root), "LD_LIBRARY_PATH": library, "FI_PROVIDER_PATH": str(root / "lib")}
    own = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "PATH": f"{mpiexec.parent}:{os.environ['PATH']}"}
    environment = {**os.environ, **theirs, **own}
    if nodes == 1:
        environment |= {"I_MPI_FABRICS": "shm", "I_MPI_THREAD_YIELD": "2", "I_MPI_WAIT_MODE": "0"}
        environment |= {"I_MPI_SPIN_COUNT": "1", "I_MPI_PAUSE_COUNT": "0"}
        yield Place(mpiexec, shape, kept, environment, None, (), ("--ppn", shape.partition("x")[2]), record)
        return
    require_namespaces()
    with tempfile.TemporaryDirectory() as name, namespace_cluster(Path(name) / "cluster", nodes) as cluster:
        hosts = str(cluster.host_file(int(shape.partition("x")[2])))
        there = {**environment, **cluster.environment}
        yield Place(mpiexec, shape, kept, there, cluster, ("-f", hosts), ("--hostfile", hosts), record)
