"""Compiles colltune's C sources with the ``mpicc`` of the MPI that is tuned, once a build, and preloads libraries."""

import hashlib
import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from colltune.core.errors import InputError, on_os_error
from colltune.machine.process import run_launch

PRELOAD = "LD_PRELOAD"
# The name of an MPI library's file, and not that of a tool such as libmpiP.so.
MPI_LIBRARY = r"libmpi(?:ch)?(?:_(?:abi|cray|gnu|intel|amd|nvidia)\w*)?\.so\S*"


def preload_variables(library: Path | str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that preloads ``library`` behind the libraries that ``environment`` preloads.

    So a tool of the user's that is among them sees what it sees without ours. Only an MPI library, which some preload
    for programs in Python, comes after it: before it that would answer all calls.

    If ``library`` is among them already, their order stays.
    """
    already = environment.get(PRELOAD, "")
    names = already.replace(" ", ":").split(":")
    if str(library) in names:
        return {PRELOAD: already}
    mpis = (at for at, name in enumerate(names) if re.fullmatch(MPI_LIBRARY, Path(name).name))
    names.insert(next(mpis, len(names)), str(library))
    return {PRELOAD: ":".join(filter(None, names))}


# Directories under native/ that the core of libcolltune.so is made of, beside COMMON; and that which is preloaded.
LIBRARY_PARTS = ("shim", "alltoallv")
ENTRY = "entry"
COMMON = "common"  # the directory that every program and library is made of as well
_STARTED_S = 600.0  # by then a job has started, or never will
# And what the agent is made of, since it times calls: malloc passes through the one, the other sees what else runs.
AGENT = "agent"
TIMING_PARTS = ("heap", "load")
# Warnings are errors in the tests, not on the machine of a user, whose compiler may know warnings that we do not. But a
# function that is not declared is one that this MPI lacks, and fails when it is called at the latest.
_FLAGS = ("-O2", "-Wall", "-Wextra")
_LANGUAGE = {".c": ("-std=c11", "-Werror=implicit-function-declaration"), ".cpp": ("-std=gnu++17",)}

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def source_directory(name: str) -> Path:
    """Where the sources of the program ``name`` are: in an installed wheel, or in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for root in (package / "_native", package.parents[1] / "native"):
        if (root / name).is_dir():
            return root / name
    raise InputError(f"the C sources of {name!r} are missing from this installation", "Reinstall colltune")


def cache_directory(environment: Mapping[str, str]) -> Path:
    """``COLLTUNE_CACHE``, or ``XDG_CACHE_HOME``/colltune, or ~/.cache/colltune; a temporary one if none can be written.

    On a cluster it must be on a file system that all nodes see, as a home directory usually is. Programs from it run in
    jobs: raises InputError where it is not this user's own, and where others may write to it.
    """
    home = Path(environment.get("HOME", "~")).expanduser()
    asked = environment.get("COLLTUNE_CACHE")
    directory = Path(asked or Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "colltune")
    try:
        return _made_own(directory)
    except OSError as error:
        if asked:
            raise InputError(
                f"cannot write to the cache {directory}: {error.strerror}",
                "Set COLLTUNE_CACHE to a writable directory, and no link",
            ) from error
    try:
        return _made_own(Path(tempfile.gettempdir()) / f"colltune-{os.geteuid()}")
    except OSError as error:
        raise InputError(f"there is no place for a cache: {error}", "Set COLLTUNE_CACHE to a directory") from error


def cache_or_nowhere(environment: Mapping[str, str]) -> Path:
    """``cache_directory``; where that raises InputError, a path below which nothing can be."""
    try:
        return cache_directory(environment)
    except InputError:
        return Path(os.devnull)


def _made_own(directory: Path) -> Path:
    """``directory``, made if it is not there. Raises OSError where it cannot be written, and InputError as above."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if about.st_uid != os.geteuid() or about.st_mode & OTHERS_WRITE:
        whose = "is another user's" if about.st_uid != os.geteuid() else "may be written by others"
        raise InputError(
            f"the cache {directory} {whose}, and what is in it would run in your jobs",
            "Remove it, or set COLLTUNE_CACHE to a directory that you alone can write to",
        )
    with tempfile.TemporaryFile(dir=directory):
        return directory


def scratch_directory(cache: Path, kind: str) -> Path:
    """A new directory of this process in ``cache``, which all nodes see, for files that a job reads when it starts.

    Those of processes of this host that ended long ago without removing theirs are removed.
    """
    mark = f"{kind}-{socket.gethostname()}-"
    for left in cache.glob(f"{mark}*-*"):
        number = left.name.removeprefix(mark).partition("-")[0]
        with suppress(OSError):
            is_old = time.time() - left.stat().st_mtime > _STARTED_S
            if is_old and number.isdecimal() and not Path("/proc", number).exists():
                shutil.rmtree(left)
    return Path(tempfile.mkdtemp(prefix=f"{mark}{os.getpid()}-", dir=cache))


def is_own(path: Path) -> bool:
    """Whether ``path`` is a plain file of this user, no link, to which others may not write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & OTHERS_WRITE


def around_wrapper(mpicc: str | Path, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` for the compiler wrapper ``mpicc``: that of Intel MPI from PyPI has to be told where it lies."""
    return {"I_MPI_ROOT": str(Path(mpicc).resolve().parent.parent), **environment}


def build(mpicc: str | Path, names: str | Sequence[str], cache: Path | None = None, *, shared: bool = False) -> Path:
    """The program (or, with ``shared``, the library) made from directories of native/; compiled if it is not yet there.

    It is named after the first of ``names``, and cached under the hash of its sources and of what the compiler wrapper
    would run, so that another MPI, or another version of colltune, never meets it. Raises InputError with the
    compiler's first complaint.
    """
    names = [names] if isinstance(names, str) else names
    source = Compilation.of(mpicc, names, *(("-shared", "-fPIC") if shared else ()))
    return build_source(mpicc, source, names[0], cache, ".so" if shared else "")


def library_sources(mpicc: str | Path, library: str) -> "tuple[Compilation, Compilation]":
    """Of the core of libcolltune.so, and of what stands before it: for the MPI whose library has that name."""
    core = Compilation.of(mpicc, LIBRARY_PARTS, "-shared", "-fPIC", "-pthread", "-fvisibility=hidden")
    named = (*core.flags[-4:], f'-DCT_MPI_LIBRARY="{library}"', "-Wl,--as-needed")
    return core, Compilation.of(mpicc, (ENTRY,), *named)


def core_beside(library: Path, mpi: str) -> Path:
    """Where the core of libcolltune.so ``library`` is for the MPI whose library is called ``mpi``."""
    return library.with_name(f"{library.stem}.{mpi}.core.so")


@dataclass(frozen=True)
class Compilation:
    """What one program or library is compiled from. ``wrapper``: what the compiler wrapper would run."""

    flags: tuple[str, ...]
    sources: tuple[Path, ...]
    headers: tuple[Path, ...]
    wrapper: str

    @classmethod
    def of(cls, mpicc: str | Path, names: Sequence[str], *more: str) -> "Compilation":
        """Directories under native/; COMMON is in all but the library that is linked to no MPI."""
        beside = TIMING_PARTS if AGENT in names else ()
        directories = [source_directory(name) for name in (*names, *beside, COMMON)]
        made = directories[:-1] if ENTRY in names else directories
        return cls.within(mpicc, made, [directories[0].parent / "include", *directories], ".c", *more)

    @classmethod
    def within(
        cls,
        compiler: str | Path,
        made: Sequence[Path],
        included: Sequence[Path],
        language: Literal[".c", ".cpp"],
        *more: str,
    ) -> "Compilation":
        """All of ``language`` in the directories ``made``, which may include what is in ``included``."""
        try:
            wrapper = run_launch([str(compiler), "-show"], around_wrapper(compiler, os.environ), 60.0)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(
                f"the compiler wrapper {compiler} cannot be run: {error}",
                "Repair that MPI, or point --mpiexec at another",
            ) from error
        return cls(
            (*_LANGUAGE[language], *_FLAGS, *(f"-I{directory}" for directory in included), *more),
            tuple(sorted(path for directory in made for path in directory.glob(f"*{language}"))),
            tuple(sorted(path for directory in included for path in directory.glob("*.h"))),
            wrapper.stdout,
        )

    @property
    def arguments(self) -> list[str]:
        """Of the compiler wrapper."""
        return [*self.flags, *map(str, self.sources)]


def _digest(compiler: str | Path, source: Compilation) -> str:
    """Of all that decides what the compiler makes."""
    own = [flag for flag in source.flags if not flag.startswith("-I")]
    digest = hashlib.sha256(f"{compiler} {source.wrapper} {own}".encode())
    for path in (*source.sources, *source.headers):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def build_source(
    compiler: str | Path, source: Compilation, name: str, cache: Path | None, ending: Literal["", ".so"] = ""
) -> Path:
    """The file ``name`` in the cache, compiled from ``source`` if it is not yet there. Raises as ``build``."""
    target = (cache or cache_directory(os.environ)) / f"{name}-{_digest(compiler, source)}{ending}"
    if not is_own(target):
        compile_source([str(compiler), *source.arguments], name, target)
    return target


def compile_source(command: Sequence[str], name: str, target: Path) -> None:
    """Makes ``target``, which is colltune's ``name``, by ``command``. Raises InputError as ``build``."""
    with on_os_error(f"cannot write to the cache {target.parent}", "Set COLLTUNE_CACHE to a writable directory"):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Compiled beside the target and renamed, so that two jobs that start together never run half a program.
        workplace = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        made = workplace / target.name
        whole = [*command, "-lm", "-ldl", "-o", str(made)]
        run = run_launch(whole, around_wrapper(command[0], os.environ))
        if run.returncode != 0:
            complaint = next((line for line in run.stderr.splitlines() if "error" in line or "not found" in line), "")
            raise InputError(
                f"{command[0]} could not compile colltune's {name}: {complaint or run.stderr.strip()[:200]}",
                "Install a C compiler (Debian: apt-get install gcc libc6-dev), or choose another MPI by --mpiexec",
            )
        made.chmod(0o700)
        made.replace(target)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
