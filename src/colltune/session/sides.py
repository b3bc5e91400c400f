"""The two sides of a comparison, as the user names them: nothing, settings, a file or a tuning; and their builds."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.workbench import MachineOptions, Workbench, open_tuned_workbench, open_workbench, require_tuned
from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.deploy.faults import require_sound
from colltune.deploy.live_selector import in_force_via
from colltune.emit.lint.check import Severity
from colltune.emit.lint.json_text import read_json
from colltune.emit.lint.leaf import FileKind
from colltune.emit.lint.selection_file import kind_of
from colltune.machine.compile import PRELOAD, preload_variables
from colltune.machine.file_formats import Format
from colltune.mpi.installation import Installation
from colltune.mpi.libraries import RECORDS, record_of
from colltune.mpi.reads import unknown_names
from colltune.mpi.same import require_loaded
from colltune.prove.compare.two_sides import Side, tuned_side
from colltune.session.lint import lint_selection
from colltune.session.own_settings import settings_line
from colltune.store.tuning import Tuning, load_deployable

NOTHING = "nothing"
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BETWEEN = re.compile(rf",(?={_SETTING.pattern})")


@dataclass(frozen=True)
class NamedSide:
    """What the user wrote. ``settings``: of the user's own; ``path``: of a tuning, or of a selection file."""

    text: str
    settings: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None
    tuning: Tuning | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.settings.items()) or self.text


def parse_side(text: str) -> NamedSide:
    """``"nothing"``, ``"NAME=VALUE,NAME=VALUE"``, a selection file or the directory of a tuning.

    A value may hold commas: a new setting begins at a comma with a name and = behind it. Raises InputError, also for a
    tuning that no MPI can load or that holds a fault.
    """
    if text == NOTHING:
        return NamedSide(text)
    if _SETTING.match(text):
        return NamedSide(text, _parse_settings(text))
    path = Path(text)
    if path.is_dir():
        tuning = load_deployable(path)
        require_sound(tuning, text)
        return NamedSide(text, path=path, tuning=tuning)
    if path.is_file():
        return NamedSide(text, path=path.resolve())
    raise InputError(
        f"{text!r} is no setting, no file and no directory",
        f"Write NAME=VALUE (several joined by commas), a selection file, a tuning directory, or {NOTHING}",
    )


def _parse_settings(text: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for part in _BETWEEN.split(text):
        name, _, value = part.partition("=")
        if name in settings:
            raise InputError(f"{text!r} sets {name} twice", "Give it one value")
        if not value.isprintable():
            raise InputError(f"the value of {name}, {value!r}, cannot be in an environment", "Write it plainly")
        settings[name] = value
    return settings


def open_sides(
    a: NamedSide,
    b: NamedSide,
    machine: MachineOptions,
    environ: Mapping[str, str],
    *,
    builds: tuple[str | None, str | None] = (None, None),
    names: tuple[str, str] = ("A", "B"),
    via: str = "file",
    note: Callable[[str], None] = lambda _note: None,
) -> tuple[Side, Side]:
    """Both ready to be launched, on one shape of job, that of a tuning where ``machine`` leaves it open.

    ``builds``: the mpiexec of each, where it is not that of ``machine``. ``via``: how a tuning is put in force. What
    one side sets is taken out of the environment in which both begin, and so are selection files that are in force:
    ``note`` hears of that. Raises InputError for what cannot be run or would have no effect, and
    EnvironmentMismatchError for a tuning of another MPI.
    """
    mpiexecs = [build or machine.mpiexec for build in builds]
    first = 1 if a.tuning is None and b.tuning is not None else 0
    tuned = (a, b)[first].tuning
    opened = _open(replace(machine, mpiexec=mpiexecs[first]), None if tuned is None else tuned.environment, environ)
    benches = [opened, opened]
    if mpiexecs[0] != mpiexecs[1]:
        there = MachineOptions(mpiexecs[1 - first], machine.host_file, opened.nodes, opened.ppn, opened.thread_level)
        benches[1 - first] = replace(_open(there, None, environ), watch=opened.watch)
    sides = [_side(*of_one, environ, via) for of_one in zip((a, b), names, benches, strict=True)]
    own = {name for side in sides for name in side.variables} - ({PRELOAD} if via == "live" else set())
    on_benches = []
    for side, bench in zip(sides, benches, strict=True):
        bench = bench.without(own)
        require_loaded(bench.agent, bench.installation, {**bench.process_environment, **side.variables})
        on_benches.append(replace(side, bench=bench))
        left_out = dict.fromkeys(set(environ) - set(bench.process_environment))
    if line := settings_line(environ, (), left_out):
        note(line)
    for named, bench in zip((a, b), benches, strict=True):
        alike = benches[0].installation.build == benches[1].installation.build
        _require_known(named, bench.installation, environ, note, refuse=alike)
    return on_benches[0], on_benches[1]


def _open(machine: MachineOptions, tuned: Environment | None, environ: Mapping[str, str]) -> Workbench:
    return open_workbench(machine, environ) if tuned is None else open_tuned_workbench(machine, tuned, environ)


def _side(named: NamedSide, name: str, bench: Workbench, environ: Mapping[str, str], via: str) -> Side:
    if named.path is None:
        return Side(name, bench, named.settings)
    if named.tuning is None:
        return Side(name, bench, _file_variables(named.path, bench))
    require_tuned(bench, named.tuning.environment)
    tuning = in_force_via(named.tuning, via, environ, lambda: bench.installation)
    side = tuned_side(name, bench, tuning, named.path)
    if PRELOAD not in side.variables:
        return side
    return replace(side, variables={**side.variables, **preload_variables(side.variables[PRELOAD], environ)})


def _file_variables(path: Path, bench: Workbench) -> dict[str, str]:
    """By which the MPI reads the selection file ``path``. Raises InputError for one that it should not be given."""
    mpi = bench.installation
    linted = lint_selection([path], {}, mpi_version=mpi.version)
    if linted.library != mpi.library:
        raise InputError(
            f"{path} is for {linted.library}, and here is {mpi.library} {mpi.version}", "Give its --mpiexec"
        )
    for fault in linted.findings:
        if fault.severity is Severity.ERROR:
            raise InputError(f"{path}:{fault.line}: {fault.what}", f"Nothing was run; see colltune lint {path}")
    record = record_of(linted.library)
    variables = list(record.files)
    if record.switches:
        of_han = linted.formats[str(path)] is Format.HAN_RULES
        return {variables[of_han]: str(path), **dict([[*record.switches.items()][of_han]])}
    kind = kind_of(read_json(linted.contents[str(path)]), bench.catalogue)
    return {variables[list(FileKind).index(kind)]: str(path)}


def _require_known(
    named: NamedSide, mpi: Installation, environ: Mapping[str, str], note: Callable[[str], None], *, refuse: bool
) -> None:
    """Says which settings the library does not know. Raises InputError for them if asked to ``refuse``.

    Where a library does not list all that it reads, they are never refused.
    """
    record = record_of(mpi.library)
    own = {name: inside for name in named.settings if (inside := record.control_variable(name))}
    asked = unknown_names(mpi.libmpi, list(own.values()), environ) if own else []
    unknown = [name for name, inside in own.items() if inside in asked]
    unknown += [name for name in named.settings if name not in own and any(r.control_variable(name) for r in RECORDS)]
    if not unknown:
        return
    text = f"{mpi.library} {mpi.version} does not know {', '.join(unknown)}, so that changes nothing there"
    if refuse and record.lists_all:
        raise InputError(text, f"Correct the name; {mpi.mpiexec.parent}/mpivars lists those that there are")
    note(text)
