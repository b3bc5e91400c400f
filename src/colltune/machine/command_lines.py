"""Commands that are printed for the reader to type: they work as they stand."""

import shlex
import shutil
import sys
from pathlib import Path


def colltune_command(*words: object) -> str:
    """``colltune WORDS``, quoted for a shell; with the place of colltune where it is not on PATH."""
    return shlex.join([_program(), *map(str, words)])


def mpiexec_option(mpiexec: str | None) -> list[str]:
    """``--mpiexec`` with that launcher, where it is not the one that commands take without."""
    beside = Path(sys.executable).parent / "mpiexec"
    nearest = str(beside) if sys.prefix != sys.base_prefix and beside.is_file() else shutil.which("mpiexec")
    is_nearest = mpiexec is None or (nearest is not None and Path(nearest).resolve() == Path(mpiexec).resolve())
    return [] if is_nearest else ["--mpiexec", str(mpiexec)]


def use_command(tuned: Path, mpiexec: str = "") -> str:
    """The line that puts ``tuned`` in force for all that the shell starts after it, from whatever directory.

    It names ``mpiexec``, that of the tuning, where the shell would find another or none.
    """
    is_needed = Path(mpiexec).is_file() and not _starts_plain(mpiexec)
    mpi = ["--mpiexec", mpiexec] if is_needed else []
    return f'eval "$({colltune_command("env", *mpi, tuned.absolute())})"'


def run_command(*words: object, mpiexec: str = "") -> str:
    """How to run an application: ``words`` are the tuning and how it comes into force, ``mpiexec`` is that of it.

    Plain ``mpiexec`` where that starts the same: `colltune run` finds it where PATH has none.
    """
    plain = not mpiexec or shutil.which("mpiexec") is None or _starts_plain(mpiexec)
    return colltune_command("run", *words, "--", "mpiexec" if plain else mpiexec, "./app")


def _starts_plain(mpiexec: str) -> bool:
    there = shutil.which("mpiexec")
    return there is not None and Path(there).resolve() == Path(mpiexec).resolve()


def _program() -> str:
    there, beside = shutil.which("colltune"), Path(sys.executable).parent / "colltune"
    return (
        str(beside) if beside.is_file() and (there is None or Path(there).resolve() != beside.resolve()) else "colltune"
    )
