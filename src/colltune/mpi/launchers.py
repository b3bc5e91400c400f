"""The programs that start MPI programs, by their names, and what each of them is."""

import re
from collections.abc import Mapping
from pathlib import Path

from colltune.mpi.installation import Launcher

# Of a name that each MPI has, only the program itself can say what it is.
_OF_MPIS: Mapping[str, Launcher | None] = {
    "mpiexec": None,
    "mpirun": None,
    "prterun": Launcher.PRRTE,
    "orterun": Launcher.ORTE,
}
_OF_SCHEDULERS: Mapping[str, Launcher] = {
    "srun": Launcher.SRUN,
    "flux": Launcher.FLUX,
    "jsrun": Launcher.JSRUN,
    "aprun": Launcher.GENERIC,
}
# As Debian and others name them, too: mpiexec.mpich, mpirun.openmpi.
_OF_AN_MPI = re.compile(rf"(?:{'|'.join(_OF_MPIS)})(?:[.-][\w.-]+)?")
# What each MPI has, in the order in which it is looked for.
COMMON_NAMES = tuple(name for name, family in _OF_MPIS.items() if family is None)


def is_launcher(program: str) -> bool:
    """Whether ``program`` is, by its name, the launcher of an MPI; those of schedulers are not."""
    return _OF_AN_MPI.fullmatch(Path(program).name) is not None


def scheduler_launcher(program: Path) -> Launcher | None:
    """What ``program`` is where it is, by its name, the launcher of a scheduler."""
    return _OF_SCHEDULERS.get(program.name)


def is_of_mpi(launcher: Launcher) -> bool:
    """Whether an MPI brings the launcher, so that it says which MPI it starts."""
    return launcher not in (*_OF_SCHEDULERS.values(), Launcher.GENERIC)
