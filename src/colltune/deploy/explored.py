"""What runs of a program may try, for `colltune run --auto`: a folder ``candidates`` of the tuning directory.

It has the calls that cost the program most, and for each the choices that gave right results in the conformance check,
in the order in which they are tried; and the settings of all these choices, as the live selector reads them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from colltune.catalog import load
from colltune.core.decision_table import DecisionTable
from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.rules import Region, RuleSet, Span
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, SizeBasis
from colltune.core.switchback import Where
from colltune.deploy.applied import AppliedTuning
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, live_choices, live_faults, with_fewer_rules
from colltune.machine.compile import PRELOAD, cache_directory, preload_variables
from colltune.machine.files import fitted, parse_json, read_file, read_text, write_atomically
from colltune.mpi.application import Application
from colltune.store.records import Count
from colltune.store.summary_json import read_choice
from colltune.store.tuning import write_files

FOLDER = "candidates"
VARIABLE = "COLLTUNE_CANDIDATES"
_RECORD, _SCHEMA = "candidates.json", 3
_MOST = 1e15  # calls, or seconds, of all ranks in a run
_MARK = Choice("inside")  # of no library: where a region is


@dataclass(frozen=True)
class CallKind:
    """Calls of one collective and one class of sizes (a power of two) on communicators of one shape.

    ``size``: in bytes as rules of ``basis`` compare them. ``share``: of the program's time. ``calls``: of the run that
    was recorded, on ``communicators``, and ``time_s`` in them, seconds of a rank. ``choices``: what may be tried, in
    this order.
    ``predicted``: the one that a prediction chose; the default for none.
    """

    collective: str
    basis: SizeBasis
    nodes: int
    ppn: int
    size: Span
    share: float
    calls: float
    time_s: float
    communicators: int
    choices: tuple[Choice, ...]
    predicted: Choice = DEFAULT

    @property
    def where(self) -> Where:
        return self.collective, (self.size.high or 0).bit_length(), self.nodes, self.ppn

    @property
    def region(self) -> Region:
        ranks = self.nodes * self.ppn
        return Region(Span(self.ppn, self.ppn), Span(ranks, ranks), self.size)


@dataclass(frozen=True)
class Candidates:
    """``application``: the one that makes these calls. ``text``: the settings of all choices.

    ``mpi_build``: of the library in which they gave right results. ``why_none``: the reason where there are no kinds.
    """

    application: Application
    mpi_build: str
    kinds: tuple[CallKind, ...]
    text: str
    why_none: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Those in ``text`` by their numbers."""
        return tuple(live_choices(self.text))


def size_class(bits: int) -> Span:
    """The sizes whose numbers have so many ``bits``, which an experiment in an application takes together."""
    return Span(1 << bits >> 1, max((1 << bits) - 1, 0))


class _WrittenKind(msgspec.Struct):
    collective: str
    basis: SizeBasis
    nodes: int
    ppn: int
    size: tuple[int, int | None]
    share: float
    calls: float
    time_s: float
    communicators: Count
    choices: tuple[str, ...]
    predicted: str

    def read(self) -> CallKind:
        size, choices = Span(*self.size), tuple(map(read_choice, self.choices))
        counts = self.nodes, self.ppn, size.low + 1, self.communicators
        known = self.collective in COLLECTIVES and not size.is_empty and min(counts) >= 1
        if not known or not (0.0 < self.calls < _MOST and 0.0 <= self.time_s < _MOST):
            raise ValueError(f"{self} is no kind of call")
        read = {"size": size, "choices": choices, "predicted": read_choice(self.predicted)}
        return CallKind(**{**msgspec.structs.asdict(self), **read})


class _Written(msgspec.Struct):
    schema: int
    application: Application
    mpi_build: str
    kinds: tuple[_WrittenKind, ...]
    why_none: str = ""


