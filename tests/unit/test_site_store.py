"""The store of a site: nothing is lost, nothing half-written is read, and what is bad is set aside with its reason."""

import gzip
import multiprocessing
import os
import resource
import stat
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.errors import ColltuneError, InputError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.site.entry import BadEntryError, Entry, Identity, Provenance, name_of, pack, unpack
from colltune.site.index import open_index
from colltune.site.store import INBOX, SiteStore
from commands import forked

HERE = Environment("mpich", "5.0.2", "ab" * 32, "a CPU, 2 cores", 4, 2, "single", {"fabric": "ethernet"})
KEY = Identity.of(HERE).key
NOW_S = 1.7e9


def sample(number: int, time_s: float = 1e-5, choice: Choice = DEFAULT, launch: int = 1, group: int = 1) -> Sample:
    scenario = Scenario("bcast", 2, 2, 1 << (number % 20))
    return Sample(scenario, choice, Status.OK, (time_s, time_s), launch=launch, group=group, started_s=NOW_S + number)


def entry(number: int = 0, samples: int = 3, **changes: object) -> Entry:
    provenance = Provenance(f"colltune tune bcast {number}", "ada", f"job{number}", ("n1", "n2"), NOW_S, NOW_S + 1e6)
    made = [sample(number + k, 1e-5 * (1 + number)) for k in range(samples)]
    return replace(Entry(HERE, provenance, tuple(made)), **changes)  # type: ignore[arg-type]


times = st.floats(1e-9, 1e3)
names = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1, max_size=9)


@given(
    st.lists(st.tuples(st.integers(0, 40), times), max_size=6),
    st.dictionaries(
        names.filter(lambda name: name not in (".", "..") and name.isprintable()), st.binary(max_size=40), max_size=3
    ),
    st.tuples(names, names),
)
def test_an_entry_is_read_as_it_was_written(
    measured: list[tuple[int, float]], files: dict[str, bytes], words: tuple[str, str]
) -> None:
    samples = tuple(sample(*one) for one in measured)
    there = Provenance(words[0], words[1], "", ("n1",), 1.5, 2.5)
    made = Entry(HERE, there, samples, samples[::-1], files, "earlier")
    data = pack(made)
    assert pack(made) == data
    found = unpack(data, name_of(data))
    assert found == replace(made, samples=list(found.samples), compared=list(found.compared))
    assert (tuple(found.samples), tuple(found.compared)) == (samples, samples[::-1])


@given(st.data())
def test_no_changed_byte_goes_unseen(data: st.DataObject) -> None:
    written = pack(entry())
    place = data.draw(st.integers(0, len(written) - 1))
    changed = bytes([written[place] ^ data.draw(st.integers(1, 255))])
    damaged = written[:place] + changed + written[place + 1 :]
    with pytest.raises(BadEntryError):
        unpack(damaged, name_of(written))
    with pytest.raises(BadEntryError):
        unpack(written[:place], name_of(written))


@pytest.mark.parametrize(
    ("limit", "most", "data", "says"),
    [
        ("MOST_BYTES", 1 << 16, gzip.compress(b"\n" * (1 << 20)), "holds more than"),
        ("MOST_TIMES", 100, pack(entry(samples=60)), "over 100 times"),
    ],
)
def test_an_entry_that_would_fill_the_memory_is_refused(
    limit: str, most: int, data: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"colltune.site.entry.{limit}", most)
    with pytest.raises(BadEntryError, match=says):
        unpack(data, name_of(data))


def test_equal_entries_are_one_file_for_the_group_alone_which_nobody_may_change(store: SiteStore) -> None:
    assert store.add(entry()) == store.add(entry())
    (path,) = (store.directory / INBOX).iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o440
    assert (store.directory / INBOX).stat().st_mode & (stat.S_ISVTX | 0o007) == stat.S_ISVTX


