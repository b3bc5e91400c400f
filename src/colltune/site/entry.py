"""An entry: what one job adds to the store, as compressed lines of a journal. Its name is the checksum of its bytes.

The lines are a header with the environment, a note ``entry`` with the provenance, the samples, a note ``compared``
followed by the samples of comparisons with the default in fresh launches, a note ``file`` for each file of the
tuning that the job handed over, and a note ``run`` for each file of a measured run of an application. Each line has
a checksum of its own; `zcat` shows it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from math import isfinite

from colltune.core.choice import format_choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.sample import Environment, Sample
from colltune.core.version import __version__
from colltune.site.identity import Identity
from colltune.store.records import FORMAT, Fact, Header, Note, RecordError, decode, encode

SUFFIX = ".jsonl.gz"
SCHEMA = 1
# What an entry may hold uncompressed: a small file must not fill the memory of whoever reads it.
MOST_BYTES = 256 << 20
_GZIP = 31  # zlib's name for a gzip header


class BadEntryError(ValueError):
    """Bytes that are no entry, or not the one that they are named as. Never leaves ``colltune.site``."""


class LaterEntryError(ValueError):
    """An entry of a later colltune, which is not at fault. Never leaves ``colltune.site``."""


@dataclass(frozen=True)
class Provenance:
    """Where an entry comes from. ``began_s`` and ``ended_s``: seconds since the epoch. ``job``: the scheduler's name of
    it, "" without one. ``hosts``: the nodes, in the order of the job."""

    command: str
    user: str
    job: str
    hosts: tuple[str, ...]
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Saved:
    """What a measured run of an application says of its tuning, in node-seconds (seconds times nodes).

    ``run``: how long it ran. ``saved``: what it would have taken longer by default, with its 95% interval; a bound is
    None where the run had too few pairs of blocks for one.
    """

    run: float
    saved: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Entry:
    """``samples``: as measured. ``compared``: comparisons, those of one look beside each other; launches are numbered.

    ``files``: the tuning that was handed over by their path in its directory; none where the job
    handed over none of its own. ``confirms``: the entry whose tuning it handed over instead, since it still holds.
    ``changed``: collectives of which it found that what was known before does not hold any more.
    ``run``: the files of a run of an application that was measured under the ``release``, "" for none; ``saved``: what
    they come to, None where there is no run.
    """

    environment: Environment
    provenance: Provenance
    samples: Sequence[Sample] = ()
    compared: Sequence[Sample] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    confirms: str = ""
    colltune: str = __version__
    changed: tuple[str, ...] = ()
    release: str = ""
    run: Mapping[str, bytes] = field(default_factory=dict)
    saved: Saved | None = None

    @property
    def identity(self) -> Identity:
        return Identity.of(self.environment)


def name_of(data: bytes) -> str:
    """The name of the entry with these bytes."""
    return hashlib.sha256(data).hexdigest()


def pack(entry: Entry) -> bytes:
    """``entry`` in bytes; equal entries give equal ones. Raises MeasurementError for what JSON cannot hold exactly."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    parts = [compressor.compress(encode(record)) for record in _records(entry)]
    return b"".join([*parts, compressor.flush()])


def unpack(data: bytes, name: str) -> Entry:
    """The inverse of ``pack``, for the entry ``name``. Raises BadEntryError and LaterEntryError."""
    if name_of(data) != name:
        raise BadEntryError("its bytes are not those that its name says")
    inflate = zlib.decompressobj(_GZIP)
    try:
        text = inflate.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise BadEntryError(f"it cannot be uncompressed ({error})") from None
    if not inflate.eof:
        raise BadEntryError("it is cut short, or holds more than an entry may")
    try:
        records = [decode(line) for line in text.splitlines()]
        return _assembled(records, name)
    except RecordError as error:
        raise BadEntryError(f"a line of it is not one of a journal: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error, InputError) as error:
        if isinstance(error, LaterEntryError | BadEntryError):
            raise
        raise BadEntryError(f"it is not an entry: {error!r}") from None


def _records(entry: Entry) -> Iterator[Header | Sample | Note]:
    yield Header(FORMAT, entry.colltune, entry.environment)
    said = entry.provenance
    facts: dict[str, Fact] = {
        "schema": SCHEMA,
        "command": said.command,
        "user": said.user,
        "job": said.job,
        "hosts": json.dumps(said.hosts),
        "began_s": said.began_s,
        "ended_s": said.ended_s,
        "confirms": entry.confirms,
        "changed": json.dumps(entry.changed),
        **({"release": entry.release} if entry.release else {}),
        **({"saved": json.dumps(astuple(entry.saved))} if entry.saved is not None else {}),
    }
    yield Note("entry", facts)
    yield from entry.samples
    yield Note("compared")
    yield from entry.compared
    for kind, files in (("file", entry.files), ("run", entry.run)):
        for name, data in sorted(files.items()):
            yield Note(kind, {"name": name, "base64": base64.b64encode(data).decode("ascii")})


def _assembled(records: Sequence[Header | Sample | Note], name: str) -> Entry:
    if len(records) < 2 or not isinstance(records[0], Header) or not isinstance(records[1], Note):
        raise BadEntryError("it does not begin as an entry")
    header, said = records[0], records[1].facts
    if header.format != FORMAT or (said["schema"] != SCHEMA and records[1].kind == "entry"):
        raise LaterEntryError(f"{name} was written by colltune {header.colltune_version}, and this is {__version__}")
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    files: dict[str, dict[str, bytes]] = {"file": {}, "run": {}}
    place = 0
    for record in records[2:]:
        if isinstance(record, Sample):
            samples[place].append(record)
        elif isinstance(record, Note) and record.kind == "compared":
            place = 1
        elif isinstance(record, Note) and record.kind in files:
            data = base64.b64decode(str(record.facts["base64"]), validate=True)
            files[record.kind][_file_name(record.facts["name"])] = data
    for choice in {one.choice for some in samples for one in some}:
        if parse_choice(format_choice(choice)) != choice:
            raise BadEntryError(f"it names a choice {choice}")
    provenance = Provenance(
        command=str(said["command"]),
        user=str(said["user"]),
        job=str(said["job"]),
        hosts=tuple(str(host) for host in json.loads(str(said["hosts"]))),
        began_s=_number(said["began_s"]),
        ended_s=_number(said["ended_s"]),
    )
    confirms = str(said["confirms"])
    changed = tuple(str(name) for name in json.loads(str(said.get("changed", "[]"))))
    release, version = str(said.get("release", "")), header.colltune_version
    return Entry(
        header.environment,
        provenance,
        *samples,
        files=files["file"],
        confirms=confirms,
        colltune=version,
        changed=changed,
        release=release,
        run=files["run"],
        saved=_saved(json.loads(str(said["saved"]))) if "saved" in said else None,
    )


def _saved(values: object) -> Saved:
    if not isinstance(values, list) or len(values) != 4:
        raise BadEntryError(f"{values!r} is not what a run saved")
    run, saved, low, high = (None if one is None else _number(one) for one in values)
    if run is None or saved is None or not all(isfinite(one) for one in (run, saved, low or 0.0, high or 0.0)):
        raise BadEntryError(f"{values!r} is not what a run saved")
    return Saved(run, saved, low, high)


def _file_name(value: Fact) -> str:
    """A name that stays inside of the directory into which it is written."""
    parts = str(value).split("/")
    if not value or any(part in ("", ".", "..") for part in parts):
        raise BadEntryError(f"it names a file {value!r}")
    return str(value)


def _number(value: Fact) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadEntryError(f"{value!r} is not a time")
    return float(value)
