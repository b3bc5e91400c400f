"""Runs an application with libcolltune.so in it: `colltune profile` notes its calls, `run --measure` times them.

What ranks left is gathered, and what an experiment says is kept in the history of the tuning.
"""

import contextlib
import json
import math
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.sample import Choice, format_choice
from colltune.deploy.live_selector import FOLDER
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, live_choices
from colltune.mpi.application import Application
from colltune.profile.application_profile import Profile
from colltune.profile.parts import part_files, read_parts
from colltune.profile.profile_files import preload_command, preload_environment, save_profile
from colltune.session.application.run_child import run_child
from colltune.store.applications import PARTS, RUN, RunRecord, application_runs, begin_run, read_run
from colltune.store.earlier import GAIN
from colltune.store.tuning import Tuning

if TYPE_CHECKING:
    from colltune.prove.in_run.in_application import KindOfCalls
    from colltune.session.application_gain import ApplicationGain


_OUT, _SHARE = "COLLTUNE_MEASURE", "COLLTUNE_MEASURE_SHARE"
_RISK, _KNOWN = "COLLTUNE_EXPLORE_RISK", "COLLTUNE_EXPLORE_KNOWN"


@dataclass(frozen=True)
class MeasuredRun:
    """``variables``: what the ranks need. ``place``: the folder of the history where they write."""

    variables: Mapping[str, str]
    place: Path

    def finish(self) -> "list[ApplicationGain]":
        """What each job of the command measured, in their order, beside the runs in the same environment.

        A run in which no rank left anything leaves no folder either. Raises InputError.
        """
        from colltune.session.application_gain import gain_of

        run = read_run(self.place)
        if not run.jobs:
            with contextlib.suppress(OSError):
                (self.place / RUN).unlink()
                self.place.rmdir()
        record, known = run.record, application_runs(self.place.parents[1])
        runs = [other for other in known if other.record.environment == record.environment]
        return [gain_of(job, record.choices, record.is_candidate, runs) for job in run.jobs]

    def keep(self, gains: "Sequence[ApplicationGain]") -> Path:
        """Writes ``gains`` beside what they were made of; the file of the last one. Raises ColltuneError."""
        target = self.place / GAIN
        for number, gain in enumerate(gains, 1):
            target = self.place / (GAIN if number == len(gains) else f"{number}-{GAIN}")
            with on_os_error(f"cannot write {target}", "Give a writable directory", ColltuneError):
                text = json.dumps({"schema": 1, **_written(gain)}, indent=2, allow_nan=False, default=_written)
                target.write_text(text + "\n", encoding="utf-8")
        return target


@dataclass(frozen=True)
class Exploration:
    """``choices``: by their numbers in the rules in force, and in those of what the run may try.

    ``risk``: of the time in their calls, what trying may cost, 1e-6 to 0.1. ``known``: of what is tried, what earlier
    runs say, as ranks read it. ``resting``: what is in force, and is not compared with the default.
    """

    choices: Mapping[tuple[str, Choice], int]
    risk: float
    known: "Mapping[KindOfCalls, tuple[int, ...]]"
    resting: "Collection[KindOfCalls]" = ()

    @property
    def variables(self) -> dict[str, str]:
        """What the ranks need. Choices that are tried have the numbers behind those in force."""
        known = [(len(self.choices), kind, words) for kind, words in self.known.items()]
        entries = []
        for base, ((collective, *where), choice), words in [*known, *((0, kind, (0,) * 9) for kind in self.resting)]:
            if (number := self.choices.get((collective, choice))) is not None:
                entries.append("/".join(map(str, [base + number, *where, *words])))
        return {_RISK: str(round(1e6 * self.risk)), _KNOWN: ",".join(entries)}


