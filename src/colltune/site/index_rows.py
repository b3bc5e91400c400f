"""The rows of an index: what it keeps of an entry, and takes out when the entry is gone.

All of it is of one database of SQLite (`colltune.site.index`); ``user_version`` is VERSION. Samples are packed, and
made again by the ten thousand at once. Comparisons with the default are evidence that adds up over jobs: one scenario,
one choice, one launch.
"""

import json
import sqlite3
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import resources
from itertools import groupby
from math import nan
from typing import Any, NamedTuple, cast

import msgspec

from colltune.core.sample import DEFAULT, Choice, OtherViews, Sample, Scenario, Status, format_choice, log_speedup
from colltune.machine.files import read_record
from colltune.site.entry import Entry
from colltune.store.tuning import MANIFEST

# The numbers of a sample before those of its repetitions: its times by other conventions in seconds (not a number:
# not taken), cost, start, launch, group, page faults, and the times in other states of memory.
_BEFORE_TIMES = 10
_STATUSES = {status.value: status for status in Status}


class _Open:
    """A sample while its fields are set.

    A frozen dataclass sets each of them by a call of ``object.__setattr__``, which takes six times as long. Slots of
    the same names lie in the same places, so Python lets the object become a ``Sample``.
    """

    __slots__ = Sample.__slots__


def pack_numbers(sample: Sample) -> bytes:
    """All of ``sample`` but its scenario, choice, status and detail: 64-bit floats, without loss."""
    others = (nan if value is None else value for value in (sample.back_to_back_s, sample.osu_mean_s, sample.skewed_s))
    count = _BEFORE_TIMES + len(sample.times_s)
    of = (sample.cost_s, sample.started_s, sample.launch, sample.group, sample.faults)
    memory = (nan if value is None else value for value in (sample.kept_s, sample.untouched_s))
    return struct.pack(f"<{count}d", *others, *of, *memory, *sample.times_s)


