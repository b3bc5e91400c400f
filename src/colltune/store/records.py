"""The lines of a journal: one JSON object each, with a checksum of its own.

A line is ``{"crc32":"<8 hex digits>",<body>`` and a newline. The checksum is over the bytes of ``<body>`` as they
stand, so it can be verified without writing the JSON again. The body holds one of

``"journal"``  the header: format version, colltune version, environment (the first line, and only there)
``"sample"``   one Sample
``"note"``     an event: its kind and its facts

The repetitions of a sample are stored without loss: 64-bit floats, little-endian, grouped by byte (the lowest byte of
every time, then the next, and so on), deflated, in base64. Grouping helps because similar times share their high
bytes. Whole nanoseconds in 32 bits are not enough: a repetition can take seconds, and a clock may be finer.
"""

import base64
import binascii
import json
import re
import struct
import zlib
from dataclasses import asdict, dataclass, field
from typing import Annotated

import msgspec

from colltune.core.disturbance import Load
from colltune.core.errors import MeasurementError
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status

FORMAT = 1
# Ten times those of the measuring program (CT_MAX_REPETITIONS).
MOST_REPETITIONS = 1_000_000

Fact = str | int | float | bool | None

_PREFIX = re.compile(rb'\{"crc32":"([0-9a-f]{8})",')
_TORN_HEADER = b'{"crc32":"00000000","journal":'


class RecordError(ValueError):
    """A line that no journal wrote, or that was changed since. Raised and caught inside ``colltune.store`` only."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a journal."""

    format: int
    colltune_version: str
    environment: Environment


@dataclass(frozen=True, slots=True)
class Note:
    """Something that happened beside the samples: a launch, a quarantine."""

    kind: str
    facts: dict[str, Fact] = field(default_factory=dict, hash=False)


Record = Header | Sample | Note
Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _Sample(msgspec.Struct):
    """A sample as a line holds it."""

    collective: str
    nodes: Count
    ppn: Count
    size_bytes: Count
    algorithm: str
    parameters: tuple[tuple[str, Whole | str], ...]
    status: Status
    repetitions: Annotated[int, msgspec.Meta(ge=0, le=MOST_REPETITIONS)]
    times: str
    back_to_back_s: float | None
    osu_mean_s: float | None
    cost_s: float
    launch: Count
    group: Count
    started_s: float
    detail: str
    skewed_s: float | None = None
    faults: float = 0.0
    kept_s: float | None = None
    untouched_s: float | None = None
    load: Load | None = None


class _Line(msgspec.Struct):
    """One of ``sample``, ``note`` and ``journal``, and what belongs to it."""

    sample: _Sample | None = None
    note: str | None = None
    facts: dict[str, str | Whole | float | bool | None] = {}
    journal: Whole | None = None
    colltune: str = ""
    environment: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Line)
# Fields that a line has under the names of `Sample`: in all lines, and where they are known.
_ALWAYS = ("back_to_back_s", "osu_mean_s", "cost_s", "launch", "group", "started_s", "detail")
_SOMETIMES = ("skewed_s", "kept_s", "untouched_s")


def encode(record: Record) -> bytes:
    """The line of ``record``, newline included. Raises MeasurementError for what JSON cannot hold exactly."""
    try:
        body = json.dumps(_to_json(record), separators=(",", ":"), allow_nan=False).encode("ascii")[1:]
    except (TypeError, ValueError) as error:
        raise MeasurementError(f"cannot be written to the journal: {error} in {record!r}") from error
    return b'{"crc32":"%08x",%b\n' % (zlib.crc32(body), body)


def decode(line: bytes) -> Record:
    """The inverse of encode, for a line without its newline. Raises RecordError for any other bytes."""
    match = _PREFIX.match(line)
    if match is None:
        raise RecordError("it does not begin like a record")
    body = line[match.end() :]
    if zlib.crc32(body) != int(match.group(1), 16):
        raise RecordError("its checksum is wrong")
    try:
        held = _DECODER.decode(b"{" + body)
        if held.sample is not None:
            return _sample(held.sample)
        return _header(held) if held.note is None else Note(held.note, held.facts)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RecordError(f"it holds no valid record ({error})") from error


def could_be_torn_header(data: bytes) -> bool:
    """Whether ``data``, without a newline, may be what is left of a header that was cut off while it was written."""
    start = bytearray(data[: len(_TORN_HEADER)])
    digits = slice(len(b'{"crc32":"'), len(b'{"crc32":"00000000'))
    if re.fullmatch(rb"[0-9a-f]*", start[digits]) is None:
        return False
    start[digits] = b"0" * len(start[digits])
    return _TORN_HEADER.startswith(start)


def pack_times(times_s: tuple[float, ...]) -> str:
    """Times in seconds -> text, without loss."""
    planes = struct.pack(f"<{len(times_s)}d", *times_s)
    grouped = b"".join(planes[byte::8] for byte in range(8))
    return base64.b64encode(zlib.compress(grouped)).decode("ascii")


def unpack_times(text: str, count: int) -> tuple[float, ...]:
    """The inverse of pack_times. Raises RecordError for text that does not hold ``count`` times."""
    inflate = zlib.decompressobj()
    try:
        grouped = inflate.decompress(base64.b64decode(text, validate=True), 8 * count + 1)
    except (binascii.Error, zlib.error) as error:
        raise RecordError(f"its times cannot be read ({error})") from error
    if len(grouped) != 8 * count or not inflate.eof:
        raise RecordError(f"it does not hold the {count} times that it declares")
    planes = bytearray(8 * count)
    for byte in range(8):
        planes[byte::8] = grouped[byte * count : (byte + 1) * count]
    return struct.unpack(f"<{count}d", planes)


def _to_json(record: Record) -> dict[str, object]:
    match record:
        case Header():
            environment = asdict(record.environment)
            return {"journal": record.format, "colltune": record.colltune_version, "environment": environment}
        case Sample():
            return {"sample": _sample_to_json(record)}
        case Note():
            return {"note": record.kind, "facts": record.facts}


def _sample_to_json(sample: Sample) -> dict[str, object]:
    document: dict[str, object] = {
        **asdict(sample.scenario),
        "algorithm": sample.choice.algorithm,
        "parameters": sample.choice.parameters,
        "status": sample.status.value,
        "repetitions": len(sample.times_s),
        "times": pack_times(sample.times_s) if sample.times_s else "",
    }
    document |= {name: getattr(sample, name) for name in _ALWAYS}
    more = {name: getattr(sample, name) for name in _SOMETIMES} | {"faults": sample.faults or None}
    document |= {name: value for name, value in more.items() if value is not None}
    if sample.load is not None:
        document["load"] = list(sample.load)
    return document


def _header(line: _Line) -> Header:
    if line.journal is None:
        raise RecordError("it is neither a header nor a sample nor a note")
    if line.journal != FORMAT:
        # Only the version can be understood; the reader says what to do about it.
        return Header(line.journal, line.colltune, Environment("", "", "", "", 0, 0, ""))
    return Header(line.journal, line.colltune, msgspec.json.decode(line.environment, type=Environment))


def _sample(held: _Sample) -> Sample:
    scenario = Scenario(held.collective, held.nodes, held.ppn, held.size_bytes)
    times_s = unpack_times(held.times, held.repetitions) if held.repetitions else ()
    same = {name: getattr(held, name) for name in (*_ALWAYS, *_SOMETIMES, "status", "faults", "load")}
    return Sample(scenario, Choice(held.algorithm, held.parameters), times_s=times_s, **same)