def save_candidates(directory: Path, candidates: Candidates) -> None:
    """Raises ColltuneError where they cannot be written."""
    kinds = [
        {
            **{name: getattr(kind, name) for name in _WrittenKind.__struct_fields__},
            "size": (kind.size.low, kind.size.high),
            "choices": [str(choice) for choice in kind.choices],
            "predicted": str(kind.predicted),
        }
        for kind in candidates.kinds
    ]
    own = {name: getattr(candidates, name) for name in ("application", "mpi_build", "why_none")}
    head = {"schema": _SCHEMA, **own, "kinds": kinds}
    files = {LIVE_FILE: candidates.text.encode("ascii"), _RECORD: msgspec.json.encode(head) + b"\n"}
    with on_os_error(f"cannot write {directory / FOLDER}", "Make room there", ColltuneError):
        write_files(directory / FOLDER, files)


def load_candidates(directory: Path) -> Candidates | None:
    """Those in ``directory``; None where there are none. Raises InputError for what this colltune did not write."""
    place = directory / FOLDER
    try:
        written = fitted(parse_json(read_file(place / _RECORD)), _Written)
        if written.schema != _SCHEMA:
            raise ValueError(f"it has schema {written.schema}")
        text = read_text(place / LIVE_FILE)
        kinds = tuple(kind.read() for kind in written.kinds)
        candidates = Candidates(written.application, written.mpi_build, kinds, text, written.why_none)
        if unknown := {choice for kind in kinds for choice in kind.choices}.difference(candidates.choices):
            raise ValueError(f"{LIVE_FILE} has no settings of {', '.join(map(str, unknown))}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, InputError) as error:
        raise InputError(f"{place} cannot be read: {error}", f"Remove {place}: the next run makes it anew") from error
    return candidates


def tables(base: Mapping[str, RuleSet], chosen: Mapping[CallKind, Choice]) -> dict[str, RuleSet]:
    """``base``, by collective, where the calls of each kind in ``chosen`` get this choice."""
    made = {name: DecisionTable.of(rules) for name, rules in base.items()}
    for kind, choice in chosen.items():
        name = kind.collective
        table = made.get(name, DecisionTable.always(name, kind.basis))
        inside = DecisionTable.always(name, kind.basis, _MARK).restrict(kind.region)

        def decided(here: Choice, mark: Choice, choice: Choice = choice) -> Choice:
            return choice if mark == _MARK else here

        made[name] = table.combine(inside, decided)
    return {name: table.rule_set() for name, table in made.items()}


def with_candidates(
    force: AppliedTuning, candidates: Candidates, in_force: Sequence[RuleSet], tried: Sequence[RuleSet]
) -> AppliedTuning:
    """``force``, which is by way of the live selector, with the rules ``in_force``, where ``tried`` may be tried.

    Raises InputError for settings that the selector should not follow, ColltuneError where nothing can be written.
    """
    made = force.tuning.environment
    for fault in live_faults(candidates.text.encode(), None, load(made.mpi, made.mpi_version)):
        place = force.directory / FOLDER
        raise InputError(f"{place}: {fault}", f"Remove {place}: the next run makes it anew")
    variables = {PRELOAD: force.tuning.variables[PRELOAD]}
    rules = {LIVE_VARIABLE: _kept(candidates.text, in_force, force), VARIABLE: _kept(candidates.text, tried, force)}
    exported = {**force.exported, **variables, **preload_variables(variables[PRELOAD], force.around), **rules}
    return replace(force, variables={**variables, LIVE_VARIABLE: rules[LIVE_VARIABLE]}, exported=exported)


def _kept(text: str, rule_sets: Sequence[RuleSet], force: AppliedTuning) -> str:
    return str(kept_rules(with_fewer_rules(text, rule_sets), force.environment))


def kept_rules(data: bytes, environment: Mapping[str, str]) -> Path:
    """A file of the user's cache with the rules ``data``. Raises ColltuneError where it cannot be written."""
    path = cache_directory(environment) / f"live-{hashlib.sha256(data).hexdigest()[:20]}.rules"
    with on_os_error(f"cannot write {path}", "Set COLLTUNE_CACHE to a place of yours", ColltuneError):
        write_atomically(path, data)
    return path.resolve()


def default_at(rule_sets: Mapping[str, RuleSet], kind: CallKind) -> Choice:
    """What ``rule_sets`` decide for the calls of ``kind``."""
    rules = rule_sets.get(kind.collective)
    if rules is None or rules.basis is not kind.basis:
        return DEFAULT
    return DecisionTable.of(rules).at(kind.ppn, kind.nodes * kind.ppn, kind.size.low)