def test_a_strict_umask_hides_neither_the_store_nor_an_entry_from_the_group(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        made = SiteStore.made(tmp_path / "a" / "store")
        name = made.add(entry())
    finally:
        os.umask(before)
    assert made.directory.stat().st_mode & 0o055 == 0o055
    assert made.place(KEY, name).stat().st_mode & 0o044 == 0o040


def test_a_directory_that_is_no_store_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store") as error:
        SiteStore.opened(tmp_path / "typo")
    assert "colltune site init" in error.value.next_step


def test_bad_entries_are_set_aside_with_their_reason_and_the_others_are_used(store: SiteStore) -> None:
    good = store.add(entry(1))
    truncated = pack(entry(2))[:-9]
    foreign = replace(HERE, machine="another CPU")
    data = pack(replace(entry(3), environment=foreign))
    for name, content in ((name_of(pack(entry(2))), truncated), (name_of(data), data), ("00" * 32, b"nonsense")):
        store.place(KEY, name).write_bytes(content)
    os.mkfifo(store.place(KEY, "11" * 32))
    store.place(KEY, "22" * 32).symlink_to("/etc/passwd")
    index = open_index(store, KEY)
    assert [one.name for one in index.entries] == [good]
    reasons = dict(store.quarantined())
    assert len(reasons) == 5
    assert reasons[f"{KEY}-{name_of(data)}"].startswith("it is of another identity: mpich 5.0.2")
    assert reasons[f"{KEY}-{'22' * 32}"] == "it is a link"
    assert reasons[f"{KEY}-{'11' * 32}"] == "it is no plain file"
    assert store.names() == {KEY: {good}}


def test_an_entry_of_a_later_colltune_stays(store: SiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr("colltune.site.entry.SCHEMA", 2)
        store.add(entry())
    assert open_index(store, KEY).entries == []
    assert len(store.names()[KEY]) == 1
    assert not list(store.quarantined())


def _add(directory: Path, writer: int, count: int) -> None:
    store = SiteStore.opened(directory)
    for number in range(count):
        store.add(entry(1000 * writer + number, samples=2))
        if number % 3 == 0:
            open_index(store, KEY)


def test_many_writers_at_once_lose_nothing(store: SiteStore) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_add, args=(store.directory, writer, 10)) for writer in range(8)]
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):  # whoever reads meanwhile sees whole entries only
        open_index(store, KEY)
        assert not list(store.quarantined())
    for one in writers:
        one.join()
        assert one.exitcode == 0
    commands = {one.command for one in open_index(store, KEY).entries}
    assert commands == {entry(1000 * w + n).provenance.command for w in range(8) for n in range(10)}


def _add_for_ever(directory: Path, told: int) -> None:
    store = SiteStore.opened(directory)
    for number in range(10**6):
        os.write(told, f"{store.add(entry(number, samples=40))}\n".encode())


def test_a_writer_that_is_killed_leaves_every_entry_that_it_had_told_of(store: SiteStore) -> None:
    for _ in range(4):
        writer, told = forked(partial(_add_for_ever, store.directory))
        first = told.readline()
        time.sleep(0.05)
        writer.kill()
        names = [first, *told.read().splitlines(keepends=True)]
        writer.join()
        index = open_index(store, KEY)
        assert not list(store.quarantined())
        assert {name.decode().strip() for name in names if name.endswith(b"\n")} <= {one.name for one in index.entries}


def _add_on_full_disk(directory: Path, told: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    try:
        SiteStore.opened(directory).add(entry(7, samples=50))
    except ColltuneError as error:
        os.write(told, f"{error.what}: {error.next_step}".encode())


def test_a_full_disk_is_told_and_leaves_nothing_behind(store: SiteStore) -> None:
    kept = store.add(entry(1))
    child, told = forked(partial(_add_on_full_disk, store.directory))
    text = told.read().decode()
    child.join()
    assert "no space is left" in text
    assert "colltune site add" in text
    assert [path.name for path in (store.directory / INBOX).iterdir()] == [store.place(KEY, kept).name]
