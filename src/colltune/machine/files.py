"""Files that are written in one step."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int | None = None) -> None:
    """Whoever reads ``path``, also after a crash of the machine, sees the old content or all of ``data``.

    ``mode``: its permissions, whatever the umask; None leaves them to it. Processes on many nodes may write one path
    at once: one of them wins. Raises OSError, and then leaves nothing behind.
    """
    beside = path.with_name(f".{path.name[:100]}.{socket.gethostname()[:40]}.{os.getpid()}.{secrets.token_hex(4)}.new")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
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
