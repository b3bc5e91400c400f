"""Each MPI library's own ways behind one interface: what can be chosen, how, and what its files decide."""

from collections.abc import Callable, Mapping, Sequence

from colltune.bench.backends import intelmpi
from colltune.bench.backends.contract import Backend, Recalled, RecordedBackend
from colltune.bench.backends.described import DescribedBackend
from colltune.bench.backends.intelmpi import IntelMpiBackend
from colltune.bench.backends.mpich import MpichBackend
from colltune.bench.backends.openmpi import OpenMpiBackend, find_obstacles
from colltune.core.errors import InputError
from colltune.core.extras import study
from colltune.core.sample import Environment
from colltune.machine.described_mpi import VARIABLE
from colltune.mpi.installation import Installation, Library
from colltune.mpi.libraries import record_of

__all__ = ["Backend", "Recalled", "obstacles_of", "open_backend", "recall_backend"]


# By its version, the back end of an MPI that tells all else itself.
_BY_VERSION: Mapping[str, Callable[[str], Backend]] = {
    Library.OPENMPI: OpenMpiBackend,
    Library.INTELMPI: IntelMpiBackend.of,
    Library.DESCRIBED: DescribedBackend.of,
}
# What goes before the own files of an MPI in an environment and among the options of a command, a sentence each.
_OBSTACLES: Mapping[str, Callable[[Mapping[str, str], Sequence[str]], list[str]]] = {
    Library.OPENMPI: find_obstacles,
    Library.INTELMPI: intelmpi.find_obstacles,
}
_WITHOUT_MPI: Mapping[str, Callable[[], Recalled]] = {
    "simulated": lambda: study("simulated")(),
    "recorded": RecordedBackend,
}


def open_backend(installation: Installation) -> Backend:
    """The backend of an MPI that is here. Raises InputError for one that colltune does not tune."""
    if installation.library is Library.MPICH:
        return MpichBackend.from_library(installation.libmpi, installation.version)
    if installation.library not in _BY_VERSION:
        tuned = [Library.MPICH, *(mpi for mpi in _BY_VERSION if mpi != Library.DESCRIBED)]
        raise InputError(
            f"{installation.mpiexec} is {installation.library} {installation.version}; "
            f"colltune tunes {' and '.join(record_of(mpi).title for mpi in tuned)}",
            f"Give the mpiexec of one of these by --mpiexec, run pip install mpich, or describe yours by {VARIABLE}",
        )
    return _BY_VERSION[installation.library](installation.version)


def recall_backend(tuned: Environment) -> Recalled:
    """Of the MPI that was tuned, which need not be here: for people who ask what a tuning does.

    Raises InputError for no MPI that is tuned, and for a simulated cluster without colltune-study, which knows it.
    """
    if tuned.mpi in _WITHOUT_MPI:
        return _WITHOUT_MPI[tuned.mpi]()
    if tuned.mpi == Library.MPICH:
        return MpichBackend.recalled(tuned)
    if tuned.mpi not in _BY_VERSION:
        raise InputError(f"{tuned.mpi} is no MPI that colltune tunes", "Use the colltune that wrote the tuning")
    return _BY_VERSION[tuned.mpi](tuned.mpi_version)


def obstacles_of(mpi: str, environ: Mapping[str, str], command: Sequence[str] = ()) -> list[str]:
    """What in ``environ``, in the own files of ``mpi``, or among the options of ``command`` goes before its rules."""
    return _OBSTACLES[mpi](environ, command) if mpi in _OBSTACLES else []
