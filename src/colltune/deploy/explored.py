"""Choices that the proof left open, for `colltune run --explore`: a folder ``candidates`` of the tuning directory.

It has their rules, as the live selector reads them, and a record of the tuning that they were left open by. Nothing but
``--explore`` reads it, and only what passed the conformance check gets into it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from colltune.catalog import load
from colltune.core.choice import Choice
from colltune.core.errors import ColltuneError, InputError, on_os_error
from colltune.deploy.applied import AppliedTuning
from colltune.emit.live_rules import LIVE_FILE, live_choices, live_faults
from colltune.machine.files import read_file, read_record, read_text
from colltune.machine.preload import PRELOAD, preload_variables
from colltune.store.tuning import MANIFEST, write_files

FOLDER = "candidates"
VARIABLE = "COLLTUNE_CANDIDATES"
_RECORD, _SCHEMA = "candidates.json", 1


class _OfTuning(msgspec.Struct):
    schema: int
    tuning: str


@dataclass(frozen=True)
class Candidates:
    """``rules``: the file. ``choices``: those of its rules, by their numbers."""

    rules: Path
    choices: tuple[Choice, ...]


def save_candidates(directory: Path, files: Mapping[str, bytes]) -> Candidates:
    """Writes the rules of candidates, ``files`` by name, for the tuning in ``directory``. Raises ColltuneError."""
    record = msgspec.json.encode(_OfTuning(_SCHEMA, _digest(directory))) + b"\n"
    with on_os_error(f"cannot write {directory / FOLDER}", "Make room there", ColltuneError):
        write_files(directory / FOLDER, {**files, _RECORD: record})
    return load_candidates(directory)


def load_candidates(directory: Path) -> Candidates:
    """The candidates of the tuning in ``directory``. Raises InputError where there are none, or of another tuning."""
    place = directory / FOLDER
    replay = f"Check their results in a job of this shape: colltune verify --results --candidates {directory}"
    try:
        record, text = read_record(read_file(place / _RECORD), _OfTuning), read_text(place / LIVE_FILE)
    except FileNotFoundError as error:
        raise InputError(
            f"what the proof of {directory} left open was not checked for wrong results", replay
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{place} cannot be read: {error}", replay) from error
    if record != _OfTuning(_SCHEMA, _digest(directory)):
        raise InputError(f"{place} was made for another tuning than {directory} holds now", replay)
    return Candidates((place / LIVE_FILE).resolve(), tuple(live_choices(text)))


def with_candidates(force: AppliedTuning, candidates: Candidates) -> AppliedTuning:
    """``force``, which is by way of the live selector, where it knows ``candidates`` too, also without a rule.

    Raises InputError for candidates that the selector should not follow.
    """
    made = force.tuning.environment
    for fault in live_faults(read_file(candidates.rules), None, load(made.mpi, made.mpi_version)):
        raise InputError(
            f"{candidates.rules}: {fault}", "Check their results again: colltune verify --results --candidates"
        )
    place = str(force.directory.resolve())
    variables = {name: value.replace("{directory}", place) for name, value in force.tuning.variables.items()}
    told = {**variables, **preload_variables(variables[PRELOAD], force.around), VARIABLE: str(candidates.rules)}
    return replace(force, variables=variables, told={**force.told, **told})


def _digest(directory: Path) -> str:
    """Of the manifest of the tuning, which changes with every campaign."""
    try:
        return hashlib.sha256(read_file(directory / MANIFEST)).hexdigest()
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}", "Give the directory of a tuning") from error
