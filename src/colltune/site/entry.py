"""An entry: what one job adds to the store, as compressed lines of a journal. Its name is the checksum of its bytes.

The lines are a header with the environment, a note ``entry`` with the provenance, the samples, a note ``compared``
followed by the samples of comparisons with the default in fresh launches, and a note ``file`` for each file of the
tuning that the job handed over. Each line has a checksum of its own; `zcat` shows it. Entries of one `Identity`
(machine, MPI build, thread level, fabric) speak of one another.
"""

import base64
import hashlib
import io
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

import msgspec

from colltune.core.errors import InputError
from colltune.core.extras import __version__
from colltune.core.hardware import Hardware
from colltune.core.sample import Environment, Sample, format_choice, parse_choice
from colltune.machine.files import unpacked
from colltune.machine.hardware_features import read_features
from colltune.machine.record import RunningMachine
from colltune.store.records import FORMAT, Fact, Header, Note, Record, RecordError, decode, encode

# Variables by which a user sends messages over another network than the library would.
_CHOSEN_BY = ("FI_PROVIDER", "UCX_TLS", "UCX_NET_DEVICES", "MPIR_CVAR_OFI_USE_PROVIDER", "OMPI_MCA_pml", "OMPI_MCA_mtl")
_DIGITS = 16
_UNUSUAL = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """``mpi_build``: the checksum of the library file. ``fabric``: the network between nodes, "" where nobody said."""

    machine: str
    mpi: str
    mpi_version: str
    mpi_build: str
    thread_level: str
    fabric: str

    @classmethod
    def of(cls, environment: Environment) -> "Identity":
        """That of measurements in ``environment``, whatever the shape of its job."""
        return cls(**{field.name: getattr(environment, field.name) for field in fields(cls)})

    @property
    def key(self) -> str:
        """A name of 16 hexadecimal digits, the same on every machine."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:_DIGITS]

    @property
    def label(self) -> str:
        """A short name for files, of letters, digits, dots and dashes: ``"mpich-5.0.2"``, with an unusual thread level.

        Entries come from any user: no path and no program is made of what they say.
        """
        level = "" if self.thread_level in ("", "single") else f"-{self.thread_level}"
        return _UNUSUAL.sub("_", f"{self.mpi}-{self.mpi_version}{level}").lstrip(".")[:80]

    def __str__(self) -> str:
        fabric = f", {self.fabric}" if self.fabric else ""
        return f"{self.mpi} {self.mpi_version} ({self.mpi_build[:8]}), {self.thread_level}, {self.machine}{fabric}"


def fabric_here(environ: Mapping[str, str]) -> str:
    """``describe_fabric`` of this node."""
    return describe_fabric(read_features(RunningMachine()), environ)


def describe_fabric(hardware: Hardware, environ: Mapping[str, str]) -> str:
    """The network of a node, as far as it is known, with what ``environ`` chooses of it: ``"infiniband 200 Gb/s"``."""
    rate = f" {hardware.link_gbits:g} Gb/s" if hardware.link_gbits else ""
    links = f" x {hardware.links}" if hardware.links and hardware.links > 1 else ""
    network = f"{hardware.fabric}{rate}{links}" if hardware.fabric else "unknown fabric"
    chosen = [f"{name}={environ[name]}" for name in _CHOSEN_BY if environ.get(name)]
    return ", ".join([network, *chosen])


SUFFIX = ".jsonl.gz"
SCHEMA = 1
# What an entry may hold (docs/design/site.md): no file of somebody else fills the memory or the time of its reader.
MOST_BYTES = 128 << 20  # uncompressed
MOST_RECORDS, MOST_TIMES = 200_000, 4_000_000  # lines; repetitions of all samples together
MOST_NODES, MOST_PPN = 1 << 20, 1 << 12  # of a job
_Name = Annotated[str, msgspec.Meta(max_length=255)]  # of a user, a job, a host, a file, a collective
_Text = Annotated[str, msgspec.Meta(max_length=1 << 16)]
_Hosts = Annotated[tuple[_Name, ...], msgspec.Meta(max_length=MOST_NODES)]
_Date = Annotated[float, msgspec.Meta(ge=0.0, lt=4102444800.0)]  # seconds since the epoch, before the year 2100
_GZIP = 31  # zlib's name for a gzip header


class BadEntryError(ValueError):
    """Bytes that are no entry, or not the one that they are named as. Never leaves ``colltune.site``."""


class RevokedError(BadEntryError):
    """An entry that the administrator does not want to be believed. Never leaves ``colltune.site``."""


class LaterEntryError(ValueError):
    """An entry of a later colltune, which is not at fault. Never leaves ``colltune.site``."""


@dataclass(frozen=True)
class Provenance:
    """Where an entry comes from. ``began_s`` and ``ended_s``: seconds since the epoch. ``job``: the scheduler's name of
    it, "" without one. ``hosts``: the nodes, in the order of the job. ``user``: a name for readers, which anybody may
    write there; who wrote an entry is its ``uid``."""

    command: str
    user: str
    job: str
    hosts: tuple[str, ...]
    began_s: float
    ended_s: float


@dataclass(frozen=True)
class Entry:
    """``samples``: as measured. ``compared``: comparisons, those of one look beside each other; launches are numbered.

    ``files``: the tuning that was handed over by their path in its directory; none where the job
    handed over none of its own. ``confirms``: the entry whose tuning it handed over instead, since it still holds.
    ``changed``: collectives of which it found that what was known before does not hold any more.
    ``uid``: of whoever added it: the owner of its file, once it was read.
    """

    environment: Environment
    provenance: Provenance
    samples: Sequence[Sample] = ()
    compared: Sequence[Sample] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    confirms: str = ""
    colltune: str = __version__
    changed: tuple[str, ...] = ()
    uid: int | None = field(default=None, compare=False)

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
    try:
        return _assembled(list(_read(unpacked(data, MOST_BYTES))), name)
    except RecordError as error:
        raise BadEntryError(f"a line of it is not one of a journal: {error}") from None
    except (KeyError, ValueError, InputError) as error:
        if isinstance(error, LaterEntryError | BadEntryError):
            raise
        what = repr(error) if isinstance(error, KeyError) else str(error)
        raise BadEntryError(f"it is not an entry: {what}") from None


def _read(text: bytes) -> Iterator[Record]:
    """The records of an entry, as long as they are no more than it may hold."""
    times = 0
    for number, line in enumerate(io.BytesIO(text)):
        record = decode(line.rstrip(b"\n"))
        times += len(record.times_s) if isinstance(record, Sample) else 0
        if number >= MOST_RECORDS or times > MOST_TIMES:
            raise BadEntryError(f"it holds over {MOST_RECORDS} records, or over {MOST_TIMES} times")
        yield record


def _records(entry: Entry) -> Iterator[Record]:
    yield Header(FORMAT, entry.colltune, entry.environment)
    provenance = entry.provenance
    facts: dict[str, Fact] = {
        "schema": SCHEMA,
        **vars(provenance),
        "hosts": json.dumps(provenance.hosts),
        "confirms": entry.confirms,
        "changed": json.dumps(entry.changed),
        "uid": os.geteuid() if entry.uid is None else entry.uid,
    }
    yield Note("entry", facts)
    yield from entry.samples
    yield Note("compared")
    yield from entry.compared
    for name, data in sorted(entry.files.items()):
        yield Note("file", {"name": name, "base64": base64.b64encode(data).decode("ascii")})


class _Facts(msgspec.Struct):
    """Those of the note ``entry``. ``hosts`` and ``changed`` are JSON in text."""

    command: _Text
    user: _Name
    job: _Name
    hosts: str
    began_s: _Date
    ended_s: _Date
    confirms: _Name
    changed: _Text = "[]"
    uid: int | None = None


def _assembled(records: Sequence[Record], name: str) -> Entry:
    if len(records) < 2 or not isinstance(records[0], Header) or not isinstance(records[1], Note):
        raise BadEntryError("it does not begin as an entry")
    header, begin = records[0], records[1]
    if header.format != FORMAT or (begin.kind == "entry" and begin.facts.get("schema") != SCHEMA):
        raise LaterEntryError(f"{name} was written by colltune {header.colltune_version}, and this is {__version__}")
    facts = msgspec.convert(begin.facts, _Facts)
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    files: dict[str, bytes] = {}
    place = 0
    for record in records[2:]:
        if isinstance(record, Sample):
            samples[place].append(record)
        elif isinstance(record, Note) and record.kind == "compared":
            place = 1
        elif isinstance(record, Note) and record.kind == "file":
            data = base64.b64decode(str(record.facts["base64"]), validate=True)
            files[_file_name(record.facts["name"])] = data
    for choice in {sample.choice for some in samples for sample in some}:
        if parse_choice(format_choice(choice)) != choice:
            raise BadEntryError(f"it names a choice {choice}")
    jobs = [(sample.scenario.nodes, sample.scenario.ppn) for some in samples for sample in some]
    for nodes, ppn in {(header.environment.nodes, header.environment.ppn), *jobs}:
        if not (1 <= nodes <= MOST_NODES and 1 <= ppn <= MOST_PPN):
            raise BadEntryError(f"no job has {nodes} nodes of {ppn} ranks")
    hosts = _in_text("hosts", facts.hosts, _Hosts)
    return Entry(
        header.environment,
        Provenance(facts.command, facts.user, facts.job, hosts, facts.began_s, facts.ended_s),
        *samples,
        files=files,
        confirms=facts.confirms,
        colltune=header.colltune_version,
        changed=_in_text("changed", facts.changed, tuple[_Name, ...]),
        uid=facts.uid,
    )


def _in_text(name: str, text: str, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadEntryError(f"its {name} cannot be read: {error}") from None


def _file_name(value: Fact) -> str:
    """A name that stays inside of the directory into which it is written, and that can be shown."""
    name = str(value)
    if not name.isprintable() or any(part in ("", ".", "..") or len(part.encode()) > 255 for part in name.split("/")):
        raise BadEntryError(f"it names a file {name[:80]!r}")
    return name
