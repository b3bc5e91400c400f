"""An application as it is known again: by its program and the version of that, whatever its input."""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from colltune.mpi.program import given_by_wrapper, is_interpreter, launcher_place
from colltune.mpi.same import linked_mpi

_DIGEST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Application:
    """``name``: of the file of the program that ``command`` starts, ``digest``: of its size and first 64 MiB.

    Both are empty where it cannot be told which file that is.
    """

    command: tuple[str, ...] = ()
    name: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return self.name or "the application"

    def is_same(self, other: "Application") -> bool:
        """By program and version; where either is not known, word for word."""
        if self.digest and other.digest:
            return (self.name, self.digest) == (other.name, other.digest)
        return self.command == other.command


UNKNOWN = Application()


def application_of(command: Sequence[str], environ: Mapping[str, str]) -> Application:
    """What ``command`` starts in ranks: an executable that loads an MPI, or the script of an interpreter.

    Other libraries that it loads and modules that it imports are not looked at.
    """
    environ, launcher = {**environ, **given_by_wrapper(command)}, launcher_place(command)
    words = list(command)[0 if launcher is None else launcher + 1 :]
    place = next((at for at, word in enumerate(words) if is_interpreter(word)), len(words))
    linked = linked_mpi(words[:place], environ)
    behind = words[place + (3 if words[place + 1 : place + 3] == ["-m", "mpi4py"] else 1) :]
    script = next((word for word in behind if not word.startswith("-")), "")
    file = Path(script if linked is None else shutil.which(linked[0], path=environ.get("PATH")) or "")
    head, size = b"", 0
    if ":" not in words and file.is_file():  # one program, and no `python -c` or pipe that only one may read
        with contextlib.suppress(OSError), file.open("rb") as opened:
            head, size = opened.read(_DIGEST_BYTES), file.stat().st_size
    known = (file.name, sha256(b"%d " % size + head).hexdigest()) if head else ()
    return Application(tuple(command), *known)
