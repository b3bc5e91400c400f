"""The tuning directory: what `tune` leaves and what everything else reads.

``tuning.json`` holds the decisions and their evidence, ``journal.jsonl`` every measurement, and a folder named after
the library the files that it loads.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec

from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.core.proven import Summary, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment, SizeBasis, format_choice
from colltune.machine.file_formats import described
from colltune.machine.files import fitted, parse_json, read_file, write_atomically
from colltune.mpi.libraries import PLACE, PROVISIONAL, record_of
from colltune.store.summary_json import WrittenSummary, read_choice, write_summary

SCHEMA = 1
_AGAIN = "Run `colltune tune` again, or with --resume to use what was measured"
MANIFEST = "tuning.json"
JOURNAL = "journal.jsonl"
CONFIRMATION = "confirmation.jsonl"  # the measurements of the proof
_COLUMNS = "max_ppn max_ranks max_size choice"
_REPORT, _EXPORTS = "report.html", "export"  # made from a tuning, and removed when it changes


@dataclass(frozen=True)
class Provisional:
    """Rules with the provisional decisions beside the proven ones. The fields are those of ``Tuning``.

    A campaign that ends before its proof leaves them; they are loaded only with ``--provisional``.
    """

    rule_sets: Mapping[str, RuleSet]
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    by_shape: Mapping[str, RuleSet] | None = None
    live: Mapping[str, RuleSet] | None = None

    @classmethod
    def of(cls, tuning: "Tuning") -> "Provisional":
        """The rules of ``tuning``, with its files in a folder of their own."""
        files = {f"{PROVISIONAL}/{name}": data for name, data in tuning.files.items()}
        variables = {k: v.replace(PLACE, f"{PLACE}/{PROVISIONAL}") for k, v in tuning.variables.items()}
        return cls(tuning.rule_sets, files, variables, tuning.by_shape, tuning.live)


@dataclass(frozen=True)
class Tuning:
    """The result of a campaign.

    ``files``: names, relative to the directory, with their bytes. ``variables``: the environment that makes the
    library use them, where a value may hold ``PLACE``; of one that was
    read they name its files and nothing else. ``summary``: figures about the campaign, for people.
    ``jobs``: (nodes, ranks per node) of the jobs that it was tuned in; ``environment`` has the largest of them.
    ``by_shape``: the rules as proven, where the library's file cannot express all of them; else None.
    ``live``: the live selector's rules, of the collectives where they depart from the default; None where none are
    known: on a simulated cluster, and of an earlier release.
    """

    environment: Environment
    rule_sets: Mapping[str, RuleSet]
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    summary: Summary = field(default_factory=Summary)
    provisional: Provisional | None = None
    jobs: tuple[tuple[int, int], ...] = ()
    by_shape: Mapping[str, RuleSet] | None = None
    live: Mapping[str, RuleSet] | None = None

    @property
    def tuned_in(self) -> tuple[tuple[int, int], ...]:
        """The (nodes, ranks per node) of the jobs in which this was tuned, ascending."""
        return self.jobs or ((self.environment.nodes, self.environment.ppn),)

    def with_provisional(self) -> "Tuning":
        """This tuning with the provisional decisions in force too."""
        held = self.provisional
        return self if held is None else replace(self, provisional=None, **vars(held))

    @property
    def left_out(self) -> int:
        """How many decisions are provisional, and so not in force; rules that need no proof of speed count as one."""
        if self.provisional is None:
            return 0
        judged = [decision.scenario.collective for decision in self.summary.having(Verdict.PROVISIONAL)]
        non_default = {name for name, rules in self.provisional.rule_sets.items() if rules != self.rule_sets.get(name)}
        return len(judged) + len(non_default - set(judged))

    def variables_at(self, directory: Path) -> dict[str, str]:
        """The environment that makes the library use the files in ``directory``.

        Empty where every call runs the default: a file without a rule would only cost the time to search it.
        """
        if not any(rules.departs for rules in self.rule_sets.values()):
            return {}
        place = str(directory.resolve())
        return {name: value.replace(PLACE, place) for name, value in self.variables.items()}


class _WrittenRules(msgspec.Struct):
    basis: SizeBasis
    rows: tuple[tuple[int | None, int | None, int | None, str], ...] = msgspec.field(name=_COLUMNS)


class _WrittenDecisions(msgspec.Struct, kw_only=True):
    """``files``: the SHA-256 of each, by its name."""

    rules: dict[str, _WrittenRules]
    files: dict[str, str]
    variables: dict[str, str]
    by_shape: dict[str, _WrittenRules] | None = None
    live: dict[str, _WrittenRules] | None = None


class _WrittenTuning(_WrittenDecisions, kw_only=True):
    environment: Environment
    jobs: tuple[tuple[int, int], ...] = ()
    summary: WrittenSummary
    provisional: _WrittenDecisions | None = None


class _Schema(msgspec.Struct):
    schema: object = None


def save_tuning(directory: Path, tuning: Tuning) -> None:
    """Writes a tuning; the manifest last and in one step, so the directory has the old tuning or the new one."""
    manifest = {
        "schema": SCHEMA,
        "environment": asdict(tuning.environment),
        "jobs": [list(job) for job in tuning.jobs],
        **_write_decisions(tuning),
        "summary": write_summary(tuning.summary),
    }
    held = tuning.provisional
    if held is not None:
        manifest[PROVISIONAL] = _write_decisions(held)
    stale = _stale(directory, {*tuning.files, *(held.files if held is not None else ())}, manifest["rules"])
    with on_os_error(
        f"cannot write the tuning to {directory}",
        f"Make room there and run `colltune tune ... --out {directory} --resume`: the measurements are kept",
        ColltuneError,
    ):
        write_files(directory, tuning.files)
        write_files(directory, held.files if held is not None else {})
        write_files(directory, {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()})
        _remove(stale)


def _stale(directory: Path, files: Collection[str], rules: object) -> list[Path]:
    """Paths made from the tuning that is in ``directory``, which do not belong to one with these files and rules."""
    try:
        before = parse_json(read_file(directory / MANIFEST))
        held = before.get(PROVISIONAL, {"files": {}})
        names = [name for name in (*before["files"], *held["files"]) if _is_inside(name)]
        same = before["rules"] == rules
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    made = [directory / _REPORT, *([] if same else [directory / _EXPORTS])]
    return made + [directory / name for name in names if name not in files]


def _is_inside(name: str) -> bool:
    """Whether a file with this name lies in the directory that names it."""
    return bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            continue
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder with other files stays
            path.parent.rmdir()
            path.parent.parent.rmdir()


def write_files(directory: Path, files: Mapping[str, bytes], *, durable: bool = True) -> None:
    """Writes each file in one step: a concurrent reader sees the old file or the new one. Raises OSError.

    ``durable``: as for ``write_atomically``.
    """
    for name, data in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / name, data, durable=durable)


def load_tuning(directory: Path) -> Tuning:
    """Reads a tuning. Raises InputError where there is none, it cannot be read, or a file is missing or changed."""
    path = directory / MANIFEST
    if not path.exists():
        make = "colltune tune bcast allreduce --out"
        if directory.exists() and not directory.is_dir():
            raise InputError(
                f"{described(directory)}, and no tuning", f"Give the directory of one, or make it: {make} DIR"
            )
        what = "holds no tuning" if directory.is_dir() else "does not exist"
        raise InputError(f"{directory} {what} ({MANIFEST})", f"Make one: {make} {directory}")
    try:
        document = parse_json(read_file(path))
        if (schema := fitted(document, _Schema).schema) != SCHEMA:
            raise InputError(
                f"{path} has schema {schema}; this colltune reads {SCHEMA}", "Use the colltune that wrote it"
            )
        manifest = fitted(document, _WrittenTuning)
        mpi, later = manifest.environment.mpi, manifest.provisional
        own = _read_decisions(directory, manifest, mpi)
        provisional = None if later is None else _read_decisions(directory, later, mpi, f"{PROVISIONAL}.")
        summary = manifest.summary.read()
        return Tuning(manifest.environment, **vars(own), summary=summary, provisional=provisional, jobs=manifest.jobs)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", _AGAIN) from error
    except ValueError as error:
        raise InputError(f"{path}: {error}", _AGAIN) from error


def load_deployable(directory: Path, *, provisional: bool = False) -> Tuning:
    """A tuning that an MPI can load; with ``provisional`` its provisional decisions too.

    Raises InputError as ``load_tuning`` does, and for a tuning of a simulated cluster.
    """
    tuning = load_tuning(directory)
    if provisional:
        tuning = tuning.with_provisional()
    if not tuning.environment.has_mpi:
        raise InputError(
            f"{directory} was tuned on the simulated cluster {tuning.environment.machine}: no MPI reads its rules",
            f"`colltune explain {directory} COLLECTIVE` shows them; `colltune tune` tunes an MPI",
        )
    return tuning


def _write_decisions(tuning: Tuning | Provisional) -> dict[str, object]:
    optional = {"by_shape": tuning.by_shape, "live": tuning.live}
    return {
        **{name: _write_rules(rule_sets) for name, rule_sets in optional.items() if rule_sets is not None},
        "variables": dict(tuning.variables),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in tuning.files.items()},
        "rules": _write_rules(tuning.rule_sets),
    }


def _write_rules(rule_sets: Mapping[str, RuleSet]) -> dict[str, object]:
    return {
        name: {"basis": rules.basis.value, _COLUMNS: [[*r.bounds, format_choice(r.choice)] for r in rules.rules]}
        for name, rules in rule_sets.items()
    }


def _read_decisions(directory: Path, held: _WrittenDecisions, mpi: str, place: str = "") -> Provisional:
    """What ``_write_decisions`` wrote, for ``mpi``. ``place``: where that is in the manifest, for errors.

    Raises ValueError for a variable that names no file of the tuning, since an application would get it; InputError for
    a file that is not what was written; OSError for one that is missing.
    """
    rules, by_shape, live = (
        None if some is None else {name: _rule_set(name, rules, f"{place}{what}") for name, rules in some.items()}
        for what, some in (("rules", held.rules), ("by_shape", held.by_shape), ("live", held.live))
    )
    if outside := [name for name in held.files if not _is_inside(name)]:
        raise ValueError(f"{place}files names {outside[0]!r}, outside of its directory")
    files = {name: read_file(directory / name) for name in held.files}
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != held.files[name]:
            raise InputError(f"{directory / name} was changed or cut short after it was written", _AGAIN)
    if why := record_of(mpi).refusal(held.variables):
        raise ValueError(f"{place}variables would set {why}")
    return Provisional(rules or {}, files, record_of(mpi).held(held.variables, held.files), by_shape, live)


def _rule_set(name: str, written: _WrittenRules, place: str) -> RuleSet:
    try:
        rules = (Rule(ppn, ranks, size, read_choice(choice)) for ppn, ranks, size, choice in written.rows)
        return RuleSet(name, written.basis, tuple(rules))
    except ValueError as error:
        raise ValueError(f"{place}.{name} does not fit: {error}") from None
