"""Live sources for tests: short measurements, launches that are counted, ranks that share cores in peace."""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario
from colltune.core.space import Point
from colltune.emit.contract import Emitter, variables_for
from colltune.machine.compile import build
from colltune.measure.contract import Effort
from colltune.measure.live import LivePlan, LiveSource
from colltune.measure.request import Settings, resolve_settings
from colltune.measure.watch import Watch
from colltune.mpi.installation import Installation, Library
from colltune.prove.replay.conformance import PROGRAM, replay_arguments
from commands import PATIENCE_S, Done, comes_true, ended_with, run_to_end, shell_script

# Inside a container everyone is root, and there Open MPI refuses to start without these.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Looking for networks takes a second of every launch.
OPENMPI = {**AS_ROOT, "OMPI_MCA_btl": "^ofi"}
# A waiting rank gives its core away: there may be more ranks than cores.
QUIET = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
ON_EITHER = {**OPENMPI, **QUIET}
SHORT = Effort(relative_width=0.5, box_s=0.0005, fewest=3, most=8, warm_up=1)


def colltune(
    *arguments: object, cwd: Path | None = None, timeout: float = PATIENCE_S, code: int | None = None, **variables: str
) -> Done:
    """`colltune ARGUMENTS` as a process of its own, which has to end with ``code``; ranks share cores in peace."""
    environment = {**os.environ, **ON_EITHER, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    command = [sys.executable, "-m", "colltune", *map(str, arguments)]
    done = run_to_end(command, env=environment, cwd=cwd, timeout=timeout)
    return done if code is None else ended_with(code, done)


def crowded(mpi: Installation) -> list[str]:
    """What its launcher is told where there are more ranks than cores."""
    return ["--oversubscribe", "--bind-to", "none"] if mpi.library is Library.OPENMPI else []


def for_ranks(mpi: Installation, variables: Mapping[str, str]) -> list[str]:
    """What its launcher is told of variables of the ranks alone."""
    of_openmpi = mpi.library is Library.OPENMPI
    return [word for k, v in variables.items() for word in (("-x", f"{k}={v}") if of_openmpi else ("-genv", k, v))]


def for_mpi4py(mpi: Installation) -> dict[str, str]:
    """Variables by which mpi4py finds this MPI."""
    return {"MPI4PY_MPIABI": str(mpi.library), "LD_LIBRARY_PATH": str(mpi.libmpi.parent)}


def in_force(emitter: Emitter, directory: Path, rule_sets: Sequence[RuleSet]) -> dict[str, str]:
    """Writes the files of ``rule_sets``; the variables by which the library reads them."""
    files = emitter.emit(rule_sets)
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return variables_for(emitter, directory, files)


def legal_calls(mpicc: Path, ranks: int, max_bytes: int = 2000) -> list[str]:
    """A program of legal calls of every collective on up to ``ranks`` ranks, which ends with 1 for a wrong result."""
    return [str(build(mpicc, PROGRAM)), *replay_arguments(range(1, ranks + 1), short=True, max_bytes=max_bytes)]


def flat(collective: str, algorithm: str, **variables: int) -> list[tuple[str, str]]:
    """The control variables that make MPICH run a flat algorithm, whether it applies or not."""
    prefix = f"MPIR_CVAR_{collective.upper()}_"
    device = {"allgather": ("COMPOSITION", "2"), "alltoall": ("COMPOSITION", "2")}.get(
        collective, ("DEVICE_COLLECTIVE", "0")
    )
    reach = [] if collective == "reduce_scatter" else [(prefix + device[0], device[1])]
    more = [(f"MPIR_CVAR_{name}", str(value)) for name, value in variables.items()]
    return [*reach, (prefix + "INTRA_ALGORITHM", algorithm), *more]


@dataclass
class Jobs:
    """Makes live sources on the MPI under test, and knows how often one was launched."""

    mpi: Installation
    agent: Path
    directory: Path
    events: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._count = self.directory / "launches"
        self.mpiexec = self.directory / "mpiexec"
        shell_script(self.mpiexec, f'echo "$*" >> {self._count}\nexec {self.mpi.mpiexec} "$@"')
        # An mpiexec is known by the compiler beside it.
        shell_script(self.directory / "mpicc", f'exec {self.mpi.mpicc} "$@"')

    @property
    def launches(self) -> int:
        return len(self._commands())

    @property
    def agents_launched(self) -> int:
        return sum("agent-" in command for command in self._commands())

    def _commands(self) -> list[str]:
        return self._count.read_text().splitlines() if self._count.exists() else []

    def resolver(self) -> Callable[[str, Choice], Settings]:
        """Settings for a choice that is written as its algorithm: also for those that the catalogue would not allow."""
        known: dict[tuple[str, Choice], Settings | None] = {}

        def settings(collective: str, choice: Choice) -> Settings:
            if choice == DEFAULT:
                return ()
            if (collective, choice) not in known:
                named = {(collective, choice): flat(collective, choice.algorithm)}
                known.update(resolve_settings(self.agent, named, os.environ))
            found = known[collective, choice]
            assert found is not None, f"{collective} {choice} is unknown to this library"
            return found

        return settings

    def source(self, ranks: int, silence_s: float = 30.0, **variables: str) -> LiveSource:
        environment = {**os.environ, **QUIET, **variables, "COLLTUNE_TEST_JOB": str(self.directory)}
        resolve = self.resolver()
        plan = LivePlan(
            command=[str(self.mpiexec), "-n", str(ranks), str(self.agent)],
            process_environment=environment,
            settings=lambda scenario, choice: resolve(scenario.collective, choice),
            seed=1,
            silence_s=silence_s,
            on_event=lambda kind, facts: self.events.append((kind, facts)),
            watch=Watch.of(os.environ),
        )
        return LiveSource(plan, Environment("mpich", self.mpi.version, self.mpi.build, "test", 1, ranks, "single"))

    def processes(self) -> list[int]:
        """Processes of all launches that are not yet gone: launcher, proxies and ranks, in whatever session."""
        mark = f"COLLTUNE_TEST_JOB={self.directory}".encode()
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (directory / "environ").read_bytes().split(b"\0"):
                    found.append(int(directory.name))
        return found

    def all_end(self, limit_s: float = 60.0) -> bool:
        """Whether all processes are gone after ``limit_s`` seconds at most: what is left behind stays for ever."""
        return comes_true(lambda: not self.processes(), limit_s)

    def numbered(self, collective: str, algorithm: str) -> str:
        """``NAME=INTEGER`` of the control variable that chooses ``algorithm``."""
        name, value = self.resolver()(collective, Choice(algorithm))[-1]
        return f"{name}={value}"


def measure(source: LiveSource, points: Sequence[Point], effort: Effort = SHORT) -> list[Sample]:
    """All samples of ``points``, and the end of the source."""
    try:
        return [sample for _, samples in source.measure(points, effort) for sample in samples]
    finally:
        source.close()


def point(collective: str, ranks: int, size_bytes: int, *algorithms: str) -> Point:
    return Point(Scenario(collective, 1, ranks, size_bytes), tuple(Choice(name) for name in algorithms))
