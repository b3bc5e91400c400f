"""One campaign at a time in a tuning directory, also on file systems without locks and across nodes.

The lock is a file that names its owner, made in one step by a hard link. Whether the owner is alive is known from its
process number on the same system, and from the age of the file elsewhere: the owner touches the file regularly.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.machine.files import read_file, read_record

LOCK = "tuning.lock"
_TOUCH_EVERY_S = 10.0
# After so many seconds without a touch, by the clock of the file system, the owner is taken to be dead.
_STALE_AFTER_S = 90.0
_ATTEMPTS = 5


@dataclass(frozen=True)
class Owner:
    """Who holds a lock.

    ``system``: the boot and process namespace of ``pid``. ``began``: when the process began, as numbers are used again.
    """

    host: str
    system: str
    pid: int
    began: str

    @classmethod
    def here(cls) -> "Owner":
        return cls(socket.gethostname(), _system(), os.getpid(), _began(os.getpid()) or "")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Holds the lock of ``directory``, which must exist. Raises InputError where another process is tuning into it.

    And where it cannot be written.
    """
    path, owner = directory / LOCK, Owner.here()
    with on_os_error(f"cannot write {path}", "Make room, or give another directory by --out"):
        _take(path, owner, directory)
    done = threading.Event()
    toucher = threading.Thread(target=_touch, args=(path, done), daemon=True)
    toucher.start()
    try:
        yield
    finally:
        done.set()
        toucher.join()
        with contextlib.suppress(OSError):
            if _read(path) == owner:
                path.unlink()


def _take(path: Path, owner: Owner, directory: Path) -> None:
    for _ in range(_ATTEMPTS):
        if _make(path, owner):
            return
        held = _read(path)
        if held is not None and _is_alive(path, held):
            raise InputError(
                f"{directory} is being tuned by process {held.pid} on {held.host}",
                f"Wait for it to end, or give another directory by --out (if it is gone, delete {path})",
            )
        _remove_stale(path, held)
    raise InputError(f"{path} is the lock of a process that has ended, and cannot be replaced", "Delete that file")


def _make(path: Path, owner: Owner) -> bool:
    """Makes the lock file; False where it already exists."""
    beside = path.with_name(f"{path.name}.{owner.host}.{owner.pid}")
    beside.write_text(json.dumps(asdict(owner)), encoding="utf-8")
    try:
        os.link(beside, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(owner)))
    finally:
        beside.unlink(missing_ok=True)
    return True


def _read(path: Path) -> Owner | None:
    """The owner that the file names; None where it is gone or cannot be read."""
    try:
        return read_record(read_file(path), Owner)
    except (OSError, ValueError):
        return None


def _remove_stale(path: Path, held: Owner | None) -> None:
    """Removes the lock file of ``held``, unless another owner has replaced it meanwhile."""
    aside = path.with_name(f"{path.name}.stale.{os.getpid()}")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    if _read(aside) != held:
        with contextlib.suppress(OSError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)


def _is_alive(path: Path, held: Owner) -> bool:
    if held.system == _system():
        return _began(held.pid) == held.began
    try:
        probe = path.with_name(f"{path.name}.probe.{os.getpid()}")
        probe.write_bytes(b"")
        now_s = probe.stat().st_mtime
        probe.unlink()
        return now_s - path.stat().st_mtime < _STALE_AFTER_S
    except OSError:
        return True


def _touch(path: Path, done: threading.Event) -> None:
    while not done.wait(_TOUCH_EVERY_S):
        with contextlib.suppress(OSError):
            os.utime(path)


def _system() -> str:
    """The boot and the process namespace, within which a process number means one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _began(pid: int) -> str | None:
    """When a process began, in ticks of the kernel; None where it has ended, also if its parent has yet to wait."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
