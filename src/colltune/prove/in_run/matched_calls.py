"""How many calls of a program matched a rule of a tuning: the preloaded library counts them (native/shim/count.c)."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter
from colltune.machine.compile import cache_directory, preload_variables
from colltune.machine.files import read_text
from colltune.mpi.detect import mpi_at_hand
from colltune.mpi.programs import library_for
from colltune.store.tuning import Tuning

_HEAD = "colltune-count 1"
_MULTIPLE = "MPI_THREAD_MULTIPLE"
_NO_COUNT = "no program left a count: it must use this MPI as a shared library, and come to MPI_Finalize"


@dataclass(frozen=True, slots=True)
class Counted:
    """Calls of one collective in one form on communicators of one shape, and those that met a rule.

    ``least`` and ``most``: bytes, as the collective's rules count them. ``where``: 1 x 4, or 5 on 2.
    """

    collective: str
    form: str
    where: str
    calls: float
    met: float
    least: int
    most: int

    @property
    def ruled_as(self) -> str:
        """The collective whose rules hold: ``"ibcast"`` for the non-blocking and persistent calls of bcast."""
        return self.collective if self.form == "blocking" else f"i{self.collective}"

    def plus(self, other: "Counted") -> "Counted":
        """These calls and those of ``other``, which are of the same kind."""
        calls, met = self.calls + other.calls, self.met + other.met
        return replace(self, calls=calls, met=met, least=min(self.least, other.least), most=max(self.most, other.most))


@dataclass(frozen=True)
class RuleEffect:
    """``ran``: the jobs that left a count, as 1 x 4. ``failure``: why nothing was counted, or ""."""

    rows: tuple[Counted, ...] = ()
    ran: tuple[str, ...] = ()
    threads_multiple: bool = False
    lost_calls: int = 0
    failure: str = ""

    @property
    def met(self) -> float:
        return sum(row.met for row in self.rows)

    def text(self, tuned: Environment, rule_sets: Mapping[str, RuleSet]) -> str:
        """The calls of each collective that has a rule, and the reason where none matched."""
        if self.failure:
            return f"its calls were not counted: {self.failure}"
        names = sorted(name for name, rules in rule_sets.items() if rules.departs)
        counted = {name: [row for row in self.rows if row.ruled_as == name] for name in names}
        apart = [name for name in names if f"i{name}" not in names]
        beside = {name: sum(row.calls for row in self.rows if row.ruled_as == f"i{name}") for name in apart}
        texts = {name: _one(name, rows, beside.get(name, 0.0)) for name, rows in counted.items()}
        parts = [text for text in texts.values() if text]
        never = [name for name, text in texts.items() if not text]
        if never:
            parts.append(f"it never called {' or '.join(never)}")
        if not self.met:
            parts.append(f"no call met a rule: rules for {_tuned(tuned)}; this program ran {self._ran()}")
        elif self.threads_multiple != (tuned.thread_level == "multiple"):
            parts.append(f"the rules were proven on {_tuned(tuned)}, and this program ran {self._ran()}")
        if self.lost_calls:
            parts.append(f"{self.lost_calls} calls found no room in the count")
        return "; ".join(parts)

    def _ran(self) -> str:
        return " and ".join(dict.fromkeys(self.ran)) + (f" with {_MULTIPLE}" if self.threads_multiple else "")


def _tuned(tuned: Environment) -> str:
    shape = f"{tuned.nodes} x {tuned.ppn}"
    return f"{shape} with {_MULTIPLE}" if tuned.thread_level == "multiple" else shape


def _one(name: str, rows: Sequence[Counted], others: float) -> str:
    """What is said of the calls ``rows``; ``others``: calls in a form that has no rules. "" where there are none."""
    calls, met = sum(row.calls for row in rows), sum(row.met for row in rows)
    text = f"{met:.6g} of {calls:.6g} calls of {name} met a rule" if rows else ""
    if rows and not met:
        least, most = min(row.least for row in rows), max(row.most for row in rows)
        sizes = f"{least} B" if least == most else f"{least} to {most} B"
        where = ", ".join(dict.fromkeys(row.where for row in rows))
        text += f" (they were on {where} ranks, {sizes} as its rules count them)"
    if others:
        more = f"{others:.6g} calls of {name} were non-blocking or persistent, which no rule is for"
        text = f"{text}; {more}" if text else more
    return text


def _counted(fields: Mapping[str, str]) -> Counted:
    size, remote, nodes = (int(fields[name]) for name in ("size", "remote_size", "nodes"))
    where = f"{nodes} x {fields['ppn']}" if nodes and fields["even"] == "1" else f"{size} on {nodes or 'unknown'}"
    calls, met, least, most = (int(fields[name]) for name in ("calls", "met", "least", "most"))
    where, ranks = f"{size} to {remote}" if remote else where, size + remote
    return Counted(fields["function"], fields["form"], where, calls / ranks, met / ranks, least, most)


def read_effect(files: Iterable[Path]) -> RuleEffect:
    """What the jobs of one command counted. Raises InputError for what is no count."""
    rows: dict[tuple[str, str, str], Counted] = {}
    effect = RuleEffect()
    for path in sorted(files):
        try:
            lines = read_text(path).splitlines()
            if lines[0] != _HEAD or lines[-1] != "end":
                raise InputError(f"{path} is no count of this colltune", "Run it again")
            for line in lines[1:-1]:
                word, _, rest = line.partition(" ")
                fields = dict(item.partition("=")[::2] for item in rest.split())
                if word == "call":
                    row = _counted(fields)
                    there = rows.get(key := (row.collective, row.form, row.where))
                    rows[key] = row if there is None else there.plus(row)
                    continue
                ranks, nodes = int(fields["ranks"]), int(fields["nodes"])
                even = f"{nodes} x {ranks // nodes}" if nodes and ranks % nodes == 0 else f"{ranks} ranks on {nodes}"
                multiple, lost = fields["threads_multiple"] == "1", int(fields["lost"])
                effect = RuleEffect(
                    (), (*effect.ran, even), effect.threads_multiple or multiple, effect.lost_calls + lost
                )
        except (OSError, LookupError, ValueError, ArithmeticError) as error:
            raise InputError(f"{path} is no count of this colltune: {error!r}", "Run it again") from error
    if not effect.ran:
        return RuleEffect(failure=_NO_COUNT)
    return replace(effect, rows=tuple(row for _, row in sorted(rows.items())))


_COUNT, _RULES = "COLLTUNE_COUNT", "COLLTUNE_COUNT_RULES"


@dataclass(frozen=True)
class Counting:
    """``variables``: the environment that the program needs; empty where nothing is counted, because of ``failure``."""

    variables: Mapping[str, str] = field(default_factory=dict)
    place: Path | None = None
    failure: str = ""

    def finish(self) -> RuleEffect:
        """Reads the counts, after the program has ended."""
        if self.place is None:
            return RuleEffect(failure=self.failure)
        try:
            return read_effect(path for path in self.place.glob("count.*") if path.suffix != ".new")
        except InputError as error:
            return RuleEffect(failure=error.what)

    def discard(self) -> None:
        """Removes the files."""
        if self.place is not None:
            shutil.rmtree(self.place, ignore_errors=True)


def begin_counting(tuning: Tuning, environment: Mapping[str, str], command: Sequence[str]) -> Counting:
    """Counts the calls of ``command`` that runs under ``tuning``, by its files, or live where that is in force.

    ``environment``: of the program, with ``tuning`` in force; what is preloaded already stays.
    """
    try:
        installation = mpi_at_hand(command, environment, build=tuning.environment.mpi_build)
        library = library_for(installation, cache_directory(environment))
        place = Path(tempfile.mkdtemp(prefix="count-", dir=cache_directory(environment)))
        variables = {**preload_variables(library, environment), _COUNT: str(place / "count")}
        if LIVE_VARIABLE not in tuning.variables:
            # As the live selector reads them, but without settings: looked up, and nothing is set.
            made = tuning.environment
            emitter = LiveEmitter(load(made.mpi, made.mpi_version), lambda _collective, _choice: ())
            (place / "rules").write_bytes(emitter.emit(list(tuning.rule_sets.values()))[LIVE_FILE])
            variables[_RULES] = str(place / "rules")
    except InputError as error:
        return Counting(failure=error.what)
    except OSError as error:
        return Counting(failure=f"{error.filename}: {error.strerror}")
    return Counting(variables, place)
