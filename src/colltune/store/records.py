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

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from colltune.core.choice import Choice
from colltune.core.errors import MeasurementError
from colltune.core.sample import Environment, Overlap, Sample, Status
from colltune.core.scenario import Scenario

FORMAT = 1

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
        return _from_json(json.loads(b"{" + body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
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


def _to_json(record: Record) -> dict[str, Any]:
    match record:
        case Header():
            environment = asdict(record.environment)
            return {"journal": record.format, "colltune": record.colltune_version, "environment": environment}
        case Sample():
            return {"sample": _sample_to_json(record)}
        case Note():
            return {"note": record.kind, "facts": record.facts}


def _sample_to_json(sample: Sample) -> dict[str, Any]:
    document: dict[str, Any] = {
        **asdict(sample.scenario),
        "algorithm": sample.choice.algorithm,
        "parameters": sample.choice.parameters,
        "status": sample.status.value,
        "repetitions": len(sample.times_s),
        "times": pack_times(sample.times_s) if sample.times_s else "",
    }
    for name in ("back_to_back_s", "osu_mean_s", "cost_s", "launch", "group", "started_s", "detail"):
        document[name] = getattr(sample, name)
    if sample.skewed_s is not None:
        document["skewed_s"] = sample.skewed_s
    if sample.overlap is not None:
        document["overlap_s"] = list(sample.overlap)
    return document


def _from_json(document: dict[str, Any]) -> Record:
    if "sample" in document:
        return _sample_from_json(document["sample"])
    if "note" in document:
        facts = document["facts"]
        if not all(value is None or isinstance(value, str | int | float) for value in facts.values()):
            raise RecordError("the facts of a note must be plain values")
        return Note(_text(document["note"]), dict(facts))
    version = _whole(document["journal"])
    if version != FORMAT:
        # Only the version can be understood; the reader says what to do about it.
        return Header(version, str(document.get("colltune", "")), Environment("", "", "", "", 0, 0, ""))
    return Header(version, _text(document["colltune"]), _environment(document["environment"]))


def _environment(document: Mapping[str, Any]) -> Environment:
    texts = {name: _text(document[name]) for name in ("mpi", "mpi_version", "mpi_build", "machine", "thread_level")}
    facts = {_text(name): _text(value) for name, value in document["facts"].items()}
    return Environment(nodes=_whole(document["nodes"]), ppn=_whole(document["ppn"]), facts=facts, **texts)


def _sample_from_json(document: Mapping[str, Any]) -> Sample:
    count = _whole(document["repetitions"])
    parameters = tuple((_text(name), _value(value)) for name, value in document["parameters"])
    scenario = Scenario(
        _text(document["collective"]),
        *(_whole(document[name]) for name in ("nodes", "ppn", "size_bytes")),
    )
    return Sample(
        scenario=scenario,
        choice=Choice(_text(document["algorithm"]), parameters),
        status=Status(document["status"]),
        times_s=unpack_times(_text(document["times"]), count) if count else (),
        back_to_back_s=_optional_number(document["back_to_back_s"]),
        osu_mean_s=_optional_number(document["osu_mean_s"]),
        cost_s=_number(document["cost_s"]),
        launch=_whole(document["launch"]),
        group=_whole(document["group"]),
        started_s=_number(document["started_s"]),
        detail=_text(document["detail"]),
        skewed_s=_optional_number(document.get("skewed_s")),
        overlap=_overlap(document["overlap_s"]) if "overlap_s" in document else None,
    )


def _overlap(numbers: Sequence[object]) -> Overlap:
    if len(numbers) != len(Overlap._fields):
        raise RecordError(f"{numbers!r} are not the figures of an overlap")
    return Overlap(*map(_number, numbers))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{value!r} is not text")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(f"{value!r} is not a whole number")
    return value


def _value(value: object) -> int | str:
    return value if isinstance(value, str) else _whole(value)


def _number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise RecordError(f"{value!r} is not a number")
    return value


def _optional_number(value: object) -> float | None:
    return None if value is None else _number(value)
