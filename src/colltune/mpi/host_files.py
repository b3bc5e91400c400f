"""Files that name the nodes of a job whose list is too long for a command line. Only the launcher reads them, here."""

import hashlib
import tempfile
from functools import cache
from pathlib import Path

from colltune.core.errors import LaunchError, on_os_error
from colltune.machine.files import write_atomically


def write_host_file(content: str) -> Path:
    """A file with ``content`` that stays as it is until this process ends. Raises LaunchError."""
    with on_os_error(
        f"cannot write the list of nodes to {tempfile.gettempdir()}", "Make room, or set TMPDIR", LaunchError
    ):
        path = Path(_directory().name) / hashlib.sha256(content.encode()).hexdigest()[:16]
        if not path.exists():
            write_atomically(path, content.encode())
    return path


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Of this process, so that two at work in one place do not write over each other's files."""
    return tempfile.TemporaryDirectory(prefix="colltune-hosts-")
