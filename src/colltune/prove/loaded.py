"""Whether a tuning was in force while an application ran, by evidence from the library or from the kernel.

Since 5.0 MPICH names the selection files that it loaded, in a summary that rank 0 prints to its standard output in
MPI_Init if MPIR_CVAR_DEBUG_SUMMARY is set. Older releases and Open MPI have no such lines; for these the evidence is
that the files were opened on this node while the application ran.
"""

import ctypes
import os
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

SUMMARY_VARIABLE = "MPIR_CVAR_DEBUG_SUMMARY"
# The name of a file in the summary, by the variable that asks for the file.
_NAMES = {
    "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "MPIR",
    "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "MPID",
    "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE": "MPID/shm",
}

# What mpiexec -l puts in front of a line, and in front of a newline that was written by itself.
_LABELS = re.compile(rb"^(?:\[\d+\] ?)+|(?:\[\d+\] ?)+$")
_LABEL_BEGUN = re.compile(rb"\[\d*\]?")
_STARTS = (
    b"==== UCX netmod Capability",
    b"==== Capability set configuration",
    b"==== Various sizes and limits",
    b"==== collective selection",
    b"Required minimum FI_VERSION: ",
    b"provider: ",
)
_START = re.compile(b"(?:" + b"|".join(map(re.escape, _STARTS)) + b").*")
_LOADED = re.compile(rb"(MPIR|MPID(?:/shm)?): (.*)")
_LAST_BUT_ONE = re.compile(rb"sizeof\(MPIR_Datatype\): .*")
_SUMMARY = re.compile(
    rb"(?:=+(?: [\w ]+ =+)?"
    + rb"|(?:MPIDI_\w+|sizeof\(\w+\)|max_\w+|[tr]x_iov_limit|rma_iov_limit|tag_bits|num_vcis|num_nics): .*"
    + rb"|(?:MPIR_CVAR_DEVICE_COLLECTIVES|MPI[RD](?:/shm)?(?: \(GPU\))?|MAXIMUM SUPPORTED RANKS|MAXIMUM TAG): .*"
    + rb"|(?:error checking|QMPI|debugger support|thread level|thread CS|threadcomm) *: .*"
    + rb"|(?:libfabric )?provider: .*|Required minimum FI_VERSION: .*|MPICH \d[^ ]* - .*)"
)


def has_summary(mpi: str, version: str) -> bool:
    """Whether this library tells by itself which files it loaded."""
    return mpi == "mpich" and int(version.partition(".")[0]) >= 5


class SummaryFilter:
    """Removes the summary from an output, and keeps the names of selection files.

    ``loaded``: one mapping per MPI job that was seen, from "MPIR" and "MPID" to the file, or to the name of the
    library's own tree. Lines of the application that come in the midst of a summary are passed on.
    """

    def __init__(self) -> None:
        self.loaded: list[dict[str, str]] = []
        self._partial = b""
        self._inside = False
        self._ends_next = False

    def feed(self, data: bytes) -> bytes:
        """Returns the application's part of ``data`` and of what was held back before. Its output is not delayed."""
        *lines, self._partial = (self._partial + data).split(b"\n")
        passed = b"".join(line + b"\n" for line in lines if not self._is_summary(line))
        if not self._inside and not _may_start(self._partial):
            passed, self._partial = passed + self._partial, b""
        return passed

    def close(self) -> bytes:
        """Returns what was held back when the output ended."""
        rest, self._partial = self._partial, b""
        return rest

    def _is_summary(self, labelled: bytes) -> bool:
        line = _LABELS.sub(b"", labelled)
        if not self._inside and _START.fullmatch(line):
            self._inside, self._ends_next = True, False
            self.loaded.append({})
        if not self._inside or not _SUMMARY.fullmatch(line):
            return False
        match = _LOADED.fullmatch(line)
        if match:
            self.loaded[-1][match.group(1).decode()] = os.fsdecode(match.group(2))
        self._inside = not self._ends_next
        self._ends_next = _LAST_BUT_ONE.fullmatch(line) is not None
        return True


def _may_start(partial: bytes) -> bool:
    """Whether a line that begins with ``partial`` may be the first of a summary."""
    if not partial or _LABEL_BEGUN.fullmatch(partial):
        return bool(partial)
    text = _LABELS.sub(b"", partial)
    return any(start.startswith(text) or text.startswith(start) for start in _STARTS)


class FileWatch:
    """Watches which of ``paths`` are opened on this node from now on (inotify). Use as a context manager."""

    _IN_OPEN = 0x20
    _NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC

    def __init__(self, paths: Iterable[Path]) -> None:
        self.failure = ""
        self._paths: dict[int, Path] = {}
        self._wanted = list(paths)
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self._descriptor = libc.inotify_init1(self._NONBLOCK_CLOEXEC)
            for path in self._wanted:
                watch = libc.inotify_add_watch(self._descriptor, os.fsencode(path), self._IN_OPEN)
                if watch < 0:
                    self.failure = f"{path} cannot be watched: {os.strerror(ctypes.get_errno())}"
                self._paths[watch] = path
        except (OSError, AttributeError) as error:
            self.failure = f"this system cannot watch files: {error}"
        return self

    def opened(self) -> set[Path]:
        """Those that were opened. To be called once."""
        files: set[Path] = set()
        while True:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except OSError:  # nothing more, or nothing was ever watched
                return files
            # An event of a file, and not of a directory, is the watch, a mask, a cookie and no name.
            files |= {self._paths[watch] for watch, *_ in struct.iter_unpack("iIII", data) if watch in self._paths}

    def __exit__(self, *_details: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class LoadEvidence:
    """Whether a tuning was in force, and the evidence, or what is missing of it, in words."""

    proven: bool
    text: str


def files_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables of a tuning that name a file; others are switches."""
    return {name: value for name, value in variables.items() if value.startswith("/")}


def judge(
    variables: Mapping[str, str], loaded: Sequence[Mapping[str, str]], opened: set[Path], watch_failure: str = ""
) -> LoadEvidence:
    """``variables``: those that ask for the files; ``loaded``: of SummaryFilter; ``opened``: of FileWatch."""
    variables = files_of(variables)
    files = [Path(value) for value in variables.values()]
    shown = " and ".join(map(str, files))
    spoken = [job for job in loaded if job]
    if spoken:
        for job in spoken:
            for variable, path in variables.items():
                if variable not in _NAMES:
                    continue  # a file that is not MPICH's
                there = job.get(_NAMES[variable], "nothing")
                if there != path and os.path.realpath(there) != os.path.realpath(path):
                    return LoadEvidence(False, f"MPICH says that it loaded {there} where {path} was due")
        jobs = "" if len(spoken) == 1 else f" in each of {len(spoken)} jobs"
        return LoadEvidence(True, f"MPICH says that it loaded {shown}{jobs}")
    missing = [path for path in files if path not in opened]
    if not missing:
        return LoadEvidence(
            True, f"the kernel saw {shown} opened on this node while the command ran; the library itself did not say"
        )
    if watch_failure:
        return LoadEvidence(False, f"the library did not say what it loaded, and {watch_failure}")
    names = " and ".join(map(str, missing))
    return LoadEvidence(False, f"the library did not say what it loaded, and nobody opened {names} on this node")