def begin_measuring(
    directory: Path, tuning: Tuning, percent: int, application: Application, exploration: Exploration | None = None
) -> MeasuredRun:
    """The experiment in a program that runs under ``tuning``, of ``directory``, by way of the live selector.

    ``percent``: of the blocks of calls, which run by default at first; 0: proven choices are not compared. Raises
    ColltuneError for a tuning with which nothing can be compared, and for a directory that cannot be written.
    """
    if tuning.summary.reproducible:
        raise InputError(
            "this tuning is for equal bits (--reproducible), and calls by default may add in another order",
            "Run it without --measure",
        )
    name = next((name for name in tuning.files if name.endswith(f"{FOLDER}/{LIVE_FILE}")), None)
    tried = () if exploration is None else tuple(choice for _, choice in exploration.choices)
    choices = tried
    if exploration is None and name and LIVE_VARIABLE in tuning.variables:
        choices = tuple(live_choices(tuning.files[name].decode("ascii")))
    if not choices:
        raise InputError("this tuning has no rule that departs from the default", "Run it without --measure")
    bases = {name: rules.basis for name, rules in tuning.rule_sets.items()}
    record = RunRecord(tuning.environment, (*choices, *tried), bases, percent, application, len(tried))
    place = begin_run(directory, record, time.time())
    variables = {_OUT: str(place.resolve() / PARTS), _SHARE: str(percent)}
    if exploration is not None:
        variables |= exploration.variables
    return MeasuredRun(variables, place)


def _written(value: Any) -> Any:
    """A choice as text, and anything else by its fields, but bounds that are not known."""
    if isinstance(value, Choice):
        return format_choice(value)
    held = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: part for name, part in held.items() if not (isinstance(part, float) and math.isinf(part))}


def parse_risk(text: str) -> float:
    """``"0.1%"`` or ``"0.1"`` -> 0.001. Raises InputError for what is no percentage above 0 and up to 10."""
    match = re.fullmatch(r"(\d{1,2}(?:\.\d+)?)\s*%?", text.strip())
    percent = float(match.group(1)) if match is not None else 0.0
    if not 1e-4 <= percent <= 10.0:
        raise InputError(f"the risk {text!r} is no percentage from 0.0001% to 10%", "Write for example --risk 0.1%")
    return percent / 100.0


def parse_share(text: str) -> int:
    """``"5%"`` or ``"5"`` -> 5 percent. Raises InputError for what is no whole number from 1 to 50."""
    match = re.fullmatch(r"(\d{1,2})\s*%?", text.strip())
    if match is None or not 1 <= int(match.group(1)) <= 50:
        raise InputError(f"the share {text!r} is no whole percentage from 1% to 50%", "Write for example --share 10%")
    return int(match.group(1))


@dataclass(frozen=True)
class ProfiledRun:
    """The application's own ``exit_code`` (128 + the signal that ended it), and its ``profile``.

    ``profile`` is None where no rank left one; ``why_none`` then says why.
    """

    exit_code: int
    profile: Profile | None
    why_none: str = ""


def profile_run(
    command: Sequence[str], out: Path, environment: Mapping[str, str], mpiexec: str | None = None
) -> ProfiledRun:
    """Runs ``command`` with the library in it; the profile is also in ``out``. Raises InputError where it cannot run.

    ``mpiexec``: of the application's MPI, where the command does not start with it.
    """
    from colltune.machine.compile import cache_directory
    from colltune.mpi.detect import mpi_at_hand
    from colltune.mpi.program import launcher_of
    from colltune.mpi.programs import library_for

    if out.is_dir() or not out.resolve().parent.is_dir():
        raise InputError(f"cannot write the profile to {out}", "Give a file in a directory that exists by --out")
    for old in part_files(out):
        old.unlink()
    installation = mpi_at_hand(command, environment, mpiexec=mpiexec)
    library = library_for(installation, cache_directory(environment))
    arguments = [launcher_of(command, installation.mpiexec.parent, environment.get("PATH", "")), *command[1:]]
    arguments = preload_command(arguments, installation.library)
    code = run_child(arguments, preload_environment(library, out, environment))
    try:
        return ProfiledRun(code, gather_profile(out, command, f"{installation.library} {installation.version}"))
    except InputError as error:
        return ProfiledRun(code, None, str(error))


def gather_profile(out: Path, command: Sequence[str], mpi: str) -> Profile:
    """The profile of what the ranks left, which is then in ``out``. Raises InputError where they left nothing."""
    parts = part_files(out)
    profile = replace(read_parts(parts), command=tuple(command), mpi=mpi)
    save_profile(out, profile)
    for part in parts:
        part.unlink()
    return profile
