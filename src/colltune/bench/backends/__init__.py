"""Each MPI library's own ways behind one interface: what can be chosen, how, and what its files decide."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Tuned:
    """An MPI that colltune tunes: its back end where it is here and where it need not be, and what goes before its
    files in an environment and among the options of a command, a sentence each."""

    opened: Callable[[Installation], Backend]
    recalled: Callable[[Environment], Recalled]
    obstacles: Callable[[Mapping[str, str], Sequence[str]], list[str]] = lambda _environ, _command: []


_TUNED: Mapping[str, _Tuned] = {
    Library.MPICH: _Tuned(lambda mpi: MpichBackend.from_library(mpi.libmpi, mpi.version), MpichBackend.recalled),
    Library.OPENMPI: _Tuned(
        lambda mpi: OpenMpiBackend(mpi.version), lambda tuned: OpenMpiBackend(tuned.mpi_version), find_obstacles
    ),
    Library.INTELMPI: _Tuned(
        lambda mpi: IntelMpiBackend.of(mpi.version),
        lambda tuned: IntelMpiBackend.of(tuned.mpi_version),
        intelmpi.find_obstacles,
    ),
    Library.DESCRIBED: _Tuned(
        lambda mpi: DescribedBackend.of(mpi.version),
        lambda tuned: DescribedBackend.of(tuned.mpi_version),
    ),
}
_WITHOUT_MPI: Mapping[str, Callable[[], Recalled]] = {
    "simulated": lambda: study("simulated")(),
    "recorded": RecordedBackend,
}


def open_backend(installation: Installation) -> Backend:
    """The backend of an MPI that is here. Raises InputError for one that colltune does not tune."""
    if installation.library not in _TUNED:
        raise InputError(
            f"{installation.mpiexec} is {installation.library} {installation.version}; "
            f"colltune tunes {' and '.join(record_of(mpi).title for mpi in _TUNED if mpi != Library.DESCRIBED)}",
            f"Give the mpiexec of one of these by --mpiexec, run pip install mpich, or describe yours by {VARIABLE}",
        )
    return _TUNED[installation.library].opened(installation)


def recall_backend(tuned: Environment) -> Recalled:
    """Of the MPI that was tuned, which need not be here: for people who ask what a tuning does.

    Raises InputError for no MPI that is tuned, and for a simulated cluster without colltune-study, which knows it.
    """
    if tuned.mpi in _WITHOUT_MPI:
        return _WITHOUT_MPI[tuned.mpi]()
    if tuned.mpi not in _TUNED:
        raise InputError(f"{tuned.mpi} is no MPI that colltune tunes", "Use the colltune that wrote the tuning")
    return _TUNED[tuned.mpi].recalled(tuned)


def obstacles_of(mpi: str, environ: Mapping[str, str], command: Sequence[str] = ()) -> list[str]:
    """What in ``environ``, in the own files of ``mpi``, or among the options of ``command`` goes before its rules."""
    return _TUNED[mpi].obstacles(environ, command) if mpi in _TUNED else []
