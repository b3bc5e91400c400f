"""Where the non-uniform all-to-all is measured: launches of a program of its own on the whole job."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from colltune.alltoallv.lookup_table import COLLECTIVE
from colltune.alltoallv.samples import AlltoallvSource
from colltune.bench.contract import Place
from colltune.bench.workbench import Workbench
from colltune.core.sample import Environment
from colltune.machine.compile import build_parts, cache_directory
from colltune.measure.contract import Source
from colltune.measure.watch import Watch, our_process


class PatternLaunch(Source, Protocol):
    """A launch whose seed has drawn the blocks."""

    def set_up_s(self) -> float:
        """Starts the job. Seconds that a communicator takes before its first call by a table; NaN if the job ends."""
        ...


class PatternBench(Place, Protocol):
    """What tuning the all-to-all asks of a job: less than `Bench`, for nothing is in a catalogue."""

    def launch(self, seed: int, number: int) -> PatternLaunch:
        """A fresh launch, which its samples know by ``number``."""
        ...


@dataclass(frozen=True)
class JobPatterns:
    """A PatternBench on a real job."""

    workbench: Workbench
    program: Path
    matrices: Sequence[Path] = ()  # as recorded.write_matrices wrote them

    @classmethod
    def on(cls, workbench: Workbench, matrices: Sequence[Path] = ()) -> "JobPatterns":
        """Compiles the program. Raises InputError where that cannot be done."""
        cache = cache_directory(workbench.process_environment)
        program = build_parts(workbench.installation.mpicc, ("alltoallv_measure", COLLECTIVE), cache)
        return cls(workbench, program, matrices)

    @property
    def environment(self) -> Environment:
        return self.workbench.environment

    @property
    def nodes(self) -> int:
        return self.workbench.nodes

    @property
    def ppn(self) -> int:
        return self.workbench.ppn

    @property
    def watch(self) -> Watch:
        return self.workbench.watch

    def now_s(self) -> float:
        return self.workbench.now_s()

    def launch(self, seed: int, number: int) -> AlltoallvSource:
        command = self.workbench.command([str(self.program), *map(str, self.matrices)])
        variables = {**self.workbench.process_environment, **command.environment, **our_process()}
        return AlltoallvSource(self.environment, command.argv, variables, seed, number, self.workbench.watch)
