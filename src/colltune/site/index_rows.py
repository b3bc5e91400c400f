"""The rows of an index: what it keeps of an entry, and takes out when the entry is gone.

All of it is of one database of SQLite (`colltune.site.index`); ``user_version`` is VERSION.
"""

import json
import sqlite3
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import astuple
from importlib import resources

import msgspec

from colltune.core.sample import Sample, Scenario, Status, format_choice
from colltune.machine.files import read_record
from colltune.site.entry import Entry
from colltune.site.packed import pack_numbers
from colltune.site.pairs import PairedRatio, comparisons_of

VERSION = 8
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
        for table in ("measured", "compared", "changed", "saved"):
            data.execute(f"DELETE FROM {table} WHERE entry = (SELECT id FROM entry WHERE name = ?)", (name,))
        data.execute("DELETE FROM entry WHERE name = ?", (name,))


def insert(data: sqlite3.Connection, name: str, entry: Entry) -> None:
    """What ``entry`` says. Raises whatever a number or text of it comes to that no row can hold."""
    values = _listed(name, entry)
    number = data.execute(f"INSERT INTO entry ({LISTED}) VALUES ({', '.join('?' * len(values))})", values).lastrowid
    assert number is not None, "a row was inserted"
    here, said = entry.environment, entry.provenance
    for collective in entry.changed:
        row = (collective, here.nodes, here.ppn, number, said.began_s)
        data.execute("INSERT INTO changed VALUES (?, ?, ?, ?, ?)", row)
    if entry.saved is not None:
        of_run = (number, entry.release, *astuple(entry.saved))
        data.execute("INSERT INTO saved VALUES (?, ?, ?, ?, ?, ?)", of_run)
    for sample in entry.samples:
        _measured(data, number, sample, _date_s(sample, entry))
    shape = (entry.environment.nodes, entry.environment.ppn)
    for one in comparisons_of(entry.compared, name, shape, entry.provenance.ended_s):
        _compared(data, number, one)


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


def _compared(data: sqlite3.Connection, entry: int, one: PairedRatio) -> None:
    place = (*place_of(one.scenario), format_choice(one.choice))
    launch = int(one.launch.rpartition("/")[2])
    row = (*place, entry, launch, one.date_s, one.value, *one.others, format_choice(one.baseline))
    data.execute("INSERT INTO compared VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    _thin(data, "compared", f"{_AT} AND choice = ?", place, _LOOKS)


def _thin(data: sqlite3.Connection, table: str, where: str, place: Sequence[object], most: int) -> None:
    """Removes the oldest rows at ``place`` where there are more than ``most``."""
    data.execute(
        f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE {where}"
        f" ORDER BY date_s DESC LIMIT -1 OFFSET {most})",
        place,
    )


def _listed(name: str, entry: Entry) -> tuple[object, ...]:
    said, here = entry.provenance, entry.environment
    counts = (here.nodes, here.ppn, len(entry.samples), len(entry.compared))
    tuned = json.dumps(_collectives(entry))
    return (name, said.began_s, entry.uid, said.job, json.dumps(said.hosts), *counts, entry.colltune, said.command,
            tuned, entry.confirms)  # fmt: skip


class _RulesAlone(msgspec.Struct):
    rules: dict[str, msgspec.Raw]


def _collectives(entry: Entry) -> list[str]:
    """Of the tuning that an entry holds, if it holds one."""
    from colltune.store.tuning import MANIFEST

    with suppress(KeyError, ValueError):
        return sorted(read_record(entry.files[MANIFEST], _RulesAlone).rules)
    return []


def _date_s(sample: Sample, entry: Entry) -> float:
    """When a sample was taken: by its own clock where that tells the date, else by the end of its job."""
    own_s = sample.started_s
    return own_s if _SINCE_THE_EPOCH_S < own_s <= entry.provenance.ended_s else entry.provenance.ended_s


def place_of(scenario: Scenario) -> Place:
    return scenario.collective, scenario.nodes, scenario.ppn, scenario.size_bytes
