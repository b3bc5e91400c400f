"""What the entries of one identity say in short, so that a job need not read them all.

The index is a cache: it is made of the entries alone, by whoever reads, and may be lost or outdated at any time. It
is a database of SQLite in one file, which is read as a whole and replaced as a whole: no lock is ever taken.
"""

import gc
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from itertools import groupby, product, repeat
from operator import itemgetter
from typing import NamedTuple

from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import Choice, OtherViews, Sample, Scenario, format_choice, parse_choice
from colltune.machine.files import LARGEST_BYTES, read_file, write_atomically
from colltune.site.entry import BadEntryError, LaterEntryError, RevokedError
from colltune.site.index_rows import LISTED, TABLES, VERSION, PairedRatio, forget, insert, place_of, unpack_sample
from colltune.site.store import SiteStore


@contextmanager
def without_collections() -> Iterator[None]:
    """Python looks for garbage again and again while objects are made by the hundred thousand: a third of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


_CHECKSUM_BYTES = 4
# So many new entries make it worth to replace the cache; fewer are read again.
_WORTH_WRITING = 8
# Gaps are taken out of the cache each time that so many more entries are in it.
_TIDIED_EACH = 512
_TUNED = 11
# The pairs that are asked for, by their numbers: one question for all takes a third of the time of one for each.
_ASKED = """CREATE TEMP TABLE IF NOT EXISTS asked (number INTEGER PRIMARY KEY, collective TEXT, nodes INTEGER,
    ppn INTEGER, size INTEGER, choice TEXT, since_s REAL)"""
_COMPARED = """SELECT number, baseline, entry, launch, date_s, value, back_to_back, mean_over_ranks,
    late_arrivals, untouched
    FROM asked CROSS JOIN compared USING (collective, nodes, ppn, size, choice)
    WHERE date_s >= since_s ORDER BY number, date_s, compared.rowid"""


class Listed(NamedTuple):
    """An entry as the index has it. ``tuned``: the collectives of the tuning in it, by which it can be handed over.

    ``hosts``: the names of its nodes as they are written, in JSON: most jobs have nodes of their own, and few are read.
    """

    name: str
    began_s: float
    uid: int
    job: str
    hosts: str
    nodes: int
    ppn: int
    samples: int
    compared: int
    colltune: str
    command: str
    tuned: tuple[str, ...]
    confirms: str


Job = tuple[int, str, str]


def job_of(uid: int, job: str, began_s: float, hosts: str) -> Job:
    """What the entries of one job have in common: it adds one before its proof, and one at its end."""
    return uid, job or str(began_s), hosts


class LatestSamples(NamedTuple):
    """Of one scenario the newest sample of each choice, as columns: the entry that each is of, and when it was taken in
    seconds since the epoch. A job reads samples by the ten thousand."""

    samples: Sequence[Sample]
    entries: Sequence[str]
    dates_s: Sequence[float]


class _Parsed(dict[str, Choice]):
    """Choices by how they are written; each is read once."""

    def __missing__(self, text: str) -> Choice:
        return self.setdefault(text, parse_choice(text))


class Index:
    """Of the entries of the identity ``key``. What cannot be used goes into the quarantine, if that may be."""

    def __init__(self, store: SiteStore, key: str, names: Collection[str] | None = None) -> None:
        self._store, self._key = store, key
        self._data = _loaded(store, key)
        names = set(store.names().get(key, ()) if names is None else names)
        held = {name for (name,) in self._data.execute("SELECT name FROM entry UNION ALL SELECT name FROM unused")}
        forget(self._data, held - names)
        new = names - held
        for name in sorted(new):
            self._take(name)
        if len(new) >= _WORTH_WRITING or held - names:
            self._write(tidy=len(names) // _TIDIED_EACH > len(held) // _TIDIED_EACH)

    @cached_property
    def entries(self) -> list[Listed]:
        """The newest first."""
        return self._selected("")

    @property
    def count(self) -> int:
        """Of the entries."""
        return int(self._data.execute("SELECT count(*) FROM entry").fetchone()[0])

    def of_shape(self, nodes: int, ppn: int) -> list[Listed]:
        """Of jobs of this shape, the newest first."""
        return self._selected("WHERE nodes = ? AND ppn = ?", nodes, ppn)

    def _selected(self, where: str, *values: int) -> list[Listed]:
        rows = self._data.execute(f"SELECT {LISTED} FROM entry {where} ORDER BY began_s DESC, name", values).fetchall()
        tuned = {text: tuple(json.loads(text)) for text in {row[_TUNED] for row in rows}}
        return [Listed._make((*row[:_TUNED], tuned[row[_TUNED]], *row[_TUNED + 1 :])) for row in rows]

    def measured(
        self, collectives: Collection[str], shapes: Collection[tuple[int, int]], since_s: float = 0.0
    ) -> Iterator[LatestSamples]:
        """The newest sample of every pair in communicators of ``shapes``, where it was taken ``since_s``."""
        choices = _Parsed()
        names = {number: name for number, (name, _) in self._places.items()}
        for name, (nodes, ppn) in product(sorted(collectives), sorted(shapes)):
            rows = self._data.execute(
                "SELECT size, choice, date_s, entry, status, numbers, detail FROM measured"
                " WHERE collective = ? AND nodes = ? AND ppn = ? AND date_s >= ? ORDER BY size, choice",
                (name, nodes, ppn, since_s),
            )
            for size, of_size in groupby(rows, key=itemgetter(0)):
                _, written, dates_s, entries, statuses, numbers, details = zip(*of_size, strict=True)
                scenario = repeat(Scenario(name, nodes, ppn, size))
                taken = map(unpack_sample, scenario, map(choices.__getitem__, written), statuses, numbers, details)
                yield LatestSamples(list(taken), list(map(names.__getitem__, entries)), dates_s)

    @without_collections()
    def compared(self, pairs: Iterable[tuple[Scenario, Choice]], since_s: float = 0.0) -> list[PairedRatio]:
        """The comparisons of ``pairs`` that were taken ``since_s``, of each the oldest first.

        None that are older than a job which could form the scenario and found that its collective had changed.
        """
        choices, places, asked = _Parsed(), self._places, list(pairs)
        changed = self._data.execute("SELECT collective, nodes, ppn, date_s FROM changed").fetchall()

        @cache
        def least_s(name: str, nodes: int, ppn: int) -> float:
            dates_s = [float(row[3]) for row in changed if row[0] == name and row[1] >= nodes and row[2] >= ppn]
            return max([since_s, *dates_s])

        self._data.execute(_ASKED)
        self._data.execute("DELETE FROM asked")
        places_of = [(*place_of(scenario), format_choice(choice)) for scenario, choice in asked]
        self._data.executemany(
            "INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, *place, least_s(*place[:3])) for number, place in enumerate(places_of)),
        )
        rows = self._data.execute(_COMPARED)
        return [
            PairedRatio._make(
                (*asked[number], choices[baseline], places[entry][1], f"{places[entry][0]}/{launch}", date_s, value,
                 OtherViews(*views))
            )
            for number, baseline, entry, launch, date_s, value, *views in rows
        ]  # fmt: skip

    def coverage(self) -> list[tuple[str, int, int, int]]:
        """Of each collective and shape: (collective, nodes, ppn, pairs)."""
        columns = "collective, nodes, ppn"
        query = f"SELECT {columns}, count(*) FROM measured GROUP BY {columns} ORDER BY {columns}"
        return list(self._data.execute(query))

    @cached_property
    def _places(self) -> dict[int, tuple[str, tuple[int, int]]]:
        """Of each row of an entry its name, and the shape of its job."""
        rows = self._data.execute("SELECT id, name, nodes, ppn FROM entry")
        return {number: (name, (nodes, ppn)) for number, name, nodes, ppn in rows}

    def _take(self, name: str) -> None:
        try:
            entry = self._store.read(self._key, name)
        except RevokedError as error:
            self._data.execute("INSERT INTO unused VALUES (?, ?)", (name, str(error)))
            return
        except (BadEntryError, MemoryError) as error:
            self._refuse(name, str(error) or "it fills the memory")
            return
        except (LaterEntryError, OSError):  # it is not at fault, or cannot be read now
            return
        try:
            self._data.execute("SAVEPOINT taking")
            insert(self._data, name, entry)
        except Exception as error:  # whatever is wrong with what somebody wrote costs that entry, and no job
            self._data.execute("ROLLBACK TO taking")
            self._refuse(name, f"it holds a number or text that cannot be used: {error}")
        finally:
            self._data.execute("RELEASE taking")

    def _refuse(self, name: str, reason: str) -> None:
        if not self._store.set_aside(self._key, name, reason):  # only its owner may move it
            self._data.execute("INSERT INTO unused VALUES (?, ?)", (name, reason))

    def _write(self, tidy: bool) -> None:
        """Replaces the cache of this user; who has none reads all entries each time.

        ``tidy``: without gaps. Inserts leave pages half full, and every reader reads all of them.
        """
        self._data.commit()
        if tidy:
            self._data.execute("VACUUM")
        with suppress(OSError):
            written = self._data.serialize()
            write_atomically(self._store.index_path(self._key), _checksum(written) + written, mode=0o600, durable=False)


def _loaded(store: SiteStore, key: str) -> sqlite3.Connection:
    """The database of this user's cache; an empty one where there is none, or not one that was written so.

    It is made anew, too, when somebody was revoked: what they said is all over it.
    """
    revoked = zlib.crc32(repr(store.revoked()).encode()) >> 1
    with suppress(OSError, sqlite3.Error):
        whole = memoryview(read_file(store.index_path(key), LARGEST_BYTES))
        checksum, written = whole[:_CHECKSUM_BYTES], whole[_CHECKSUM_BYTES:]
        if checksum == _checksum(written):
            data = sqlite3.connect(":memory:")
            data.deserialize(written)
            made = [data.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")]
            if made == [VERSION, revoked]:
                return data
    data = sqlite3.connect(":memory:")
    data.executescript(TABLES)
    data.execute(f"PRAGMA user_version = {VERSION}")
    data.execute(f"PRAGMA application_id = {revoked}")
    return data


def _checksum(data: bytes | memoryview) -> bytes:
    """Against damage."""
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def open_index(store: SiteStore, key: str, names: Collection[str] | None = None) -> Index:
    """The index, brought up to date; ``names``: of its entries, where the inbox is listed already.

    Raises InputError where the store cannot be read.
    """
    try:
        with on_os_error(f"cannot read the store {store.directory}", "Check its permissions"):
            return Index(store, key, names)
    except sqlite3.Error as error:
        raise InputError(
            f"the cache {store.index_path(key)} cannot be used: {error}", "Delete it: it is made anew"
        ) from error
