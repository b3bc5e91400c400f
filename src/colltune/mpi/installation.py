"""What colltune knows about the MPI that it tunes."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Library(StrEnum):
    MPICH = "mpich"
    OPENMPI = "openmpi"
    INTELMPI = "intelmpi"
    DESCRIBED = "described"  # by its user, in the file that COLLTUNE_MPI names
    UNKNOWN = "unknown"


class Launcher(StrEnum):
    """The family of commands that start MPI programs; each has its own options."""

    HYDRA = "hydra"  # MPICH, Intel MPI, MVAPICH
    PRRTE = "prrte"  # Open MPI from 5.0
    ORTE = "orte"  # Open MPI to 4.1
    SRUN = "srun"
    FLUX = "flux"
    JSRUN = "jsrun"
    GENERIC = "generic"  # a site's own mpiexec: only -n and -ppn are relied upon


@dataclass(frozen=True, slots=True)
class Installation:
    """One MPI: its launcher, its compiler wrapper and its library, seen to belong together.

    ``build`` is the SHA-256 of the library file: two builds of one version may behave differently.
    ``compile_command`` is what the wrapper calls, its compiler first.
    """

    library: Library
    version: str
    launcher: Launcher
    mpiexec: Path
    mpicc: Path
    libmpi: Path
    build: str
    compile_command: tuple[str, ...] = ()

    @property
    def predicted(self) -> Path:
        """Where a tuning lies that was predicted when this MPI was installed, if one was."""
        return self.mpiexec.parents[1] / "share" / "colltune" / "predicted"
