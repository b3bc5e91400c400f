"""One running simulation: a job of SimGrid's SMPI that times and checks collectives on request."""

import contextlib
import os
import select
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import LaunchError
from colltune.machine.process import RunningProgram
from colltune_study.simulated.smpi_cluster import SimulatedCluster

_STARTING_S, _ENDING_S = 120.0, 5.0


@dataclass(frozen=True)
class Simgrid:
    """``smpirun`` of a SimGrid of ``version`` (major, minor), and the program that is simulated."""

    smpirun: Path
    version: tuple[int, int]
    program: Path


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """What the program is asked to run. ``segment`` in bytes, 0 for none; ``k`` is a radix or a window."""

    collective: str
    name: str
    k: int = 2
    segment: int = 0

    def words(self) -> str:
        return f"{self.collective} {self.name} {self.k} {self.segment}"


@dataclass(frozen=True, slots=True)
class Simulated:
    """``sampled``: not all steps of its loops were simulated, and the time of the others was added."""

    time_s: float
    sampled: bool


class SimulationError(Exception):
    """The simulation ended (a deadlock, an exception), did not answer in time, or refused."""


class SmpiProcess:
    """A job on the first ``nodes`` nodes of ``cluster`` with ``ppn`` ranks each. Use ``close`` at the end."""

    def __init__(self, simgrid: Simgrid, cluster: SimulatedCluster, nodes: int, ppn: int) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="colltune-smpi-")
        place = Path(self._place.name)
        (place / "platform.xml").write_text(cluster.platform(), encoding="utf-8")
        (place / "hosts").write_text(cluster.host_file(nodes, ppn), encoding="utf-8")
        self._errors = (place / "errors").open("w+", encoding="utf-8", errors="replace")
        command = [
            *(str(simgrid.smpirun), "-no-privatize"),
            *("-platform", str(place / "platform.xml"), "-hostfile", str(place / "hosts")),
            *settings(cluster, simgrid.version),
            *(str(simgrid.program), str(ppn), *[repr(1e-9 / cluster.memory_gbyte)] * 2),
        ]
        try:
            self._launch = RunningProgram(
                command, os.environ, stdin=subprocess.PIPE, stderr=self._errors, directory=place
            )
        except OSError as error:
            self._place.cleanup()
            raise LaunchError(f"{simgrid.smpirun} cannot be run: {error}", "Repair SimGrid") from error
        self._process = self._launch.process
        self._unread, self._stuck = b"", False
        try:
            ready = self._read(_STARTING_S)
        except SimulationError as error:
            self.close()
            raise LaunchError(
                f"the simulation of {cluster.text} does not start: {error}",
                "Run its smpirun by hand; 3.32 and 4.1 of SimGrid are known to work",
            ) from error
        if ready != f"R {nodes * ppn}":
            self.close()
            raise LaunchError(f"the simulation of {cluster.text} began with {ready!r}", "Update SimGrid")

    def time(self, algorithm: SimulatedCall, size_bytes: int, steps: int, limit_s: float) -> Simulated:
        """``steps`` of each loop over all ranks are simulated at most, 0 for all. Raises SimulationError."""
        answer = self._ask(f"time {algorithm.words()} {size_bytes} {steps}", "T", limit_s)
        return Simulated(float(answer[0]), answer[1] == "1")

    def check(self, algorithm: SimulatedCall, size_bytes: int, limit_s: float) -> int:
        """How many ranks got a wrong result. Raises SimulationError."""
        return int(self._ask(f"check {algorithm.words()} {size_bytes}", "C", limit_s)[0])

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):  # what was not written yet cannot be any more
            self._process.stdin.close()  # which ends a simulation that waits
        if self._launch.wait(0.0 if self._stuck else _ENDING_S) is None:
            self._launch.kill()
        self._process.stdout.close()
        self._errors.close()
        self._place.cleanup()

    def _ask(self, line: str, kind: str, limit_s: float) -> Sequence[str]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SimulationError(self._why()) from error
        words = self._read(limit_s).split()
        if not words or words[0] != kind:
            raise SimulationError(f"{line!r} was answered by {' '.join(words)!r}")
        return words[1:]

    def _read(self, limit_s: float) -> str:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], limit_s)
            if not ready:
                self._stuck = True
                raise SimulationError(f"no answer within {limit_s:g} s")
            more = os.read(descriptor, 65536)
            if not more:
                raise SimulationError(self._why())
            self._unread += more
        line, self._unread = self._unread.split(b"\n", 1)
        return line.decode(errors="replace").strip()

    def _why(self) -> str:
        self._errors.flush()
        self._errors.seek(0)
        text = self._errors.read()
        for sign in ("Deadlock", "deadlock"):
            if sign in text:
                return "a deadlock"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"it ended: {lines[-1][:200]}" if lines else "it ended"


def settings(cluster: SimulatedCluster, version: tuple[int, int]) -> list[str]:
    """SimGrid's options: what the cluster costs per message, and nothing that is calibrated for another network."""
    overhead = f"0:{cluster.overhead_ns * 1e-9!r}:0"
    # 3.32 ends with a segmentation fault on a factor without the size from which it holds.
    factors = ("network/latency-factor", "network/bandwidth-factor") if version >= (4, 0) else ()
    precision = "precision/timing" if version >= (4, 0) else "surf/precision"
    values = {
        "smpi/host-speed": "1Gf",
        "smpi/simulate-computation": "no",
        "smpi/os": overhead,
        "smpi/ois": overhead,
        "smpi/or": overhead,
        "smpi/test": "1e-7",
        "smpi/iprobe": "1e-7",
        "smpi/async-small-thresh": str(cluster.eager_bytes),
        "smpi/send-is-detached-thresh": str(cluster.eager_bytes),
        "contexts/factory": "raw",
        "contexts/guard-size": "0",
        "contexts/stack-size": "256",
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
        **dict.fromkeys(factors or ("smpi/lat-factor", "smpi/bw-factor"), "0:1"),
        precision: "1e-9",
    }
    return [*(f"--cfg={name}:{value}" for name, value in values.items()), "--log=root.thres:warning"]