def unpack_sample(scenario: Scenario, choice: Choice, status: str, numbers: bytes, detail: str) -> Sample:
    """The sample whose numbers were packed. Raises struct.error and KeyError for what was never packed."""
    values = _doubles(len(numbers) // 8)(numbers)
    made: Any = _Open()
    made.scenario, made.choice, made.status, made.detail = scenario, choice, _STATUSES[status], detail
    back_to_back_s, osu_mean_s, skewed_s, made.cost_s, made.started_s, launch, group = values[:7]
    made.launch, made.group, made.times_s = int(launch), int(group), values[_BEFORE_TIMES:]
    # What is not a number is equal to nothing, itself included.
    made.back_to_back_s = back_to_back_s if back_to_back_s == back_to_back_s else None
    made.osu_mean_s = osu_mean_s if osu_mean_s == osu_mean_s else None
    made.skewed_s = skewed_s if skewed_s == skewed_s else None
    made.faults, kept_s, untouched_s = values[7:10]
    made.kept_s = kept_s if kept_s == kept_s else None
    made.untouched_s = untouched_s if untouched_s == untouched_s else None
    made.load = None  # what was disturbed is not in an index
    made.__class__ = Sample
    return cast(Sample, made)


@cache
def _doubles(count: int) -> Callable[[bytes], tuple[float, ...]]:
    return struct.Struct(f"<{count}d").unpack


class PairedRatio(NamedTuple):
    """``value``: log(time of ``baseline`` / time of ``choice``), as ``log_speedup`` has it.

    ``shape``: nodes and ranks per node of the job that compared them.
    ``others``: the same by other conventions. ``launch``: its name within the site.
    ``date_s``: since the epoch.
    """

    scenario: Scenario
    choice: Choice
    baseline: Choice
    shape: tuple[int, int]
    launch: str
    date_s: float
    value: float
    others: OtherViews


def comparisons_of(
    samples: Sequence[Sample], name: str, shape: tuple[int, int], ended_s: float
) -> Iterator[PairedRatio]:
    """Of the samples of an audit in the order in which they were taken: the baseline of each look, and the choice.

    ``name``: of the entry. ``shape``: of its job. ``ended_s``: its date. Looks that did not come to two times say
    nothing.
    """
    for (scenario, launch, _), look in groupby(samples, key=lambda s: (s.scenario, s.launch, s.group)):
        pair = list(look)
        for first, second in zip(pair[::2], pair[1::2], strict=False):
            default, chosen = (second, first) if second.choice == DEFAULT else (first, second)
            if default.status is Status.OK and chosen.status is Status.OK and default.choice != chosen.choice:
                value = log_speedup(default, chosen)
                of, views = f"{name}/{launch}", OtherViews.of(default, chosen)
                yield PairedRatio(scenario, chosen.choice, default.choice, shape, of, ended_s, value, views)


VERSION = 10
# Looks of one comparison that are kept: the newest.
_LOOKS = 40
TABLES = resources.files("colltune.site").joinpath("index.sql").read_text(encoding="utf-8")
LISTED = "name, began_s, uid, job, hosts, nodes, ppn, samples, compared, colltune, command, tuned, confirms"
# A clock that says less counts from the start of its node: from no date.
_SINCE_THE_EPOCH_S = 1e9
Place = tuple[str, int, int, int]  # of a scenario: collective, nodes, ranks per node, bytes
_AT = "collective = ? AND nodes = ? AND ppn = ? AND size = ?"


def forget(data: sqlite3.Connection, names: Collection[str]) -> None:
    """Takes out all that these entries said."""
    for name in names:
        data.execute("DELETE FROM unused WHERE name = ?", (name,))
        for table in ("measured", "compared", "changed"):
            data.execute(f"DELETE FROM {table} WHERE entry = (SELECT id FROM entry WHERE name = ?)", (name,))
        data.execute("DELETE FROM entry WHERE name = ?", (name,))


def insert(data: sqlite3.Connection, name: str, entry: Entry) -> None:
    """What ``entry`` says. Raises whatever a number or text of it comes to that no row can hold."""
    values = _listed(name, entry)
    number = data.execute(f"INSERT INTO entry ({LISTED}) VALUES ({', '.join('?' * len(values))})", values).lastrowid
    assert number is not None, "a row was inserted"
    here, provenance = entry.environment, entry.provenance
    for collective in entry.changed:
        row = (collective, here.nodes, here.ppn, number, provenance.began_s)
        data.execute("INSERT INTO changed VALUES (?, ?, ?, ?, ?)", row)
    for sample in entry.samples:
        _measured(data, number, sample, _date_s(sample, entry))
    shape = (entry.environment.nodes, entry.environment.ppn)
    for comparison in comparisons_of(entry.compared, name, shape, entry.provenance.ended_s):
        _compared(data, number, comparison)


def _measured(data: sqlite3.Connection, entry: int, sample: Sample, date_s: float) -> None:
    if sample.status is Status.OK and sample.time_s <= 0.0:
        raise ValueError("a call took no time")
    place = place_of(sample.scenario)
    values = (date_s, entry, sample.status.value, pack_numbers(sample), sample.detail)
    data.execute(
        "INSERT INTO measured VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " date_s = excluded.date_s, entry = excluded.entry, status = excluded.status,"
        " numbers = excluded.numbers, detail = excluded.detail WHERE excluded.date_s > measured.date_s",
        (*place, format_choice(sample.choice), *values),
    )


def _compared(data: sqlite3.Connection, entry: int, ratio: PairedRatio) -> None:
    place = (*place_of(ratio.scenario), format_choice(ratio.choice))
    launch = int(ratio.launch.rpartition("/")[2])
    row = (*place, entry, launch, ratio.date_s, ratio.value, *ratio.others, format_choice(ratio.baseline))
    data.execute("INSERT INTO compared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    data.execute(
        f"DELETE FROM compared WHERE rowid IN (SELECT rowid FROM compared WHERE {_AT} AND choice = ?"
        f" ORDER BY date_s DESC LIMIT -1 OFFSET {_LOOKS})",
        place,
    )


def _listed(name: str, entry: Entry) -> tuple[object, ...]:
    job, here = entry.provenance, entry.environment
    counts = (here.nodes, here.ppn, len(entry.samples), len(entry.compared))
    tuned = json.dumps(_collectives(entry))
    return (name, job.began_s, entry.uid, job.job, json.dumps(job.hosts), *counts, entry.colltune, job.command,
            tuned, entry.confirms)  # fmt: skip


class _RulesAlone(msgspec.Struct):
    rules: dict[str, msgspec.Raw]


def _collectives(entry: Entry) -> list[str]:
    """Of the tuning that an entry holds, if it holds one."""
    with suppress(KeyError, ValueError):
        return sorted(read_record(entry.files[MANIFEST], _RulesAlone).rules)
    return []


def _date_s(sample: Sample, entry: Entry) -> float:
    """When a sample was taken: by its own clock where that tells the date, else by the end of its job."""
    own_s = sample.started_s
    return own_s if _SINCE_THE_EPOCH_S < own_s <= entry.provenance.ended_s else entry.provenance.ended_s


def place_of(scenario: Scenario) -> Place:
    return scenario.collective, scenario.nodes, scenario.ppn, scenario.size_bytes
