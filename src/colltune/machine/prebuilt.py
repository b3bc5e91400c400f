"""The C programs that a wheel brings ready-made, for the ABIs that MPI libraries share, and libcolltune.so.

Each was compiled with the headers of an MPI (`packaging/prebuilt.py`) and is linked to none: where the name and the
directory of the MPI's library belong, its file has a placeholder of fixed length. A copy in the cache, with these of
the library that is here, is what runs.
"""

import hashlib
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.machine.compile import (
    ENTRY,
    LIBRARY_PARTS,
    build_source,
    core_beside,
    is_own,
    library_sources,
    source_directory,
)
from colltune.machine.files import LARGEST_BYTES, opened, write_atomically

# In a ready-made file: the name of the MPI's library with its number, of several with a zero behind each; and where
# that library is. No name of a function ends like these, so that no linker keeps it as the end of one.
LIBRARY_PLACE = f"libcolltune-mpi-{'-' * 180}.so"
DIRECTORY_PLACE = f"/colltune-mpi/{'-' * 1000}"
CORE = "core"
# By the name of an MPI's library: the ABI that it has. MPICH's is that of Intel MPI, MVAPICH and Cray's too.
_ABIS = {
    "mpich": re.compile(r"libmpi(?:ch|_(?:cray|gnu|intel|amd|nvidia)\w*)?\.so\.12"),
    "openmpi": re.compile(r"libmpi\.so\.40"),
    "abi": re.compile(r"libmpi_abi\.so\.1"),
}
_OF_DRAFT = b"Intel(R) MPI Library"  # 2021.17: MPI_ERRORS_RETURN has the number that MPI_ERRORS_ABORT has in MPICH 5.0
_OF_MPI = re.compile(r"P?MPI[XR]?_|ompi_|OMPI_")
_PMIX, _OF_OPENMPI = "PMIx_Init", "ompi_mpi_comm_world"  # which the part for Open MPI needs alone; what only that has
_PART = 1 << 16  # bytes of a file that are looked through at a time: more would be new memory each time
_DYNAMIC, OF_LIBRARY, OF_OBJECT = 6, 11, 2  # kinds of sections: what the dynamic linker reads, and symbols
_SONAME = 14  # of entries of the dynamic section


@dataclass(frozen=True, slots=True)
class Symbols:
    """What a library or program of ELF says to the dynamic linker.

    ``name``: under which others ask for it, "" for none. ``places``: of the symbols that it has, the byte of the file
    at which each is listed. ``absent``: those that others are to have.
    """

    name: str
    places: Mapping[str, int]
    absent: frozenset[str]


class _Parts:
    """Of a file with an open descriptor, what is asked for."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor, self._size = descriptor, size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        return os.pread(self._descriptor, max(stop - start, 0), start)

    def holds(self, text: bytes) -> bool:
        return any(text in self[at : at + _PART + len(text)] for at in range(0, self._size, _PART))


def read_symbols(content: bytes | _Parts, symbols: int = OF_LIBRARY) -> Symbols:
    """Of a file of 64 bits, little end first; ``symbols``: in which kind of section. Raises ValueError for another."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("it is no program or library of 64 bits")
    name, places, absent = "", {}, set()
    try:
        table, width, count = struct.unpack("<40xQ10xHH2x", content[:64])
        headers = content[table : table + count * width]
        sections = [struct.unpack_from("<IIQQQQII", headers, number * width) for number in range(count)]
        by_kind = {section[1]: section for section in sections}
        for kind in {_DYNAMIC, symbols} & by_kind.keys():
            start, size, link = by_kind[kind][4:7]
            part, texts = content[start : start + size], content[sections[link][4] : sum(sections[link][4:6])]
            if kind == _DYNAMIC:
                named = [value for tag, value in struct.iter_unpack("<QQ", part) if tag == _SONAME]
                name = _text(texts, named[0]) if named else ""
                continue
            for number, (at, _, _, section, _, _) in enumerate(struct.iter_unpack("<IBBHQQ", part)):
                text = _text(texts, at)
                if section:
                    places[text] = start + 24 * number
                else:
                    absent.add(text)
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"its tables cannot be read: {error}") from None
    return Symbols(name, places, frozenset(absent))


def asked_of_mpi(symbols: Symbols) -> set[str]:
    """What an MPI's library is to have."""
    return {name for name in symbols.absent if _OF_MPI.match(name)}


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start, start + 4096)].decode("latin-1")


@dataclass(frozen=True, slots=True)
class MpiLibrary:
    """An MPI's library, of one of the ABIs. ``functions``: all that it has, its data too."""

    path: Path
    name: str
    abi: str
    functions: frozenset[str]

    def fitting(self, file: str) -> bytes | None:
        """The newest ready-made ``file`` of this ABI that asks for nothing which this library lacks, made to load it.

        None where there is none.
        """
        for path in sorted(ready_made().glob(f"{self.abi}*/{file}")):
            content = path.read_bytes()
            if asked_of_mpi(read_symbols(content)) <= self.functions:
                return filled_in(content, {LIBRARY_PLACE: self.name, DIRECTORY_PLACE: str(self.path.parent)})
        return None


