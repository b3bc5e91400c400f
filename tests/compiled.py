"""What tests compile: once for all of them, and kept from one session to the next under the hash of what makes it."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from colltune.machine.compile import COMMON, is_own, source_directory

# Beside what pytest itself keeps.
STORE = Path(__file__).parents[1] / ".pytest_cache" / "d" / "programs"
NATIVE = Path(__file__).parent / "native"
# The headers of Debian's MPICH warn of MPI_STATUSES_IGNORE.
C_FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-error=stringop-overflow"]
C_FLAGS += [f"-I{source_directory(COMMON)}"]
_DAYS = 14  # without use


def compiled(compiler: str | Path, *arguments: str | Path) -> Path:
    """What ``compiler ARGUMENTS`` makes; a bare name of a source is one of tests/native. Not to be written to."""
    command = [str(compiler), *(str(NATIVE / word) if (NATIVE / word).is_file() else str(word) for word in arguments)]
    sources = [Path(word) for word in command[1:] if Path(word).is_file()]
    included = {*(path.parent for path in sources), *(Path(word[2:]) for word in command if word.startswith("-I"))}
    headers = [path for place in sorted(included) for path in sorted(place.glob("*.h"))]
    # An MPI that is installed anew in the same place has a new compiler.
    known = Path(shutil.which(command[0]) or command[0]).stat()
    digest = hashlib.sha256(repr((command, known.st_mtime_ns, known.st_size)).encode())
    for path in (*sources, *headers):
        digest.update(path.read_bytes())
    name = next((path.stem for path in sources), "made")
    target = STORE / f"{name}-{digest.hexdigest()[:20]}{'.so' if '-shared' in command else ''}"
    with _held(target.name):
        if not is_own(target):
            with tempfile.TemporaryDirectory(dir=STORE) as place:
                made = Path(place) / target.name
                subprocess.run([*command, "-o", str(made)], check=True, timeout=600, cwd=place)
                made.chmod(0o700)
                made.replace(target)
        os.utime(target)
    return target


def program(compiler: str | Path, source: str | Path, *more: str | Path) -> str:
    return str(compiled(compiler, *C_FLAGS, source, *more, "-lm", "-ldl"))


def shared(source: str | Path, *more: str | Path, compiler: str | Path = "cc") -> Path:
    """A library; with an MPI's ``compiler`` it may call that."""
    return compiled(compiler, *C_FLAGS, "-shared", "-fPIC", source, *more, "-lm", "-ldl")


def wrapper(mpicc: str | Path, *flags: str) -> Path:
    """A compiler for the library that does as ``mpicc`` with more ``flags``."""
    text = f'#!/bin/sh\nexec "{mpicc}" {" ".join(flags)} "$@"\n'
    place = STORE / hashlib.sha256(text.encode()).hexdigest()[:20]
    with _held(place.name):
        if not (place / "mpicc").exists():
            place.mkdir()
            (place / "mpicc").write_text(text)
            (place / "mpicc").chmod(0o700)
    return place / "mpicc"


def keeping(compile_: Callable[[Sequence[str], str, Path], None], cache: Path) -> Callable[..., None]:
    """In place of the package's own: what it makes for ``cache`` is made once for all workers, and kept."""

    def compile_or_copy(command: Sequence[str], name: str, target: Path) -> None:
        if target.parent != cache:
            compile_(command, name, target)
            return
        with _held(target.name):
            kept = STORE / target.name
            if not is_own(kept):
                compile_(command, name, kept)
            os.utime(kept)
            with tempfile.TemporaryDirectory(dir=cache) as place:
                Path(shutil.copy(kept, Path(place) / target.name)).replace(target)

    return compile_or_copy


def tidy() -> None:
    """Makes the store, and takes out what no session has used for long."""
    STORE.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in STORE.iterdir():
        if path.is_file() and path.stat().st_mtime < time.time() - _DAYS * 86400:
            path.unlink(missing_ok=True)


@contextmanager
def _held(name: str) -> Iterator[None]:
    """Nobody else makes the program of that ``name`` meanwhile."""
    with (STORE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
