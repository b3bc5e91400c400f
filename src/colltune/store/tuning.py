"""The tuning directory: what `tune` leaves and what everything else reads.

``tuning.json`` holds the decisions and their evidence, ``journal.jsonl`` every measurement, and a folder named after
the library the files that it loads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from colltune.core.choice import format_choice, parse_choice
from colltune.core.errors import ColltuneError, InputError
from colltune.core.proven import Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.core.summary import Summary
from colltune.machine.files import write_atomically
from colltune.store.fields import FieldError, decode
from colltune.store.summary import read_summary, write_summary

SCHEMA = 1
_AGAIN = "Run `colltune tune` again, or with --resume to use what was measured"
MANIFEST = "tuning.json"
JOURNAL = "journal.jsonl"
CONFIRMATION = "confirmation.jsonl"  # the measurements of the acceptance test
_REPORT, _EXPORTS = "report.html", "export"  # made from a tuning, and removed when it changes
PROVISIONAL = "provisional"  # files with the provisional decisions too


@dataclass(frozen=True)
class Provisional:
    """Rules with the provisional decisions beside the proven ones. The fields are those of ``Tuning``.

    A campaign that ends before its acceptance test leaves them; they are loaded only with ``--provisional``.
    """

    rule_sets: Mapping[str, RuleSet]
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    by_shape: Mapping[str, RuleSet] | None = None

    @classmethod
    def of(cls, tuning: Tuning) -> Provisional:
        """The rules of ``tuning``, with its files in a folder of their own."""
        files = {f"{PROVISIONAL}/{name}": data for name, data in tuning.files.items()}
        place = "{directory}"
        variables = {k: v.replace(place, f"{place}/{PROVISIONAL}") for k, v in tuning.variables.items()}
        return cls(tuning.rule_sets, files, variables, tuning.by_shape)


@dataclass(frozen=True)
class Tuning:
    """The result of a campaign.

    ``files``: names, relative to the directory, with their bytes. ``variables``: the environment that makes the
    library use them, where a value may hold ``{directory}``. ``summary``: figures about the campaign, for people.
    ``jobs``: (nodes, ranks per node) of the jobs that it was tuned in; ``environment`` has the largest of them.
    ``by_shape``: the rules as proven, where the library's file cannot express all of them; else None.
    """

    environment: Environment
    rule_sets: Mapping[str, RuleSet]
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    summary: Summary = field(default_factory=Summary)
    provisional: Provisional | None = None
    jobs: tuple[tuple[int, int], ...] = ()
    by_shape: Mapping[str, RuleSet] | None = None

    @property
    def tuned_in(self) -> tuple[tuple[int, int], ...]:
        """The (nodes, ranks per node) of the jobs in which this was tuned, ascending."""
        return self.jobs or ((self.environment.nodes, self.environment.ppn),)

    def with_provisional(self) -> Tuning:
        """This tuning with the provisional decisions in force too."""
        held = self.provisional
        if held is None:
            return self
        return replace(
            self,
            rule_sets=held.rule_sets,
            files=held.files,
            variables=held.variables,
            by_shape=held.by_shape,
            provisional=None,
        )

    @property
    def left_out(self) -> int:
        """How many decisions are provisional, and so not in force; rules that need no proof of speed count as one."""
        if self.provisional is None:
            return 0
        judged = [one.scenario.collective for one in self.summary.having(Verdict.PROVISIONAL)]
        departing = {name for name, rules in self.provisional.rule_sets.items() if rules != self.rule_sets.get(name)}
        return len(judged) + len(departing - set(judged))

    def variables_at(self, directory: Path) -> dict[str, str]:
        """The environment that makes the library use the files in ``directory``.

        Empty where every call runs the default: a file without a rule would only cost the time to search it.
        """
        if not any(rules.departs for rules in self.rule_sets.values()):
            return {}
        place = str(directory.resolve())
        return {name: value.replace("{directory}", place) for name, value in self.variables.items()}


def save_tuning(directory: Path, tuning: Tuning) -> None:
    """Writes a tuning; the manifest last and in one step, so the directory has the old tuning or the new one."""
    manifest = {
        "schema": SCHEMA,
        "environment": asdict(tuning.environment),
        "jobs": [list(job) for job in tuning.jobs],
        **_decisions_out(tuning.rule_sets, tuning.files, tuning.variables, tuning.by_shape),
        "summary": write_summary(tuning.summary),
    }
    held = tuning.provisional
    if held is not None:
        manifest[PROVISIONAL] = _decisions_out(held.rule_sets, held.files, held.variables, held.by_shape)
    stale = _stale(directory, {*tuning.files, *(held.files if held is not None else ())}, manifest["rules"])
    try:
        write_files(directory, tuning.files)
        write_files(directory, held.files if held is not None else {})
        write_files(directory, {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()})
        _remove(stale)
    except OSError as error:
        raise ColltuneError(
            f"cannot write the tuning to {directory}: {error.strerror}",
            f"Make room there and run `colltune tune ... --out {directory} --resume`: the measurements are kept",
        ) from error


def _stale(directory: Path, files: Collection[str], rules: Mapping[str, Any]) -> list[Path]:
    """Paths made from the tuning that is in ``directory``, which do not belong to one with these files and rules."""
    try:
        before = json.loads((directory / MANIFEST).read_bytes())
        held = before.get(PROVISIONAL, {"files": {}})
        names = [Path(name) for name in (*before["files"], *held["files"])]
        same = before["rules"] == rules
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    inside = [name for name in names if not name.is_absolute() and ".." not in name.parts]
    made = [directory / _REPORT, *([] if same else [directory / _EXPORTS])]
    return made + [directory / name for name in inside if str(name) not in files]


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            continue
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a folder with other files stays
            path.parent.rmdir()
            path.parent.parent.rmdir()


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Writes each file in one step: a concurrent reader sees the old file or the new one. Raises OSError."""
    for name, data in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / name, data)


