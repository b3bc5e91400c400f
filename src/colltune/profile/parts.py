"""Reads what libcolltune.so wrote: lines of ``word name=value ...``, one file of all ranks, or one of each."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from colltune.core.errors import InputError
from colltune.machine.files import read_text
from colltune.profile.application_profile import Calls, Communicator, CountsPerRank, Profile

_HEAD = "colltune-profile 1"
_MERGED = ".all"
_Key = tuple[Communicator, str, str, str, int]


@dataclasses.dataclass
class _Part:
    path: Path
    job: dict[str, str]
    ended: str
    rows: list[tuple[str, dict[str, str]]]


def part_files(path: Path) -> list[Path]:
    """The files of a job's profile ``path``: that of all ranks if there is one, else those of single ranks."""
    merged = path.with_name(path.name + _MERGED)
    if merged.is_file():
        return [merged]
    ranks = [file for file in path.parent.glob(path.name + ".*") if file.name.removeprefix(path.name + ".").isdecimal()]
    return sorted(ranks, key=lambda rank: int(rank.suffix[1:]))


def read_parts(files: Iterable[Path]) -> Profile:
    """One profile of all parts. Raises InputError where there is none, or one cannot be read."""
    parts = [_read(path) for path in files]
    if not parts:
        raise InputError(
            "the program left no profile",
            "It must be an MPI program, linked with the shared library of its launcher's MPI, that calls MPI_Init and"
            " ends by MPI_Finalize, MPI_Abort or a signal other than SIGKILL; after _exit there is none",
        )
    rows: defaultdict[_Key, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    seen: defaultdict[Communicator, int] = defaultdict(int)
    for part in parts:
        try:
            for word, fields in part.rows:
                communicator = _communicator(fields)
                if word == "communicators":
                    seen[communicator] += int(fields["count"])
                else:
                    key = communicator, fields["function"], fields["form"], fields["op"], int(fields["bin"])
                    _add(rows[key], fields)
        except (KeyError, ValueError) as error:
            raise InputError(f"{part.path} is no profile: {error!r}", "Run `colltune profile` again") from error
    try:
        return _joined(parts, rows, seen)
    except (KeyError, ValueError, OverflowError) as error:
        raise InputError(f"{parts[0].path} is no profile: {error!r}", "Run `colltune profile` again") from error


def _joined(
    parts: Sequence[_Part], rows: Mapping[_Key, defaultdict[str, int]], seen: Mapping[Communicator, int]
) -> Profile:
    ranks = int(parts[0].job["ranks"])
    reporting = ranks if parts[0].job["ranks_seen"] == "all" else len(parts)
    unseen = "" if reporting == ranks else "what left no profile"
    there = {where: _there(where, count) for where, count in seen.items()}
    return Profile(
        calls=tuple(_calls(key, row, there.get(key[0], (0, 0.0))[1]) for key, row in sorted(rows.items())),
        communicators=tuple((where, float(number)) for where, (number, _) in sorted(there.items())),
        ranks=ranks,
        nodes=int(parts[0].job["nodes"]),
        elapsed_s=max(int(part.job["elapsed_ns"]) for part in parts) * 1e-9,
        start_s=min(int(part.job.get("start_ns", 0)) for part in parts) * 1e-9,
        reporting=reporting,
        ended="; ".join(sorted({part.ended for part in parts if part.ended})) or unseen,
        lost_calls=sum(int(part.job["lost_calls"]) for part in parts),
        threads_multiple=parts[0].job["threads_multiple"] == "1",
    )


def _there(where: Communicator, count: int) -> tuple[int, float]:
    """How many communicators of a form there were, and how many ranks of each left a profile; 0 for all.

    ``count``: of how many communicators each rank noted that it is in one, over all ranks.
    """
    number = -(-count // where.noting)
    return number, count / number if count % where.noting else 0.0


def _read(path: Path) -> _Part:
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "Run `colltune profile` again") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no profile: {error}", "Run `colltune profile` again") from error
    if len(lines) < 3 or lines[0] != _HEAD or lines[-1] != "end":
        raise InputError(f"{path} is no profile of this colltune, or was cut short", "Run `colltune profile` again")
    job: dict[str, str] = {}
    ended, rows = "", []
    for line in lines[1:-1]:
        word, _, rest = line.partition(" ")
        if word == "ended":
            ended = rest
            continue
        fields = dict(item.partition("=")[::2] for item in rest.split())
        if word == "job":
            job = fields
        else:
            rows.append((word, fields))
    return _Part(path, job, ended, rows)


def _communicator(fields: dict[str, str]) -> Communicator:
    nodes = int(fields["nodes"])
    return Communicator(
        int(fields["size"]), nodes, int(fields["ppn"]), fields["even"] == "1", int(fields["remote_size"])
    )


def _add(row: defaultdict[str, int], fields: dict[str, str]) -> None:
    for name, text in fields.items():
        if name in ("function", "form", "op", "bin", "size", "remote_size", "nodes", "ppn", "even"):
            continue
        value = int(text)
        if name == "size_least":
            row[name] = min(row.get(name, value), value)
        elif name == "size_most":
            row[name] = max(row[name], value)
        else:
            row[name] += value


def _calls(key: _Key, row: defaultdict[str, int], members: float) -> Calls:
    communicator, function, form, op, _bin = key
    blocks = CountsPerRank(
        row["blocks"], row["empty_blocks"], row["block_bytes"], row["self_bytes"], row["largest_bytes"],
        row["square_bytes"],
    )  # fmt: skip
    return Calls(
        communicator=communicator,
        collective=function,
        form=form,
        op=op,
        rank_calls=row["calls"],
        own_bytes=row["bytes"],
        time_s=row["time_ns"] * 1e-9,
        size_least=row["size_least"],
        size_mean=row["size_sum"] / row["calls"] if row["calls"] else 0.0,
        size_most=row["size_most"],
        inits=row["inits"],
        in_place=row["in_place"],
        gaps=row["gaps"],
        root_zero=row["root_zero"],
        root_repeated=row["root_repeated"],
        blocks=blocks if row["blocks"] else None,
        members=members,
        faults=round(row["faults"] / row["fault_calls"], 2) if row["fault_calls"] else 0.0,
    )
