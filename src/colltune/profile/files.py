"""Profiles as files: JSON, for people and programs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from colltune.core.errors import InputError
from colltune.machine.files import parse_json, read_file, write_atomically
from colltune.profile.application import Blocks, Calls, Communicator, Profile
from colltune.profile.parts import part_files, read_parts

SCHEMA = 1
_KIND = "colltune-profile"


def save_profile(path: Path, profile: Profile) -> None:
    """In one step: a reader sees the old file or the new one. Raises InputError where it cannot be written."""
    content = {"kind": _KIND, "schema": SCHEMA, **dataclasses.asdict(profile)}
    for calls, written in zip(profile.calls, content["calls"], strict=True):
        written["calls"] = calls.calls
    try:
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}", "Give another file by --out") from error


def load_profile(path: Path) -> Profile:
    """Raises InputError for what is no profile. Of a job that was cut off hard, its parts are read."""
    if not path.exists() and (parts := part_files(path)):
        return read_parts(parts)
    try:
        content: dict[str, Any] = parse_json(read_file(path, link=True))
        if content.pop("kind") != _KIND or content.pop("schema") != SCHEMA:
            raise InputError(f"{path} is no profile of this version of colltune", "Run `colltune profile` again")
        calls = tuple(_calls_in(one) for one in content.pop("calls"))
        seen = tuple((Communicator(**one), count) for one, count in content.pop("communicators"))
        command = tuple(content.pop("command"))
        return Profile(calls=calls, communicators=seen, command=command, **content)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "Make one: colltune profile -- mpiexec -n 4 ./app") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is no profile: {error!r}", "Run `colltune profile` again") from error


def _calls_in(written: dict[str, Any]) -> Calls:
    del written["calls"]
    blocks = written.pop("blocks")
    where = Communicator(**written.pop("communicator"))
    return Calls(communicator=where, blocks=None if blocks is None else Blocks(**blocks), **written)
