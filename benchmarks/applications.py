"""Programs that benches run with a tuning and without, on this machine or on network namespaces."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from on_cluster import ROOT, NamespaceCluster, namespace_cluster, require_namespaces

OPENMPI = "mpiexec.openmpi"
PLAIN_LINK = "1gbit"


@dataclass(frozen=True)
class Place:
    """``4x2``: four nodes with two ranks each, on links of 1 Gbit/s. ``4x2@100mbit``: on slower ones. ``1x2``: two
    ranks on this machine."""

    nodes: int
    ppn: int
    rate: str

    @classmethod
    def parse(cls, where: str) -> Place:
        match = re.fullmatch(r"(\d+)x(\d+)(?:@(\w+))?", where)
        if match is None:
            sys.exit(f"{where!r} is no shape as 4x2, and no shape with a link as 4x2@100mbit")
        return cls(int(match[1]), int(match[2]), match[3] or PLAIN_LINK)

    def __str__(self) -> str:
        return f"{self.nodes} x {self.ppn}" + ("" if self.rate == PLAIN_LINK else f", {self.rate}")


@dataclass
class Application:
    """``time`` finds the seconds in what the program prints; None takes the whole command."""

    name: str
    where: str
    job: list[str]
    time: str | None
    directory: Path
    tune: list[str]
    cluster: NamespaceCluster | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, command: Sequence[str], variables: Mapping[str, str] | None = None) -> tuple[float, str]:
        """The seconds, and what the program printed."""
        started_s = monotonic()
        inside = list(command) if self.cluster is None else self.cluster.inside(*command)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **self.environment}
        environment |= variables or {}
        done = subprocess.run(
            inside, env=environment, cwd=self.directory, capture_output=True, text=True, timeout=300, check=False
        )
        took_s = monotonic() - started_s
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
            )
        match = None if self.time is None else re.search(self.time, done.stdout)
        return float(match.group(1)) if match else took_s, done.stdout

    def colltune(self, *words: str) -> tuple[float, str]:
        return self.run([sys.executable, "-m", "colltune", *words])


@dataclass(frozen=True)
class Layout:
    """How a job is started there, where it is tuned, on what cluster, under what variables."""

    job: list[str]
    tune: list[str]
    cluster: NamespaceCluster | None
    variables: dict[str, str]


@contextmanager
def layout(directory: Path, where: str, mpi: str, mpiexec: str) -> Iterator[Layout]:
    """``directory``: of the cluster, for as long as it stands. Ends where there can be none."""
    shape = Place.parse(where)
    ranks, ppn = str(shape.nodes * shape.ppn), shape.ppn
    root = {f"OMPI_ALLOW_RUN_AS_ROOT{more}": "1" for more in ("", "_CONFIRM")} | {"OMPI_MCA_mpi_yield_when_idle": "1"}
    if shape.nodes == 1:
        words = ["--bind-to", "none"] if mpi == "openmpi" and mpiexec != OPENMPI else []
        yield Layout([mpiexec, *words, "-n", ranks], ["--mpiexec", mpiexec, "--ppn", str(ppn)], None, root)
        return
    require_namespaces()
    with namespace_cluster(directory / "cluster", shape.nodes, shape.rate) as cluster:
        words = ["-f", str(cluster.host_file(ppn))]
        if mpi == "openmpi":
            slots = directory / "slots"
            slots.write_text("".join(f"{host} slots={ppn}\n" for host in cluster.hosts))
            words = ["--hostfile", str(slots), "--bind-to", "none", "--map-by", f"ppr:{ppn}:node"]
        if mpiexec == OPENMPI:
            # Open MPI 4.1 calls by other names what the cluster says to 5.0.
            root["OMPI_MCA_plm_rsh_agent"] = cluster.environment["PRTE_MCA_plm_ssh_agent"]
            root |= {"OMPI_MCA_oob_tcp_if_include": "eth0", "OMPI_MCA_btl": "self,vader,tcp"}
        tune = ["--mpiexec", mpiexec, "--hostfile", str(cluster.host_file(ppn))]
        yield Layout([mpiexec, *words, "-n", ranks], tune, cluster, {**cluster.environment, **root})
