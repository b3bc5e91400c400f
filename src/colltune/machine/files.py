"""Files that are written in one step, and files of others, which are checked before they are read.

What is read is a plain file, below a size, and not a link: a device, a pipe or a file without end in its place costs an
error and no time, and nobody makes us read, and show, a file that only its owner may.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import socket
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

_T = TypeVar("_T")
MIB = 1 << 20
# What is larger is none of our files: of records and rules; of journals, tables and libraries (libmpi.so).
MOST_BYTES, LARGEST_BYTES = 64 * MIB, 2048 * MIB
# Nothing that we read is nested deeper; MPICH reads 32 levels.
DEEPEST = 64
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_GZIP = 31  # zlib's name for a gzip header
_MORE_BYTES = 1 << 16  # than a file is said to have: those of /proc are said to have none
_DIGITS = 20  # of a 64-bit integer with its sign
_LARGEST = 1e18


def read_file(path: Path, most_bytes: int = MOST_BYTES, *, link: bool = False) -> bytes:
    """The bytes of a plain file. Raises OSError, which says so, for anything else, and for over ``most_bytes``.

    ``link``: whether ``path`` itself may be a link: where whoever runs us named it.
    """
    return read_owned(path, most_bytes, link=link)[0]


def read_owned(path: Path, most_bytes: int = MOST_BYTES, *, link: bool = False) -> tuple[bytes, int]:
    """The same, and the number of the user who owns the very file that was read. Raises as ``read_file``."""
    with opened(path, most_bytes, link=link) as (descriptor, about):
        parts: list[bytes] = []
        left = most_bytes + 1
        while left and (part := os.read(descriptor, min(left, about.st_size + _MORE_BYTES))):
            parts.append(part)
            left -= len(part)
        if not left:
            raise OSError(errno.EFBIG, f"it is larger than {most_bytes / MIB:.3g} MiB", str(path))
        return b"".join(parts), about.st_uid


@contextlib.contextmanager
def opened(path: Path, most_bytes: int, *, link: bool) -> Iterator[tuple[int, os.stat_result]]:
    """The descriptor of such a file, to read from, and what is known of it. Raises as ``read_file``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if link else os.O_NOFOLLOW))
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file can have this name", str(path)) from error
    except OSError as error:
        if error.errno == errno.ELOOP and not link:
            raise OSError(errno.ELOOP, "it is a link", str(path)) from None
        raise
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        if about.st_size > most_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {most_bytes / MIB:.3g} MiB", str(path))
        yield descriptor, about
    finally:
        os.close(descriptor)


def read_text(path: Path, most_bytes: int = MOST_BYTES, *, link: bool = False) -> str:
    """The same in UTF-8, with ends of lines as Python has them. Raises UnicodeDecodeError for what is no text."""
    text = read_file(path, most_bytes, link=link).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unpacked(data: bytes, most_bytes: int = MOST_BYTES) -> bytes:
    """What was gzipped. Raises ValueError for what is not, is cut short, or holds more than ``most_bytes``."""
    inflate = zlib.decompressobj(_GZIP)
    try:
        content = inflate.decompress(data, most_bytes)
    except zlib.error as error:
        raise ValueError(f"it cannot be uncompressed ({error})") from None
    if not inflate.eof:
        raise ValueError(f"it is cut short, or holds more than {most_bytes / MIB:.3g} MiB")
    return content


def parse_json(data: bytes | str) -> Any:
    """As ``json.loads``. Raises ValueError also for no text, NaN, and beyond 64-bit integers, 1e18, DEEPEST levels."""
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    try:
        document = json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_constant)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    if _SURROGATE.search(text):
        json.dumps(document, ensure_ascii=False).encode()  # half of a pair of surrogates is no text
    level = [document]
    for _ in range(DEEPEST):
        inner = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        level = [part for node in inner for part in node]
        if not level:
            return document
    raise ValueError(f"it is nested deeper than {DEEPEST} levels")


def read_record(data: bytes | str, kind: type[_T]) -> _T:
    """The value of ``kind``, a type that msgspec knows, in JSON. Raises ValueError with the place of what is wrong."""
    import msgspec  # late: few commands read a record

    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None


def fitted(document: object, kind: type[_T], *, strict: bool = True) -> _T:
    """What ``parse_json`` read as a value of ``kind``. Raises ValueError with the place of what is wrong.

    ``strict``: whether text is no number; False for rows of words.
    """
    import msgspec

    try:
        return msgspec.convert(document, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it holds the integer {digits[:_DIGITS]}..., which is out of range")
    return int(digits)


def _real(digits: str) -> float:
    """No time, ratio or count of ours is larger: what is printed of it would fill pages."""
    if abs(value := float(digits)) > _LARGEST:
        raise ValueError(f"it holds the number {digits[:_DIGITS]}, which is out of range")
    return value


def _constant(name: str) -> float:
    """An infinite bound is none; what is no number is no figure of anything."""
    if name == "NaN":
        raise ValueError("it holds NaN, which is no number")
    return float(name)


def write_atomically(path: Path, data: bytes, mode: int | None = None, *, durable: bool = True) -> None:
    """Whoever reads ``path``, also after a crash of the machine, sees the old content or all of ``data``.

    ``mode``: its permissions, whatever the umask; None leaves them to it. ``durable``: False where a crash of the
    machine may lose it. Processes on many nodes may write one path at once: one of them wins. Raises OSError, and then
    leaves nothing behind.
    """
    beside = path.with_name(f".{path.name[:100]}.{socket.gethostname()[:40]}.{os.getpid()}.{secrets.token_hex(4)}.new")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def sync_directory(directory: Path) -> None:
    """Flushes the names in ``directory`` to the disk, where the file system can: what is new there stays."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