def ready_made() -> Path:
    """The directory of what this package brings: a folder for each ABI, and the library that stands before any."""
    return source_directory(ENTRY).parent / "ready"


def filled_in(content: bytes, values: Mapping[str, str]) -> bytes | None:
    """``content`` with a value for each placeholder; None where a value is longer than its place."""
    for place, value in values.items():
        if len(value.encode()) >= len(place):
            return None
        content = content.replace(place.encode(), value.encode().ljust(len(place), b"\0"))
    return content


@cache
def mpi_library(path: Path) -> MpiLibrary | None:
    """The MPI's library that ``path`` is; None for one of no ABI that is known, or that cannot be read.

    Only its tables are read: a library has tens of MB, and each start asks.
    """
    try:
        with opened(path, LARGEST_BYTES, link=True) as (descriptor, about):
            content = _Parts(descriptor, about.st_size)
            symbols = read_symbols(content)
            abi = next((abi for abi, name in _ABIS.items() if name.fullmatch(symbols.name)), None)
            if abi is None or (abi == "abi" and content.holds(_OF_DRAFT)):
                return None
    except (OSError, ValueError):
        return None
    if not (path.parent / symbols.name).exists():
        return None
    return MpiLibrary(path, symbols.name, abi, frozenset(symbols.places))


def prebuilt(libmpi: Path, names: Sequence[str], cache: Path, *, shared: bool = False) -> Path | None:
    """The program, or library, of the directories ``names`` of native/ for the MPI of ``libmpi``, ready-made.

    None where this package brings none that fits. Raises InputError where the cache cannot be written.
    """
    library, ending = mpi_library(libmpi), ".so" if shared else ""
    made = None if library is None else library.fitting(f"{'+'.join(names)}{ending}")
    return None if made is None else _kept(cache, names[0], ending, {"": made})


def prebuilt_library(libmpi: Path, cache: Path) -> Path | None:
    """libcolltune.so for programs of ``libmpi``, or of the library of the standard ABI beside it; as ``prebuilt``."""
    beside = [path for path in libmpi.parent.glob("libmpi_abi.so.1") if path.resolve() != libmpi]
    libraries = [library for path in (libmpi, *beside) if (library := mpi_library(path)) is not None]
    cores = {library.name: made for library in libraries if (made := library.fitting(f"{CORE}.so")) is not None}
    if not libraries or libraries[0].name not in cores:
        return None
    content = (ready_made() / f"{ENTRY}.so").read_bytes()
    entry = filled_in(content, {LIBRARY_PLACE: "\0".join([*cores, ""])}) or b""
    there = frozenset[str]().union(*(library.functions for library in libraries))
    return _kept(cache, "libcolltune", ".so", {**cores, "": _hidden(entry, there)})


def build_library(mpicc: str | Path, libmpi: Path, cache: Path) -> Path:
    """libcolltune.so, which is preloaded into MPI programs (native/shim/shim.h), compiled for the MPI of ``libmpi``.

    Of its functions those are not to be seen that this MPI has not. Raises InputError as ``build``.
    """
    try:
        with opened(libmpi, LARGEST_BYTES, link=True) as (descriptor, about):
            symbols = read_symbols(_Parts(descriptor, about.st_size))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the MPI library {libmpi}: {error}", "Choose another by --mpiexec") from error
    name = symbols.name or libmpi.name
    core, entry = (
        build_source(mpicc, source, part, cache, ".so").read_bytes()
        for source, part in zip(library_sources(mpicc, name), (LIBRARY_PARTS[0], ENTRY), strict=True)
    )
    if "PMPI_Init" in symbols.places:  # else a library beside it has a part of the functions
        entry = _hidden(entry, frozenset(symbols.places))
    return _kept(cache, "libcolltune", ".so", {name: core, "": entry})


def _hidden(entry: bytes, there: frozenset[str]) -> bytes:
    """The library that is preloaded, without functions of MPI that are not ``there``: a program may ask for them."""
    content = bytearray(entry)
    there = there - {_PMIX} | ({_PMIX} if _OF_OPENMPI in there else set())
    for name, at in read_symbols(entry).places.items():
        if (_OF_MPI.match(name) or name == _PMIX) and name not in there:
            content[at + 6 : at + 16] = bytes(10)  # its section and its address: the dynamic linker passes it over
    return bytes(content)


def _kept(cache: Path, name: str, ending: str, contents: Mapping[str, bytes]) -> Path:
    """The file in the cache with the content of the key ""; those of names of libraries are cores beside it."""
    digest = hashlib.sha256(b"".join(contents.values())).hexdigest()[:20]
    target = cache / f"{name}-{digest}{ending}"
    for library, content in contents.items():
        path = core_beside(target, library) if library else target
        if is_own(path):
            continue
        with on_os_error(f"cannot write to the cache {cache}", "Set COLLTUNE_CACHE to a writable directory"):
            cache.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content, 0o700, durable=False)
    return target
