"""Each MPI library's own ways behind one interface: what can be chosen, how, and what its files decide."""

from colltune.bench.backends.contract import Backend, Recalled
from colltune.bench.backends.mpich import MpichBackend
from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.bench.backends.recorded import RecordedBackend
from colltune.core.errors import InputError
from colltune.core.extras import study
from colltune.core.sample import Environment
from colltune.emit.mpich.defaults import holds_named_trees
from colltune.mpi.installation import Installation, Library

__all__ = ["Backend", "Recalled", "open_backend", "recall_backend"]


def open_backend(installation: Installation) -> Backend:
    """The backend of an MPI that is here. Raises InputError for one that colltune does not tune."""
    match installation.library:
        case Library.MPICH if holds_named_trees(installation.libmpi):
            raise InputError(
                f"{installation.libmpi} is an MPICH that selects by named trees: it reads the control variables of "
                "algorithms at its start alone, so two algorithms cannot be measured side by side in one job",
                "Tune an MPICH up to 5.0",
            )
        case Library.MPICH:
            return MpichBackend.from_library(installation.libmpi, installation.version)
        case Library.OPENMPI:
            return OpenMpiBackend(installation.version)
        case _:
            raise InputError(
                f"{installation.mpiexec} is {installation.library} {installation.version}; "
                "colltune tunes MPICH and Open MPI",
                "Give the mpiexec of one of these by --mpiexec, or run pip install mpich",
            )


def recall_backend(tuned: Environment) -> Recalled:
    """Of the MPI that was tuned, which need not be here: for people who ask what a tuning does.

    Raises InputError for no MPI that is tuned, and for a simulated cluster without colltune-study, which knows it.
    """
    match tuned.mpi:
        case "mpich":
            return MpichBackend.recalled(tuned)
        case "openmpi":
            return OpenMpiBackend(tuned.mpi_version)
        case "simulated":
            simulated: Recalled = study("simulated")()
            return simulated
        case "recorded":
            return RecordedBackend()
        case _:
            raise InputError(f"{tuned.mpi} is no MPI that colltune tunes", "Use the colltune that wrote the tuning")
