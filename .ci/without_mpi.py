#!/usr/bin/env python3
"""without_mpi.py COMMAND...: runs COMMAND as on a machine without an MPI or a scheduler, and names what it hides.

For root an empty file is mounted over each of these programs and libraries, in a mount namespace of the command's own.
For others, and where root may not mount, PATH has a directory of links in place of each that holds such a program.
An activated environment of this checkout leaves PATH.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_PROGRAM = re.compile(
    r"(mpi(exec|run|cc|cxx|c\+\+|CC|ic?pc|ic?c|icx|fort|f77|f90|f08|chversion|vars)|(orte|osh|p|smpi)run|orte\w+|hydra_\w+"
    r"|ompi_info|opal_wrapper|prte\w*|pmix\w+|osh\w+|smpi\w+|srun|sbatch|salloc|sinfo|scontrol|flux|qsub|pbsdsh|bsub|jsrun|aprun)"
    r"([.-].*)?"
)
_LIBRARY = re.compile(r"=> (\S*/lib(?:mpi|mpich|smpi)[^/]*\.so\S*)$", re.MULTILINE)
# Covers the files before "--" with the first, then becomes the command behind it.
_COVER = 'empty=$1; shift; while [ "$1" != -- ]; do mount --bind "$empty" "$1"; shift; done; shift; exec "$@"'
# Fails at the first name that is a command.
_NONE = 'for name; do ! command -v "$name" || exit 1; done'


def programs(place: Path) -> list[Path]:
    """Those in the directory ``place`` by which an MPI, its compiler or a scheduler would be found."""
    return sorted(path for path in place.iterdir() if _PROGRAM.fullmatch(path.name) and os.access(path, os.X_OK))


def libraries() -> set[Path]:
    """Of MPIs, where the loader finds them by name."""
    ldconfig = shutil.which("ldconfig", path=":".join(SYSTEM))
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout if ldconfig else ""
    return {Path(name) for name in _LIBRARY.findall(listed)}


def directories(path: str) -> list[Path]:
    """Those of ``path`` and of every system that are not of this checkout, in order and once each."""
    named = [Path(word) for word in [*path.split(":"), *SYSTEM] if word]
    there = {place.resolve(): place for place in reversed(named) if place.is_dir()}
    return [place for place in reversed(there.values()) if ROOT not in place.resolve().parents]


def linked(place: Path, hidden: Iterable[Path], to: Path) -> Path:
    """The new directory ``to`` with links to all in ``place`` that is not ``hidden``."""
    to.mkdir(parents=True)
    for path in set(place.iterdir()) - set(hidden):
        (to / path.name).symlink_to(path)
    return to


def may_mount() -> bool:
    """Whether root may, here: a container often forbids it."""
    trial = ["unshare", "-m", "mount", "--bind", __file__, __file__]
    there = os.geteuid() == 0 and shutil.which("unshare") is not None
    return there and subprocess.run(trial, capture_output=True, check=False).returncode == 0


def main(command: Sequence[str]) -> int:
    found = {place: programs(place) for place in directories(os.environ["PATH"])}
    for place, paths in found.items():
        if paths:
            print(f"hidden in {place}:", *(path.name for path in paths), flush=True)
    if not any(found.values()):
        print("nothing to hide: no MPI and no scheduler on PATH", flush=True)
    # By its path, so that an environment that is made now does not begin at a link that will be gone.
    python = shutil.which(os.environ.get("PYTHON", "python3")) or sys.executable
    with tempfile.TemporaryDirectory() as scratch:
        ways, words = list(found), []
        if may_mount():
            empty = Path(scratch, "empty")
            empty.touch()  # not executable, so that nobody finds it on PATH
            files = {path.resolve() for path in (*chain(*found.values()), *libraries()) if path.exists()}
            words = ["unshare", "-m", "sh", "-c", _COVER, "sh", str(empty), *map(str, sorted(files)), "--"]
        else:
            ways = [
                linked(place, paths, Path(scratch, str(number))) if paths else place
                for number, (place, paths) in enumerate(found.items())
            ]
        environment = {**os.environ, "PATH": ":".join(map(str, ways)), "PYTHON": python}
        names = {path.name for path in chain(*found.values())} | {"mpiexec", "mpirun", "mpicc", "srun"}
        subprocess.run([*words, "sh", "-c", _NONE, "sh", *sorted(names)], env=environment, check=True)
        return subprocess.run([*words, *command], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
