"""Real users of this machine for the time of a test, and a Python that they may run."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands import run_to_end

# Two sessions on one machine have users of their own.
GROUP = f"ctune{os.getpid()}"
_PATIENCE_S = 240.0
_SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Python:
    """An interpreter that finds colltune: its path, and the variables that it needs."""

    path: Path
    variables: Mapping[str, str]

    def works_for(self, user: str) -> bool:
        """Whether ``user`` may run it."""
        # Looks for the packages and does not load them, which takes seconds of a core.
        find = "from importlib.util import find_spec as f; raise SystemExit(not (f('colltune') and f('numpy')))"
        environment = {**os.environ, **self.variables}
        try:
            done = subprocess.run(
                [self.path, "-c", find],
                env=environment,
                user=user,
                group=GROUP,
                extra_groups=[],
                cwd="/",
                check=False,
                timeout=_PATIENCE_S,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return False
        return done.returncode == 0


@contextmanager
def unix_users(count: int) -> Iterator[Sequence[str]]:
    """So many users in ``GROUP``; what still runs under their names at the end is killed."""
    made: list[str] = []
    subprocess.run(["groupadd", GROUP], check=True)
    try:
        for name in (f"{GROUP}-{number}" for number in range(1, count + 1)):
            subprocess.run(["useradd", "--no-create-home", "--gid", GROUP, name], check=True)
            made.append(name)
        yield made
    finally:
        for name in made:
            subprocess.run(["pkill", "-KILL", "-u", name], check=False)
            subprocess.run(["userdel", name], check=False)
        subprocess.run(["groupdel", GROUP], check=False)


@contextmanager
def python_for(user: str) -> Iterator[Python]:
    """This interpreter where ``user`` may run it; else the same one under another path, by a bind mount.

    An interpreter in root's home (pyenv) is closed to all others. Skips the test where no way works.
    """
    here = Python(Path(sys.executable), {"PYTHONPATH": str(_SOURCE)})
    if here.works_for(user):
        yield here
        return
    with _bound(sys.base_prefix, Path("/tmp") / f"colltune-python-{os.getpid()}") as place:
        path = place / "bin" / Path(sys.executable).resolve().name
        packages = f"{_SOURCE}:{sysconfig.get_path('purelib')}"
        there = Python(path, {"PYTHONPATH": packages, "LD_LIBRARY_PATH": str(place / "lib")})
        if not there.works_for(user):
            pytest.skip(f"other users may not run {Path(sys.executable).resolve()}")
        yield there


@contextmanager
def _bound(directory: str, place: Path) -> Iterator[Path]:
    """``directory`` also at ``place``; skips the test where this machine forbids it."""
    place.mkdir(mode=0o755)
    try:
        done = run_to_end(["mount", "--bind", directory, place])
        if done.returncode != 0:
            pytest.skip(f"other users may not run {Path(sys.executable).resolve()}: {done.stderr.strip()}")
        try:
            yield place
        finally:
            subprocess.run(["umount", "-l", place], check=True)
    finally:
        place.rmdir()
