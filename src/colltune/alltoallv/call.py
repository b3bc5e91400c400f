"""MPI_Alltoallv by the tuned algorithms, called from a program of mpi4py."""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colltune.core.errors import ColltuneError, InputError
from colltune.machine.compile import cache_directory
from colltune.mpi.detect import find_mpi
from colltune.mpi.libraries import library_in
from colltune.mpi.programs import program_for

_NAMED_MPI = "COLLTUNE_MPIEXEC"


def tuned_alltoallv(comm: Any, sendbuf: Any, recvbuf: Any) -> None:
    """``comm.Alltoallv(sendbuf, recvbuf)`` of mpi4py, by the table that the variable COLLTUNE_ALLTOALLV names.

    Each buffer is ``[data, counts]``, ``[data, counts, type]``, ``[data, (counts, displacements), type]`` or ``[data,
    counts, displacements, type]``; counts and displacements are in elements; without a type, ``data`` is a NumPy array
    and has it. ``sendbuf`` may be MPI.IN_PLACE.

    Collective over ``comm``; the first call of a program must be made by all its ranks. That one loads the algorithms:
    those of a preloaded libcolltune.so, or compiled by the first rank into the cache (COLLTUNE_CACHE), which all nodes
    must see; COLLTUNE_MPIEXEC names the MPI where it is not the nearest. Raises InputError on all ranks where that
    fails, ValueError for counts that do not fit the communicator, and mpi4py's Exception.
    """
    from mpi4py import MPI

    function = _function(comm)
    code = function(*_arguments(MPI, sendbuf, comm), *_arguments(MPI, recvbuf, comm), _handle(MPI, comm))
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)


def _handle(mpi: Any, thing: Any) -> Any:
    """A handle as C has it: an int in MPICH, a pointer in Open MPI."""
    kind: Any = ctypes.c_int if mpi._sizeof(thing) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p
    return kind(kind.from_address(mpi._addressof(thing)).value)  # a copy: `thing` may be gone before the call


def _arguments(mpi: Any, message: Any, comm: Any) -> tuple[Any, ...]:
    """Address, counts, displacements and type of one side."""
    if message is mpi.IN_PLACE:
        return ctypes.c_void_p(int(mpi.IN_PLACE)), None, None, _handle(mpi, mpi.DATATYPE_NULL)
    data, counts, displacements, datatype = _parts(message)
    if datatype is None:
        from mpi4py.util.dtlib import from_numpy_dtype

        datatype = from_numpy_dtype(data.dtype)
    peers = comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()
    if displacements is None:
        displacements = [sum(counts[:peer]) for peer in range(peers)]
    for name, values in (("counts", counts), ("displacements", displacements)):
        if len(values) != peers:
            raise ValueError(f"{len(values)} {name} for {peers} ranks: give one for each rank")
    array = ctypes.c_int * peers
    address = mpi.buffer.frombuffer(data).address
    return ctypes.c_void_p(address), array(*counts), array(*displacements), _handle(mpi, datatype)


def _parts(message: Sequence[Any]) -> tuple[Any, list[int], list[int] | None, Any]:
    data, counts, *rest = message
    displacements = None
    if isinstance(counts, tuple) and len(counts) == 2 and not isinstance(counts[0], int):
        counts, displacements = counts
    elif len(rest) == 2:
        displacements = rest.pop(0)
    datatype = rest[0] if rest else None
    return data, [int(n) for n in counts], None if displacements is None else [int(n) for n in displacements], datatype


_loaded: list[Any] = []  # the function, once found


def _function(comm: Any) -> Any:
    """ct_alltoallv; found together by all ranks of the first communicator that asks."""
    if not _loaded:
        preloaded = ctypes.CDLL(None)
        library = preloaded if hasattr(preloaded, "ct_alltoallv") else ctypes.CDLL(_compiled_by_one(comm))
        _loaded.append(library.ct_alltoallv)
    return _loaded[0]


def _compiled_by_one(comm: Any) -> str:
    path, why = None, ""
    if comm.Get_rank() == 0:
        try:
            path = str(_compile())
        except ColltuneError as error:
            why = str(error)
    path, why = comm.bcast((path, why), root=0)
    if path is None:
        raise InputError(f"the tuned alltoallv cannot be loaded: {why}", f"Name this program's MPI by {_NAMED_MPI}")
    return str(path)


def _compile() -> Path:
    from mpi4py import MPI

    mpi = find_mpi(os.environ.get(_NAMED_MPI), os.environ)
    running = library_in(MPI.Get_library_version().encode())
    if mpi.library is not running:
        raise InputError(f"mpi4py runs on {running} and {mpi.mpiexec} is {mpi.library}'s", "Name the former")
    return program_for(mpi, ("alltoallv",), cache_directory(os.environ), shared=True)
