"""Compiles colltune's C sources with the ``mpicc`` of the MPI that is tuned, once for each MPI build."""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from colltune.core.errors import InputError, on_os_error

# Directories under native/ that libcolltune.so is made of, beside COMMON.
LIBRARY_PARTS = ("shim", "alltoallv")
COMMON = "common"  # the directory that every program and library is made of as well
# And what those programs are made of that time calls: malloc passes through the one, the other sees what else runs.
TIMING_PARTS = ("heap", "load")
_TIMING = frozenset({"agent", "alltoallv_measure"})
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


def build(mpicc: str | Path, name: str, cache: Path | None = None, *, shared: bool = False) -> Path:
    """The program (or, with ``shared``, the library) made from native/``name``; compiled if it is not yet there.

    Cached under the hash of its sources and of what the compiler wrapper would run, so that another MPI, or another
    version of colltune, never meets it. Raises InputError with the compiler's first complaint.
    """
    return _build(mpicc, (name,), cache, (), ".so" if shared else "")


def build_parts(mpicc: str | Path, names: Sequence[str], cache: Path | None = None, *, shared: bool = False) -> Path:
    """The program, or library, made from several directories of native/, named after the first. Raises as ``build``."""
    return _build(mpicc, names, cache, (), ".so" if shared else "")


def build_simulated(smpicxx: str | Path, cache: Path | None = None) -> Path:
    """The program that SimGrid's SMPI runs (native/simulated); compiled if it is not yet there. Raises as ``build``."""
    return _build(smpicxx, ("simulated",), cache, (), "", language=".cpp")


def build_library(mpicc: str | Path, cache: Path | None = None) -> Path:
    """libcolltune.so, which is preloaded into MPI programs (see native/shim/shim.h); compiled if it is not yet there.

    Made from all directories of ``LIBRARY_PARTS`` that there are. It has only those of its functions visible that
    this MPI has. Raises as ``build``.
    """
    parts = [name for name in LIBRARY_PARTS if _has(name)]
    cache = cache or cache_directory(os.environ)
    missing = _missing_functions(build(mpicc, "probe", cache))
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        script.write("{ local: " + " ".join(f"{name};" for name in missing) + " };\n")
        script.flush()
        flags = ("-pthread", "-fvisibility=hidden", *([f"-Wl,--version-script={script.name}"] if missing else []))
        return _build(mpicc, parts, cache, flags, ".so", "\n".join(missing))


def _missing_functions(probe: Path) -> list[str]:
    try:
        done = subprocess.run([str(probe)], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(
            f"a program compiled with this MPI cannot be run here: {error}", "Load the MPI's module, or mend its paths"
        ) from error
    return done.stdout.split()


def _has(name: str) -> bool:
    package = Path(__file__).resolve().parents[1]
    return any((root / name).is_dir() for root in (package / "_native", package.parents[1] / "native"))


def _build(
    mpicc: str | Path,
    names: Sequence[str],
    cache: Path | None,
    more: tuple[str, ...],
    ending: Literal["", ".so"],
    identity: str = "",
    language: Literal[".c", ".cpp"] = ".c",
) -> Path:
    beside = TIMING_PARTS if _TIMING.intersection(names) else ()
    directories = [source_directory(name) for name in (*names, *beside, COMMON)]
    native = directories[0].parent
    sources = sorted(path for directory in directories for path in directory.glob(f"*{language}"))
    headers = sorted(path for directory in [*directories, native / "include"] for path in directory.glob("*.h"))
    try:
        wrapper = subprocess.run(
            [str(mpicc), "-show"], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"the compiler wrapper {mpicc} cannot be run: {error}", "Repair that MPI, or point --mpiexec at another"
        ) from error
    form = ["-shared", "-fPIC"] if ending else []
    flags = [
        *_LANGUAGE[language],
        *_FLAGS,
        *form,
        *more,
        *(f"-I{directory}" for directory in [native / "include", *directories]),
    ]
    digest = hashlib.sha256(f"{mpicc} {wrapper.stdout} {_LANGUAGE[language]} {_FLAGS} {ending} {identity}".encode())
    for path in sorted([*sources, *headers]):
        digest.update(path.read_bytes())
    cache = cache or cache_directory(os.environ)
    stem = "libcolltune" if names[0] == LIBRARY_PARTS[0] else names[0]
    target = cache / f"{stem}-{digest.hexdigest()[:20]}{ending}"
    if is_own(target):
        return target
    _compile([str(mpicc), *flags, *(str(source) for source in sources)], names[0], target)
    return target


def _compile(command: Sequence[str], name: str, target: Path) -> None:
    with on_os_error(f"cannot write to the cache {target.parent}", "Set COLLTUNE_CACHE to a writable directory"):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Compiled beside the target and renamed, so that two jobs that start together never run half a program.
        workplace = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        made = workplace / target.name
        whole = [*command, "-lm", "-ldl", "-o", str(made)]
        run = subprocess.run(whole, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
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
