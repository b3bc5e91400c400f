"""The tuning directory: what `tune` leaves and what everything else reads.

``tuning.json`` holds the decisions and how they were come by, ``journal.jsonl`` every measurement, and a folder named
after the library the files that it loads.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from colltune.core.choice import format_choice, parse_choice
from colltune.core.errors import ColltuneError, InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.store.journal import read_journal

SCHEMA = 1
MANIFEST = "tuning.json"
JOURNAL = "journal.jsonl"
CONFIRMATION = "confirmation.jsonl"  # what was measured again to prove the decisions


@dataclass(frozen=True)
class Tuning:
    """The result of a campaign.

    ``files``: names, relative to the directory, with their bytes. ``variables``: the environment that makes the
    library use them, where a value may hold ``{directory}``. ``summary``: figures about the campaign, for people.
    """

    environment: Environment
    rule_sets: Mapping[str, RuleSet]
    files: Mapping[str, bytes]
    variables: Mapping[str, str]
    summary: Mapping[str, Any] = field(default_factory=dict)

    def variables_at(self, directory: Path) -> dict[str, str]:
        """The environment that makes the library use the files in ``directory``.

        Nothing where every call runs the default: a file without a rule can only cost its search.
        """
        if not any(rules.departs for rules in self.rule_sets.values()):
            return {}
        place = str(directory.resolve())
        return {name: value.replace("{directory}", place) for name, value in self.variables.items()}


def save_tuning(directory: Path, tuning: Tuning) -> None:
    """Writes the manifest last and in one step, so that a directory has either the old tuning or the new one."""
    manifest = {
        "schema": SCHEMA,
        "environment": asdict(tuning.environment),
        "variables": dict(tuning.variables),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in tuning.files.items()},
        "rules": {name: _rules_out(rule_set) for name, rule_set in tuning.rule_sets.items()},
        "summary": dict(tuning.summary),
    }
    try:
        write_files(directory, tuning.files)
        _replace(directory / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    except OSError as error:
        raise ColltuneError(
            f"cannot write the tuning to {directory}: {error.strerror}",
            f"Make room there and run `colltune tune ... --out {directory} --resume`: the measurements are kept",
        ) from error


def tuned_sizes(directory: Path) -> dict[str, list[int]]:
    """The message sizes in bytes that the campaign of ``directory`` measured, ascending, by collective.

    Of a prediction, which measured none, those that it was made for.
    """
    if not (directory / JOURNAL).exists():
        predicted = load_tuning(directory).summary.get("sizes", {})
        return {str(name): [int(size) for size in some] for name, some in predicted.items()}
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for sample in read_journal(directory / JOURNAL).samples:
        sizes[sample.scenario.collective].add(sample.scenario.size_bytes)
    return {name: sorted(some) for name, some in sizes.items()}


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Each file in one step: whoever reads it sees the old one or the new one. Raises OSError."""
    for name, data in files.items():
        _replace(directory / name, data)


def load_tuning(directory: Path) -> Tuning:
    """Raises InputError where there is no tuning, it cannot be read, or a file is missing or not what was written."""
    path = directory / MANIFEST
    again = "Run `colltune tune` again, or with --resume to use what was measured"
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["schema"] != SCHEMA:
            raise InputError(
                f"{path} has schema {manifest['schema']}; this colltune reads {SCHEMA}",
                "Use the colltune that wrote it",
            )
        files = {name: (directory / name).read_bytes() for name in manifest["files"]}
        for name, data in files.items():
            if hashlib.sha256(data).hexdigest() != manifest["files"][name]:
                raise InputError(f"{directory / name} was changed or cut short after it was written", again)
        return Tuning(
            Environment(**manifest["environment"]),
            {name: _rules_in(name, rules) for name, rules in manifest["rules"].items()},
            files,
            manifest["variables"],
            manifest["summary"],
        )
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", again) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is not a tuning: {error!r}", again) from error


def load_deployable(directory: Path) -> Tuning:
    """A tuning that an MPI can load. Raises InputError as ``load_tuning``, and for that of a simulated cluster."""
    tuning = load_tuning(directory)
    if tuning.environment.mpi == "simulated":
        raise InputError(
            f"{directory} was tuned on the simulated cluster {tuning.environment.machine}: no MPI reads its rules",
            f"`colltune explain {directory} COLLECTIVE` shows them; to tune an MPI, leave out --simulate",
        )
    return tuning


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + f".{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _rules_out(rule_set: RuleSet) -> dict[str, Any]:
    rules = [[r.max_ppn, r.max_ranks, r.max_size, format_choice(r.choice)] for r in rule_set.rules]
    return {"basis": rule_set.basis.value, "max_ppn max_ranks max_size choice": rules}


def _rules_in(collective: str, written: Mapping[str, Any]) -> RuleSet:
    rules = tuple(Rule(p, r, s, parse_choice(c)) for p, r, s, c in written["max_ppn max_ranks max_size choice"])
    return RuleSet(collective, SizeBasis(written["basis"]), rules)
