"""How a program is started with libcolltune.so in it, and its profile as a file: JSON, for people and programs."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from colltune.core.errors import InputError, on_os_error
from colltune.machine.compile import PRELOAD, preload_variables
from colltune.machine.file_formats import PROFILES, Format, require_format
from colltune.machine.files import parse_json, read_file, read_record, unpacked, write_atomically
from colltune.mpi.program import forwarded
from colltune.profile.application_profile import Profile
from colltune.profile.parts import part_files, read_parts

VARIABLE = "COLLTUNE_PROFILE"


def preload_environment(library: Path, profile: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with the library loaded first, and the file to write."""
    return {**environment, **profile_variables(library, profile, environment)}


def profile_variables(library: Path, profile: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What ``environment`` needs for that."""
    return {**preload_variables(library, environment), VARIABLE: str(profile.resolve())}


def preload_command(command: Sequence[str], mpi: str) -> list[str]:
    """``command`` such that the ranks on other nodes get the variables too, of which some launchers have to be told."""
    return [command[0], *forwarded(command[0], mpi, (PRELOAD, VARIABLE)), *command[1:]]


SCHEMA = 1
_KIND = "colltune-profile"
_MAKE = "Make one: colltune profile --out app.json -- mpiexec -n 4 ./{}"


class _Head(msgspec.Struct):
    kind: str
    schema: int


def save_profile(path: Path, profile: Profile) -> None:
    """In one step: a reader sees the old file or the new one. Raises InputError where it cannot be written."""
    content = {"kind": _KIND, "schema": SCHEMA, **dataclasses.asdict(profile)}
    for calls, written in zip(profile.calls, content["calls"], strict=True):
        written["calls"] = calls.calls
    with on_os_error(f"cannot write {path}", "Give another file by --out"):
        write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def load_profile(path: Path) -> Profile:
    """Raises InputError for what is no profile. Of a job that was cut off, its parts are read."""
    if not path.exists() and (parts := part_files(path)):
        return read_parts(parts)
    try:
        data = read_file(path, link=True)
        make = _MAKE.format(path.name if b"\0" in data[:512] else "app")
        kind, packed = require_format(path, data, PROFILES, "profile", make)
        if kind is Format.PART:
            return read_parts([path])
        data = unpacked(data) if packed else data
        parse_json(data)  # which refuses numbers without end
        head = read_record(data, _Head)
        if head.kind != _KIND or head.schema != SCHEMA:
            raise InputError(f"{path} is no profile of this version of colltune", "Run `colltune profile` again")
        return read_record(data, Profile)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", _MAKE.format("app")) from error
    except ValueError as error:
        raise InputError(f"{path} is no profile: {error}", "Run `colltune profile` again") from error
