"""colltune's C programs for an MPI: as the wheel brings them, where they fit its library, else compiled by its mpicc.

What is brought is preferred also where a compiler is at hand, so that a compiler changes nothing.
"""

from collections.abc import Sequence
from pathlib import Path

from colltune.machine.compile import AGENT, build
from colltune.machine.prebuilt import build_library, mpi_library, prebuilt, prebuilt_library
from colltune.mpi.installation import Installation


def program_for(mpi: Installation, names: Sequence[str], cache: Path, *, shared: bool = False) -> Path:
    """The program (with ``shared``, the library) of the directories ``names`` of native/.

    Raises InputError where it has to be compiled and cannot be, and where the cache cannot be written.
    """
    ready = prebuilt(mpi.libmpi, names, cache, shared=shared)
    return ready or build(mpi.mpicc, names, cache, shared=shared)


def library_for(mpi: Installation, cache: Path) -> Path:
    """libcolltune.so, which is preloaded into programs. Raises as ``program_for``."""
    return prebuilt_library(mpi.libmpi, cache) or build_library(mpi.mpicc, mpi.libmpi, cache)


def is_brought_for(libmpi: Path) -> bool:
    """Whether this package brings what measures calls of that library."""
    library = mpi_library(libmpi)
    return library is not None and library.fitting(AGENT) is not None


def describe_programs(mpi: Installation) -> str:
    """Where the programs for ``mpi`` are from, for readers."""
    library = mpi_library(mpi.libmpi)
    if library is None or not is_brought_for(mpi.libmpi):
        return f"compiled here by {mpi.mpicc}"
    return f"ready-made in this package, for {library.name}; no compiler is needed"