def load_tuning(directory: Path) -> Tuning:
    """Reads a tuning. Raises InputError where there is none, it cannot be read, or a file is missing or changed."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["schema"] != SCHEMA:
            raise InputError(
                f"{path} has schema {manifest['schema']}; this colltune reads {SCHEMA}",
                "Use the colltune that wrote it",
            )
        held = manifest.get(PROVISIONAL)
        return Tuning(
            decode(Environment, manifest["environment"], "environment"),
            *_decisions_in(directory, manifest),
            read_summary(manifest["summary"]),
            Provisional(*_decisions_in(directory, held), _by_shape_in(held)) if held is not None else None,
            tuple((nodes, ppn) for nodes, ppn in manifest.get("jobs", ())),
            _by_shape_in(manifest),
        )
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", _AGAIN) from error
    except FieldError as error:
        raise InputError(f"{path}: {error}", _AGAIN) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is not a tuning: {error!r}", _AGAIN) from error


def load_deployable(directory: Path, *, provisional: bool = False) -> Tuning:
    """A tuning that an MPI can load; with ``provisional`` its provisional decisions too.

    Raises InputError as ``load_tuning`` does, and for a tuning of a simulated cluster.
    """
    tuning = load_tuning(directory)
    if provisional:
        tuning = tuning.with_provisional()
    if tuning.environment.mpi == "simulated":
        raise InputError(
            f"{directory} was tuned on the simulated cluster {tuning.environment.machine}: no MPI reads its rules",
            f"`colltune explain {directory} COLLECTIVE` shows them; to tune an MPI, leave out --simulate",
        )
    return tuning


def _decisions_out(
    rule_sets: Mapping[str, RuleSet],
    files: Mapping[str, bytes],
    variables: Mapping[str, str],
    by_shape: Mapping[str, RuleSet] | None,
) -> dict[str, Any]:
    shapes = {} if by_shape is None else {"by_shape": {name: _rules_out(rules) for name, rules in by_shape.items()}}
    return {
        **shapes,
        "variables": dict(variables),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        "rules": {name: _rules_out(rule_set) for name, rule_set in rule_sets.items()},
    }


def _decisions_in(
    directory: Path, written: Mapping[str, Any]
) -> tuple[dict[str, RuleSet], dict[str, bytes], dict[str, str]]:
    files = {name: (directory / name).read_bytes() for name in written["files"]}
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != written["files"][name]:
            raise InputError(f"{directory / name} was changed or cut short after it was written", _AGAIN)
    return {name: _rules_in(name, rules) for name, rules in written["rules"].items()}, files, written["variables"]


def _by_shape_in(written: Mapping[str, Any]) -> dict[str, RuleSet] | None:
    found = written.get("by_shape")
    return None if found is None else {name: _rules_in(name, rules) for name, rules in found.items()}


def _rules_out(rule_set: RuleSet) -> dict[str, Any]:
    rules = [[r.max_ppn, r.max_ranks, r.max_size, format_choice(r.choice)] for r in rule_set.rules]
    return {"basis": rule_set.basis.value, "max_ppn max_ranks max_size choice": rules}


def _rules_in(collective: str, written: Mapping[str, Any]) -> RuleSet:
    rules = tuple(Rule(p, r, s, parse_choice(c)) for p, r, s, c in written["max_ppn max_ranks max_size choice"])
    return RuleSet(collective, SizeBasis(written["basis"]), rules)
