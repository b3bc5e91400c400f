"""Compiles colltune's C sources with the ``mpicc`` of the MPI that is tuned, once for each MPI build."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from colltune.core.errors import InputError

_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror")


def source_directory(name: str) -> Path:
    """Where the sources of the program ``name`` are: in an installed wheel, or in a checkout."""
    package = Path(__file__).resolve().parent
    for root in (package / "_native", package.parents[1] / "native"):
        if (root / name).is_dir():
            return root / name
    raise InputError(f"the C sources of {name!r} are missing from this installation", "Reinstall colltune")


def cache_directory(environment: Mapping[str, str]) -> Path:
    """``COLLTUNE_CACHE``, or ``XDG_CACHE_HOME``/colltune, or ~/.cache/colltune; a temporary one if none can be written.

    On a cluster it must be on a file system that all nodes see, as a home directory usually is.
    """
    home = Path(environment.get("HOME", "~")).expanduser()
    asked = environment.get("COLLTUNE_CACHE")
    if asked:
        return Path(asked)
    directory = Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "colltune"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return directory
    except OSError:
        return Path(tempfile.gettempdir()) / f"colltune-{os.getuid()}"


def build(mpicc: str | Path, name: str, cache: Path | None = None, *, shared: bool = False) -> Path:
    """The program (or, with ``shared``, the library) made from native/``name``; compiled if it is not yet there.

    Cached under the hash of its sources and of what the compiler wrapper would run, so that another MPI, or another
    version of colltune, never meets it. Raises InputError with the compiler's first complaint.
    """
    directory = source_directory(name)
    sources = sorted(directory.glob("*.c"))
    try:
        wrapper = subprocess.run(
            [str(mpicc), "-show"], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"the compiler wrapper {mpicc} cannot be run: {error}", "Repair that MPI, or point --mpiexec at another"
        ) from error
    digest = hashlib.sha256(f"{mpicc} {wrapper.stdout} {_FLAGS} {shared}".encode())
    for path in sorted([*sources, *directory.glob("*.h"), *(directory.parent / "include").glob("*.h")]):
        digest.update(path.read_bytes())
    cache = cache or cache_directory(os.environ)
    target = cache / f"{name}-{digest.hexdigest()[:20]}{'.so' if shared else ''}"
    if target.exists():
        return target
    _compile(mpicc, [str(source) for source in sources], directory, target, shared)
    return target


def _compile(mpicc: str | Path, sources: list[str], directory: Path, target: Path, shared: bool) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Compiled beside the target and renamed, so that two jobs that start together never run half a program.
        workplace = Path(tempfile.mkdtemp(dir=target.parent))
    except OSError as error:
        raise InputError(
            f"cannot write to the cache {target.parent}: {error.strerror}", "Set COLLTUNE_CACHE to a writable directory"
        ) from error
    try:
        made = workplace / target.name
        form = ["-shared", "-fPIC"] if shared else []
        include = f"-I{directory.parent / 'include'}"
        command = [str(mpicc), *_FLAGS, *form, include, *sources, "-lm", "-ldl", "-o", str(made)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if run.returncode != 0:
            complaint = next((line for line in run.stderr.splitlines() if "error" in line or "not found" in line), "")
            raise InputError(
                f"{mpicc} could not compile colltune's {directory.name}: {complaint or run.stderr.strip()[:200]}",
                "Install a C compiler (Debian: apt-get install gcc libc6-dev), or choose another MPI by --mpiexec",
            )
        made.replace(target)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
