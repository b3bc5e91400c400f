"""Mutations of valid files, drawn from a ``Random``: one of hypothesis, which can shrink it, or one with a seed.

Each kind of file is changed where its reader looks: JSON by its values and keys, lines by their words and numbers, what
has a checksum or is compressed below both.
"""

import contextlib
import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

Mutation = Callable[[bytes, Random], bytes]

# Numbers without bound, numbers that are none, digits of other scripts, text that is none.
_WORDS = (
    *("0", "-1", "1", "1e999", "-1e999", "NaN", "Infinity", "9" * 5000, "9" * 400, "1" + "0" * 310, "-0", "1e-320"),
    *("0x10", "007", "1_0", str(2**31), str(2**63), str(2**64), str(-(2**63)), "1000000000", "4096", "1099511627776"),
    *("\u0663", "\u00b2", "", " ", "\x00", "\x1b[2J", "\ud800", "\u202e", "%s%n", "../../etc/passwd", "/dev/zero"),
    *("=", ",", "[", "]", "[" * 3000, "{", "(", "-", "#", "\n", "x" * 70000, "null", "true", "any", "1(x9999999)"),
    "n[1-999999999]",
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, -0.0, 1e308, float("inf"), float("nan")),
    *(2**31, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, 10**3000),
    *("", "x", "9" * 5000, "\ud800", "\x00", "\x1b[2J", "a" * 70000, "/dev/zero", "..", "default", f"ring(k={9**30})"),
    *([], {}, [[]], [0], [None], {"": None}, [1, "x"], {"a": {"b": []}}),
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_TOKEN = re.compile(rb"[^\s=,:;()\[\]]+")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def of_bytes(data: bytes, random: Random) -> bytes:
    """Some bytes are changed, cut out, doubled or put in."""
    made = bytearray(data)
    for _ in range(random.randint(1, 4)):
        place = random.randint(0, len(made))
        size = random.choice((1, 1, 2, 8, 64))
        match random.randint(0, 4):
            case 0:
                made[place : place + size] = random.randbytes(len(made[place : place + size]))
            case 1:
                del made[place : place + size]
            case 2:
                made[place:place] = random.randbytes(size)
            case 3:
                made[place:place] = made[place : place + size]
            case _:
                del made[place:]
    return bytes(made)


def of_lines(data: bytes, random: Random) -> bytes:
    """Some words, numbers or lines are replaced, left out, doubled or moved."""
    made = data
    for _ in range(random.randint(1, 3)):
        match random.randint(0, 5):
            case 0 | 1:
                made = _replaced(made, random.choice((_NUMBER, _TOKEN)), random)
            case 2 | 3 as kind:
                lines = made.splitlines(keepends=True)
                if lines and kind == 2:
                    del lines[random.randrange(len(lines))]
                elif lines:
                    lines.insert(random.randint(0, len(lines)), random.choice(lines))
                made = b"".join(lines)
            case 4:
                place = random.randint(0, len(made))
                made = made[:place] + _encoded(random.choice(_WORDS)) + made[place:]
            case _:
                made = of_bytes(made, random)
    return made


def _replaced(data: bytes, pattern: re.Pattern[bytes], random: Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = random.choice(found)
    return data[: match.start()] + _encoded(random.choice(_WORDS)) + data[match.end() :]


def of_value(document: Any, random: Random) -> Any:
    """One value, key or item anywhere in ``document`` is replaced, left out or put in."""
    places: list[tuple[Any, Any]] = []
    level = [document]
    while level:
        one = level.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            places.append((one, key))
            level.append(one[key])
    if not places:
        return random.choice(_VALUES)
    for _ in range(random.randint(1, 2)):
        holder, key = random.choice(places)
        with contextlib.suppress(LookupError):
            match random.randint(0, 6):
                case 0:
                    del holder[key]
                case 1 if isinstance(holder, dict):
                    holder[random.choice(_WORDS)] = holder.pop(key)
                case 2 if isinstance(holder, list):
                    holder.insert(random.randint(0, len(holder)), random.choice(holder))
                case 3 if isinstance(holder[key], str):
                    holder[key] = of_lines(_encoded(holder[key]), random).decode("utf-8", "replace")
                case 4:
                    other, there = random.choice(places)
                    holder[key] = json.loads(_dumped(other[there]))
                case _:
                    holder[key] = random.choice(_VALUES)
    return document


def _dumped(document: Any) -> bytes:
    return _encoded(json.dumps(document))


def of_json(data: bytes, random: Random) -> bytes:
    """Mostly JSON still."""
    if random.random() < 0.2:
        return of_lines(data, random)
    if random.random() < 0.05:
        deep = random.choice((50, 500, 100_000))
        return data.replace(b"1", b"[" * deep + b"]" * deep, 1)
    try:
        return _dumped(of_value(json.loads(data), random))
    except (ValueError, RecursionError):  # changed before, so that it is no JSON any more
        return of_lines(data, random)


_HEAD = len(b'{"crc32":"00000000",')


def of_journal(data: bytes, random: Random) -> bytes:
    """Lines of a journal, each with the checksum that fits."""
    if random.random() < 0.1:
        return of_lines(data, random)
    lines = data.splitlines() or [b""]
    for _ in range(random.randint(1, 2)):
        number = random.randrange(len(lines))
        body = of_json(b"{" + lines[number][_HEAD:], random)[1:]
        lines[number] = b'{"crc32":"%08x",%b' % (zlib.crc32(body), body)
    return b"\n".join(lines) + b"\n"


def compressed(inner: Mutation) -> Mutation:
    """What is gzipped, below it."""

    def mutation(data: bytes, random: Random) -> bytes:
        if random.random() < 0.9:
            with contextlib.suppress(OSError, EOFError, zlib.error):
                return gzip.compress(inner(gzip.decompress(data), random), 1)
        return of_bytes(data, random)

    return mutation


def of_arrays(data: bytes, random: Random) -> bytes:
    """An archive of NumPy: one of its arrays is changed, in its head or its numbers, left out or doubled."""
    if random.random() < 0.1 or not zipfile.is_zipfile(io.BytesIO(data)):
        return of_bytes(data, random)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice([*parts, "head.npy"])
    if name == "head.npy" and name in parts:
        place = len(parts[name]) - len(parts[name].partition(b"\n")[2])
        text = of_json(parts[name][place:], random)
        header = re.sub(rb"'shape': \(\d+,\)", b"'shape': (%d,)" % len(text), parts[name][10:place].rstrip())
        header = header.ljust(place - 11) + b"\n"
        parts[name] = parts[name][:8] + len(header).to_bytes(2, "little") + header + text
    elif random.random() < 0.2:
        del parts[name]
    else:
        parts[name] = of_array(parts[name], random)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for each, content in parts.items():
            archive.writestr(each, content)
    return buffer.getvalue()


def of_array(data: bytes, random: Random) -> bytes:
    """A .npy: its head by words, its numbers by bytes."""
    head, newline, numbers = data.partition(b"\n")
    if random.random() < 0.5:
        return head + newline + of_bytes(numbers, random)
    made = of_lines(head[10:], random) + b"\n"
    length = len(made) if random.random() < 0.8 else random.choice((0, 1, 65535))
    return head[:8] + min(length, 65535).to_bytes(2, "little") + made + numbers
