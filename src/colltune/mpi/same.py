"""Whether a command will use the very MPI that was tuned, and whether that MPI reads the tuning's files.

A selection file of another build can end the job, and one that is named by a variable which the library does not know
is silently without effect. So the library is looked at that the program will load: the one that it is linked with, else
the one of the launcher, else the one that is at hand.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.machine.compile import MPI_LIBRARY
from colltune.mpi.detect import find_library, identify_launcher, mpi_at_hand, run_command
from colltune.mpi.installation import COMMON_NAMES, Installation, Library
from colltune.mpi.libraries import record_of
from colltune.mpi.program import given_by_wrapper, launcher_place
from colltune.mpi.reads import Asked, digest_of, refusal_of

_LINKED = re.compile(rf"\s*{MPI_LIBRARY} => (/\S+)")
# Of the words behind a launcher, so many programs are asked what they load.
_PROGRAMS = 3


@dataclass(frozen=True)
class TunedMpi:
    """The MPI that was tuned, as a command is held against it. ``name``: of the tuning, for messages.

    ``values``: by control variable, the numbers of algorithms in its files.
    """

    name: str
    tuned: Environment
    variables: Mapping[str, str]
    environ: Mapping[str, str]
    values: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def check_command(self, command: Sequence[str]) -> str:
        """Raises InputError where ``command`` would use another MPI, or one that does not read the files.

        Returns what could not be found out, "" for nothing.
        """
        environ = {**self.environ, **given_by_wrapper(command)}
        place = launcher_place(command)
        launcher = command[place] if place is not None else None
        kind = self._require_launcher(launcher, environ)
        library: Path | None
        loaded = linked_mpi(command[0 if place is None else place + 1 :], environ)
        if loaded is not None:
            program, library = loaded
            self._require_build(library, f"{program} loads {library}")
        else:
            library = self._library_of(launcher, kind, environ)
        return self.check_read(library)

    def check_here(self) -> str:
        """The same of whatever program will be started in this environment: by the mpiexec on PATH, if there is one."""
        path = self.environ.get("PATH", "")
        launcher = next((name for name in COMMON_NAMES if shutil.which(name, path=path)), None)
        kind = self._require_launcher(launcher, self.environ)
        return self.check_read(self._library_of(launcher, kind, self.environ))

    def _require_launcher(self, launcher: str | None, environ: Mapping[str, str]) -> Library:
        """The MPI that ``launcher`` is of; UNKNOWN for one of the site's own, or of a scheduler."""
        if launcher is None or self.tuned.mpi == Library.DESCRIBED:
            return Library.UNKNOWN
        library, version = identify_launcher(launcher, environ)
        here = self.tuned
        if library is Library.UNKNOWN:
            return library
        if str(library) != here.mpi or version not in ("", here.mpi_version):
            path = shutil.which(launcher, path=environ.get("PATH", "")) or launcher
            self._refuse(f"{path} starts {library} {version}")
        return library

    def _library_of(self, launcher: str | None, kind: Library, environ: Mapping[str, str]) -> Path | None:
        """The library that belongs to ``launcher``, else to the MPI at hand; of the build that was tuned.

        None where neither can be told. That which the tuning names is looked at then, and not loaded: whoever made the
        tuning chose it.
        """
        path = shutil.which(launcher, path=environ.get("PATH", "")) if launcher is not None else None
        if path is not None:
            library = find_library(Path(path).absolute(), kind, environ)
            if library is not None:
                self._require_build(library, f"{path} belongs to {library}")
                return library
        try:  # of the MPI beside this Python or on PATH, if it is the build that was tuned
            library = mpi_at_hand((), environ, build=self.tuned.mpi_build, compiles=False).libmpi
        except InputError:
            library = None
        if library is None and (named := self.tuned.libmpi):
            if not Path(named).is_file():
                self._refuse(f"its library {named} is not here any more")
            self._require_build(Path(named), f"{named} was put in its place")
        return library

    def _require_build(self, library: Path, what: str) -> None:
        # The library of the standard ABI stands beside the one that was tuned, and reads the same files.
        of_abi = sorted(library.parent.glob("libmpi.so.*[0-9]")) if library.name.startswith("libmpi_abi.") else []
        builds = [digest_of(file) for file in (library, *of_abi)]
        if self.tuned.mpi_build not in builds:
            self._refuse(f"{what} (build {builds[0][:12]})")

    def _refuse(self, difference: str) -> NoReturn:
        here = self.tuned
        raise InputError(
            f"{self.name} was tuned for {here.mpi} {here.mpi_version} (build {here.mpi_build[:12]}), and {difference}",
            f"Use the MPI that was tuned ({here.mpiexec or here.mpi}), or tune this one",
        )

    def check_read(self, library: Path | None) -> str:
        """Raises InputError if ``library`` would ignore the files or end a job at them; returns as above."""
        record = record_of(self.tuned.mpi)
        known = {name: inside for name in self.variables if (inside := record.control_variable(name))}
        if library is None or not known:
            return ""
        files = {name: self.variables[name] for name in known if Path(self.variables[name]).is_absolute()}
        asked = Asked(list(known.values()), self.values, files if record.ends_at_faults else {})
        refused, failure = refusal_of(library, self.tuned.mpi_build, asked, self.environ)
        if refused:
            raise InputError(f"{library} {refused} ({self.name})", "Tune this MPI again, or use another build of it")
        return failure


def require_loaded(program: Path, mpi: Installation, environ: Mapping[str, str]) -> None:
    """Raises InputError where ``program``, compiled for ``mpi``, would load another MPI than that in ``environ``.

    Builds of one ABI have a library of one name: a path of the environment decides then whose it is.
    """
    loaded = linked_mpi([str(program)], environ)
    if loaded is not None and digest_of(loaded[1]) != mpi.build:
        raise InputError(
            f"programs for {mpi.mpiexec} load {loaded[1]} here, and not its own {mpi.libmpi}",
            "Take that out of LD_LIBRARY_PATH and LD_PRELOAD",
        )


def linked_mpi(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Path] | None:
    """The first program among ``words`` that says which MPI it loads, and that library; options come before it."""
    asked = 0
    for word in words:
        if asked == _PROGRAMS:
            break
        # Behind the first program are its own arguments, of which a bare word is no program.
        path = None if word.startswith("-") or (asked and "/" not in word) else shutil.which(
            word, path=environ.get("PATH", "")
        )  # fmt: skip
        if path is None or not _is_elf(Path(path)):
            continue
        asked += 1
        quiet = {name: value for name, value in environ.items() if name != "LD_PRELOAD"}
        try:
            answer = run_command(["ldd", str(Path(path).absolute())], quiet)
        except OSError:
            return None
        for line in answer.text.splitlines():
            if match := _LINKED.match(line):
                return word, Path(match.group(1)).resolve()
    return None


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
