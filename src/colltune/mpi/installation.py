"""What colltune knows about the MPI that it tunes, and the programs that start MPI programs, by their names."""

import re
from collections.abc import Mapping
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


# What each MPI has, in the order in which it is looked for: only the program itself can say what it is.
COMMON_NAMES = ("mpiexec", "mpirun")
_OF_SCHEDULERS: Mapping[str, Launcher] = {
    "srun": Launcher.SRUN,
    "flux": Launcher.FLUX,
    "jsrun": Launcher.JSRUN,
    "aprun": Launcher.GENERIC,
}
# As Debian and others name them, too: mpiexec.mpich, mpirun.openmpi.
_OF_AN_MPI = re.compile(rf"(?:{'|'.join(COMMON_NAMES)}|prterun|orterun)(?:[.-][\w.-]+)?")


@dataclass(frozen=True, slots=True)
class Installation:
    """One MPI: its launcher, its compiler wrapper and its library, seen to belong together.

    ``build`` is the SHA-256 of the library file: two builds of one version may behave differently.
    """

    library: Library
    version: str
    launcher: Launcher
    mpiexec: Path
    mpicc: Path
    libmpi: Path
    build: str

    @property
    def predicted(self) -> Path:
        """Where a tuning lies that was predicted when this MPI was installed, if one was."""
        return self.mpiexec.parents[1] / "share" / "colltune" / "predicted"


def is_launcher(program: str) -> bool:
    """Whether ``program`` is, by its name, the launcher of an MPI; those of schedulers are not."""
    return _OF_AN_MPI.fullmatch(Path(program).name) is not None


def scheduler_launcher(program: Path) -> Launcher | None:
    """What ``program`` is where it is, by its name, the launcher of a scheduler."""
    return _OF_SCHEDULERS.get(program.name)


def is_of_mpi(launcher: Launcher) -> bool:
    """Whether an MPI brings the launcher, so that it says which MPI it starts."""
    return launcher not in (*_OF_SCHEDULERS.values(), Launcher.GENERIC)
