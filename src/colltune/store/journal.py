"""The journal of a campaign: append-only, of one environment, and readable after any crash.

When ``append`` returns, the operating system has the samples: a crash of this process loses none of them, and a crash
of the machine loses at most the last second. A record that was cut off while it was written is removed when the
journal is next opened.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from colltune.core.errors import ColltuneError, EnvironmentMismatchError, InputError, on_os_error
from colltune.core.extras import __version__
from colltune.core.sample import Environment, Sample
from colltune.machine.files import LARGEST_BYTES, read_file, sync_directory
from colltune.store.records import FORMAT, Fact, Header, Note, Record, RecordError, could_be_torn_header, decode, encode

# A crash of the whole machine loses at most this many seconds of samples.
_SYNC_PERIOD_S = 1.0
_NO_LOCKS_HERE = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL})
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True)
class JournalContents:
    """What a journal holds, in the order in which it was written."""

    environment: Environment
    samples: tuple[Sample, ...]
    notes: tuple[Note, ...]


def read_journal(path: Path) -> JournalContents:
    """Reads a journal for a report, without locking or repairing it.

    Raises InputError for a file that cannot be read, that is not a journal, or that is damaged before its end.
    """
    header, records, _ = _parse(_read_bytes(path), path)
    if header is None:
        raise InputError(f"{path} holds no complete header, and so no samples", "Delete it, or resume its campaign")
    return JournalContents(
        environment=header.environment,
        samples=tuple(record for record in records if isinstance(record, Sample)),
        notes=tuple(record for record in records if isinstance(record, Note)),
    )


class Journal:
    """An open journal, to which samples are appended.

    Made by ``create`` or ``open``. Holds a lock on the file until it is closed.
    """

    def __init__(self, path: Path, descriptor: int, clock: Callable[[], float]) -> None:
        self.path = path
        self._descriptor = descriptor
        self._samples: list[Sample] = []
        self._end = 0
        self._clock = clock
        self._synced_s = clock()

    @classmethod
    def create(cls, path: Path, environment: Environment, *, clock: Callable[[], float] = time.monotonic) -> Self:
        """Begins a new journal. Raises InputError where the file is already there or cannot be made."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            if os.path.lexists(path):
                what = f"there is already a journal at {path}"
                raise InputError(what, "Go on with it by --resume, or give another directory") from error
            raise InputError(
                f"cannot make the journal {path}: {error.strerror}", "Give a writable directory"
            ) from error
        journal = cls._locked(path, descriptor, clock)
        with _closing_on_error(journal):
            journal._write(encode(Header(FORMAT, __version__, environment)))
            journal._sync()
            sync_directory(path.parent)
        return journal

    @classmethod
    def open(cls, path: Path, environment: Environment, *, clock: Callable[[], float] = time.monotonic) -> Self:
        """Opens a journal to append to it: reads its samples, and removes an incomplete record at its end.

        Raises EnvironmentMismatchError for a journal of another environment; InputError for no journal, a damaged
        one, or one that another process is writing.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError as error:
            raise InputError(f"there is no journal at {path}", "Leave --resume out to begin one") from error
        except OSError as error:
            raise InputError(f"cannot open the journal {path}: {error.strerror}", "Give a writable file") from error
        journal = cls._locked(path, descriptor, clock)
        with _closing_on_error(journal):
            journal._replay(environment)
        return journal

    @classmethod
    def begin(cls, path: Path, environment: Environment, resume: bool) -> Self:
        """A new journal, or with ``resume`` the one that is there, if any. Raises as ``create`` and ``open`` do."""
        return cls.open(path, environment) if resume and path.exists() else cls.create(path, environment)

    @classmethod
    def _locked(cls, path: Path, descriptor: int, clock: Callable[[], float]) -> Self:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # Some parallel file systems have no locks: there the journal is used without one.
            if error.errno not in _NO_LOCKS_HERE:
                os.close(descriptor)
                raise InputError(
                    f"another process is writing the journal {path}", "Wait for it to end, or give another directory"
                ) from error
        return cls(path, descriptor, clock)

    def _replay(self, environment: Environment) -> None:
        data = _read_bytes(self.path)
        header, records, end = _parse(data, self.path)
        if header is not None:
            require_same(header.environment, environment, self.path)
        if end < len(data):
            os.ftruncate(self._descriptor, end)
        self._end = end
        if header is None:
            self._write(encode(Header(FORMAT, __version__, environment)))
        elif not data[:end].endswith(b"\n"):
            self._write(b"\n")  # the record is whole by its checksum; only its newline was cut off
        self._sync()
        self._samples = [record for record in records if isinstance(record, Sample)]

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Every sample, the replayed ones first."""
        return tuple(self._samples)

    def append(self, samples: Sequence[Sample]) -> None:
        """Writes ``samples``; they are with the operating system when this returns.

        Raises ColltuneError where the disk is full or fails: then none of ``samples`` is in the file, and all
        earlier ones are.
        """
        self._write(b"".join(encode(sample) for sample in samples))
        self._samples.extend(samples)
        if self._clock() - self._synced_s >= _SYNC_PERIOD_S:
            self._sync()

    def note(self, kind: str, facts: Mapping[str, Fact]) -> None:
        """Writes an event, as ``append`` writes a sample."""
        self._write(encode(Note(kind, dict(facts))))

    def close(self) -> None:
        """Flushes to the disk and releases the lock. May be called twice."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise self._failure(error) from error
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        if self._descriptor < 0:
            raise ValueError(f"the journal {self.path} is closed")
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # a full disk takes a part first and refuses the rest
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # the next open removes what is half-written
                os.ftruncate(self._descriptor, self._end)
            raise self._failure(error) from error
        self._end += len(data)

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise self._failure(error) from error
        self._synced_s = self._clock()

    def _failure(self, error: OSError) -> ColltuneError:
        kept = f"the {len(self._samples)} samples before are in the file"
        if error.errno in _DISK_FULL:
            what = f"no space is left for the journal {self.path} ({error.strerror}); {kept}"
            return ColltuneError(what, "Make room, then go on by --resume")
        return ColltuneError(f"cannot write the journal {self.path}: {error.strerror}; {kept}", "Go on by --resume")


@contextlib.contextmanager
def _closing_on_error(journal: Journal) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(ColltuneError):
            journal.close()
        raise


def _read_bytes(path: Path) -> bytes:
    with on_os_error(f"cannot read the journal {path}", "Give the path of a journal"):
        return read_file(path, LARGEST_BYTES, link=True)


def _parse(data: bytes, path: Path) -> tuple[Header | None, list[Record], int]:
    """The header (None where it was cut off), the records after it, and where the complete records end."""
    lines = data.split(b"\n")
    tail = lines.pop()
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        records.append(_record(line, number, path))
    end = len(data) - len(tail)
    if tail:
        try:
            records.append(_checked(decode(tail), len(lines) + 1, path))
            end = len(data)
        except RecordError:
            if not records and not could_be_torn_header(tail):
                raise InputError(f"{path} is not a journal of colltune", "Give the path of a journal") from None
    if not records:
        return None, [], end
    header = records[0]
    assert isinstance(header, Header), "checked by _checked"
    return header, records[1:], end


def _record(line: bytes, number: int, path: Path) -> Record:
    try:
        return _checked(decode(line), number, path)
    except RecordError as error:
        if number == 1:
            raise InputError(f"{path} is not a journal of colltune: line 1: {error}", "Give another file") from None
        raise InputError(
            f"{path} is damaged at line {number}: {error}",
            f"To keep what comes before it: head -n {number - 1} {path} > repaired.jsonl",
        ) from None


def _checked(record: Record, number: int, path: Path) -> Record:
    """Raises RecordError for a header on another line than the first, InputError for one of a later format."""
    if isinstance(record, Header) != (number == 1):
        raise RecordError("the header must be on line 1, and only there")
    if isinstance(record, Header) and record.format != FORMAT:
        raise InputError(
            f"{path} has the journal format {record.format}, written by colltune {record.colltune_version}; "
            f"this is colltune {__version__}, which reads format {FORMAT}",
            "Use the colltune that wrote it",
        )
    return record


def require_idle(path: Path) -> None:
    """Raises InputError where another process is writing the journal."""
    Journal._locked(path, os.open(path, os.O_RDONLY), time.monotonic).close()


def require_same(there: Environment, here: Environment, path: Path) -> None:
    """Raises EnvironmentMismatchError, with what differs, for measurements that must not be mixed."""
    differences = [f"{name} is {then} there and {now} here" for name, then, now in there.differences(here)]
    if differences:
        raise EnvironmentMismatchError(
            f"the journal {path} was measured in another environment: {'; '.join(differences)}",
            "Give another directory for this environment, or resume in a job like the one that began it",
        )
