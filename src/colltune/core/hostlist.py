"""Host lists as Slurm and Flux write them: ``rack[1-2]n[01-03,7]``."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product

from colltune.core.errors import InputError

# More hosts than any machine has; a list that expands beyond is a mistake, and would fill the memory.
MOST_HOSTS = 1 << 20
_PART = re.compile(r"([^\[\],\s]*)(?:\[([0-9,\-\s]*)\])?")
_RANGE = re.compile(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", re.ASCII)
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.ASCII | re.DOTALL)
_NAME = re.compile(r"[^\[\],\s]+")


def expand_hostlist(text: str) -> list[str]:
    """``"n[08-10],login"`` -> ``["n08", "n09", "n10", "login"]``; several brackets multiply, the last runs fastest.

    The width of the first number of a range is the width of them all. Raises InputError for text that is no host
    list, and for one of more than a million hosts.
    """
    hosts: list[str] = []
    for item in _items(text):
        for host in _expand_item(item, text):
            hosts.append(host)
            if len(hosts) > MOST_HOSTS:
                raise InputError(f"the host list {_shown(text)} names more than {MOST_HOSTS} hosts")
    return hosts


def compress_hostlist(hosts: Iterable[str]) -> str:
    """The inverse of expand_hostlist, in the same order. Raises InputError for what is no host name."""
    items: list[str] = []
    for (before, after, numbered), alike in groupby(map(_parts, hosts), lambda part: (part[0], part[2], part[1] != "")):
        ranges: list[tuple[str, str]] = []
        for _, digits, _ in alike:
            first, last = ranges[-1] if ranges else ("", "")
            if last and str(int(last) + 1).zfill(len(first)) == digits:
                ranges[-1] = (first, digits)
            else:
                ranges.append((digits, digits))
        shown = [first if first == last else f"{first}-{last}" for first, last in ranges]
        if numbered and shown != [ranges[0][0]]:
            shown = [f"[{','.join(shown)}]"]
        items += [f"{before}{text}{after}" for text in shown]
    return ",".join(items)


def _parts(host: str) -> tuple[str, str, str]:
    """What stands before the first number of a name, the number, and what follows; without one all is before it."""
    if _NAME.fullmatch(host) is None:
        raise InputError(f"{host!r} is not a host name")
    match = _NUMBERED.fullmatch(host)
    return (host, "", "") if match is None else (match[1], match[2], match[3])


def parse_counts(text: str) -> list[int]:
    """Slurm's counts per node: ``"2(x3),1"`` -> ``[2, 2, 2, 1]``. Raises InputError for anything else."""
    counts: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:\(x([0-9]{1,7})\))?\s*", item, re.ASCII)
        if match is None:
            raise InputError(f"cannot read the counts per node {_shown(text)}", "Slurm writes for example 2(x3),1")
        counts.extend([int(match.group(1))] * int(match.group(2) or 1))
        if len(counts) > MOST_HOSTS:
            raise InputError(f"the counts per node {_shown(text)} are of more than {MOST_HOSTS} hosts")
    return counts


def _items(text: str) -> Iterator[str]:
    """Splits at the commas outside brackets."""
    start, depth = 0, 0
    for position, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise _unreadable(text, "its brackets do not match")
        if letter == "," and depth == 0:
            yield text[start:position].strip()
            start = position + 1
    if depth:
        raise _unreadable(text, "its brackets do not match")
    yield text[start:].strip()


def _expand_item(item: str, text: str) -> Iterator[str]:
    parts: list[Sequence[str]] = []
    total, position = 1, 0
    while position < len(item):
        match = _PART.match(item, position)
        if match is None or match.end() == position:
            raise _unreadable(text, f"at {item[position:][:20]!r}")
        literal, ranges = match.groups()
        parts.append([literal])
        if ranges is not None:
            parts.append(_numbers(ranges, text))
        total *= len(parts[-1])
        if total > MOST_HOSTS:
            raise InputError(f"the host list {_shown(text)} names more than {MOST_HOSTS} hosts")
        position = match.end()
    if not parts:
        raise _unreadable(text, "it has an empty item")
    return ("".join(letters) for letters in product(*parts))


def _numbers(ranges: str, text: str) -> list[str]:
    numbers: list[str] = []
    for item in ranges.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise _unreadable(text, f"at [{ranges[:20]}]")
        first, last = match.group(1), match.group(2) or match.group(1)
        count = int(last) - int(first) + 1
        if count < 1:
            raise _unreadable(text, f"the range {item.strip()} runs backwards")
        if len(numbers) + count > MOST_HOSTS:
            raise InputError(f"the host list {_shown(text)} names more than {MOST_HOSTS} hosts")
        numbers.extend(str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))
    return numbers


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _unreadable(text: str, why: str) -> InputError:
    return InputError(f"cannot read the host list {_shown(text)}: {why}", "Slurm writes for example n[01-16,20]")
