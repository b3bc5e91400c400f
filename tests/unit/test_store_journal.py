"""The journal and its records: read as they were written, whatever crashes, damage, full disks and strangers do."""

import errno
import json
import os
import random
import re
import resource
import subprocess
import time
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.disturbance import Load
from colltune.core.errors import ColltuneError, EnvironmentMismatchError, InputError
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.store.journal import Journal, read_journal
from colltune.store.records import Header, Note, RecordError, decode, encode, pack_times, unpack_times
from commands import forked
from journal_samples import ENVIRONMENT, example_samples


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def written(path: Path, samples: list[Sample]) -> Path:
    with Journal.create(path, ENVIRONMENT) as journal:
        journal.append(samples)
    return path


def test_every_truncation_of_the_last_record_is_healed(path: Path) -> None:
    samples = example_samples(3)
    data = written(path, samples).read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    for end in range(start, len(data)):
        path.write_bytes(data[:end])
        contents = read_journal(path)
        whole = end == len(data) - 1  # only the newline is missing
        assert list(contents.samples) == (samples if whole else samples[:2])
        assert path.read_bytes() == data[:end], "reading must not change the file"
        with Journal.open(path, ENVIRONMENT) as journal:
            assert journal.samples == contents.samples
            journal.append(samples[2:])
        assert list(read_journal(path).samples) == [*contents.samples, samples[2]]


def test_every_truncation_of_the_header_is_healed(path: Path) -> None:
    Journal.create(path, ENVIRONMENT).close()
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with Journal.open(path, ENVIRONMENT) as journal:
            assert journal.samples == ()
            journal.append(example_samples(1))
        assert list(read_journal(path).samples) == example_samples(1)


@pytest.mark.parametrize("text", ["", "not a journal", "not a journal\n", '{"crc32":"xyz"', "\n\n", '{"a":1}\n'])
def test_a_file_of_something_else_is_left_as_it_is(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError):
        read_journal(path)
    if text:
        with pytest.raises(InputError, match="not a journal"):
            Journal.open(path, ENVIRONMENT)
        assert path.read_text() == text


def test_damage_before_the_end_names_its_line(path: Path) -> None:
    lines = written(path, example_samples(4)).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines * 2))  # a second header
    with pytest.raises(InputError, match="damaged at line 6"):
        read_journal(path)
    for number in (2, 3, 4):
        damaged = bytearray(lines[number - 1])
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(b"".join([*lines[: number - 1], bytes(damaged), *lines[number:]]))
        before = path.read_bytes()
        for attempt in (read_journal, lambda where: Journal.open(where, ENVIRONMENT)):
            with pytest.raises(InputError, match=rf"damaged at line {number}.*head -n {number - 1} "):
                attempt(path)
        assert path.read_bytes() == before


def test_the_advice_about_damage_works(path: Path, tmp_path: Path) -> None:
    lines = written(path, example_samples(4)).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + b"rubbish\n" + lines[4])
    with pytest.raises(InputError) as caught:
        read_journal(path)
    command = re.search(r"head -n .*", caught.value.next_step)
    assert command
    subprocess.run(command.group().replace("repaired.jsonl", f"{tmp_path}/repaired.jsonl"), shell=True, check=True)
    assert list(read_journal(tmp_path / "repaired.jsonl").samples) == example_samples(4)[:2]


def test_a_mismatch_names_fields_values_and_what_to_do(path: Path) -> None:
    written(path, example_samples(1))
    here = replace(ENVIRONMENT, mpi_version="4.3.2", nodes=2, facts={"hostname": "elsewhere"})
    with pytest.raises(EnvironmentMismatchError) as caught:
        Journal.open(path, here)
    assert "MPI version is 5.0.2 there and 4.3.2 here; nodes is 4 there and 2 here" in str(caught.value)
    assert "facts" not in str(caught.value)
    assert "machine" not in str(caught.value)
    assert caught.value.next_step
    for other in (replace(ENVIRONMENT, mpi_build="00"), replace(ENVIRONMENT, ppn=1)):
        with pytest.raises(EnvironmentMismatchError):
            Journal.open(path, other)
    # The refusal gives the lock back and changes nothing.
    with Journal.open(path, replace(ENVIRONMENT, facts={"hostname": "elsewhere"})) as journal:
        assert list(journal.samples) == example_samples(1)


def test_a_later_format_says_who_wrote_it(path: Path) -> None:
    Journal.create(path, ENVIRONMENT).close()
    document = json.loads(path.read_text())
    body = json.dumps({"journal": 99, "colltune": "7.0", "environment": document["environment"]}).encode()[1:]
    path.write_bytes(b'{"crc32":"%08x",%b\n' % (zlib.crc32(body), body))
    with pytest.raises(InputError, match=r"format 99, written by colltune 7\.0"):
        read_journal(path)


def test_samples_and_notes_are_lines_of_json_and_kept_in_order(path: Path) -> None:
    notes = [Note("launch", {"number": 1, "ended": None}), Note("quarantine", {"algorithm": "tree", "sure": True})]
    samples = example_samples(7)
    with Journal.create(path, ENVIRONMENT) as journal:
        journal.append(samples[:3])
        for note in notes:
            journal.note(note.kind, note.facts)
        journal.append(samples[3:])
        assert list(journal.samples) == samples
    with Journal.open(path, ENVIRONMENT) as journal:
        assert list(journal.samples) == samples
    assert list(read_journal(path).notes) == notes
    kinds = [next(key for key in json.loads(line) if key != "crc32") for line in path.read_text().splitlines()]
    assert kinds == ["journal", *["sample"] * 3, *["note"] * 2, *["sample"] * 4]


def test_a_journal_is_never_begun_over_another_and_has_one_writer(path: Path) -> None:
    with Journal.create(path, ENVIRONMENT) as journal:
        journal.append(example_samples(2))
        with pytest.raises(InputError, match="another process is writing the journal"):
            Journal.open(path, ENVIRONMENT)
    with pytest.raises(InputError, match="already a journal"):
        Journal.create(path, ENVIRONMENT)
    Journal.open(path, ENVIRONMENT).close()
    assert list(read_journal(path).samples) == example_samples(2)


def test_what_cannot_be_written_exactly_is_refused_and_harms_nothing(path: Path) -> None:
    with Journal.create(path, ENVIRONMENT) as journal:
        journal.append(example_samples(1))
        with pytest.raises(ColltuneError, match="cannot be written"):
            journal.append([replace(example_samples(1)[0], cost_s=float("nan"))])
        journal.append(example_samples(1))
    assert list(read_journal(path).samples) == example_samples(1) * 2


def test_an_absent_or_unwritable_place_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no journal"):
        Journal.open(tmp_path / "none.jsonl", ENVIRONMENT)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make"):
        Journal.create(tmp_path / "file" / "journal.jsonl", ENVIRONMENT)
    with pytest.raises(InputError, match="cannot open"):
        Journal.open(tmp_path, ENVIRONMENT)


def test_a_closed_journal_takes_nothing(path: Path) -> None:
    journal = Journal.create(path, ENVIRONMENT)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(example_samples(1))


def test_the_disk_is_flushed_at_most_every_second_and_at_the_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    synced: list[float] = []
    with Journal.create(path, ENVIRONMENT, clock=lambda: now_s[0]) as journal:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(now_s[0]))
        for tenth in range(25):
            now_s[0] = tenth / 10
            journal.append(example_samples(1))
        assert synced == [1.0, 2.0]
    assert synced == [1.0, 2.0, 2.4]


def _write_to_a_full_disk(path: Path, told: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
    journal = Journal.create(path, ENVIRONMENT)
    try:
        for sample in example_samples(100, repetitions=40):
            journal.append([sample])
    except ColltuneError as error:
        os.write(told, f"{len(journal.samples)} {error}".encode())


def test_no_space_left_is_one_clear_error_and_the_file_stays_whole(path: Path) -> None:
    writer, told = forked(partial(_write_to_a_full_disk, path))
    count, message = told.read().decode().split(" ", 1)
    writer.join()
    assert "no space is left for the journal" in message
    assert "--resume" in message
    contents = read_journal(path)
    assert list(contents.samples) == example_samples(100, repetitions=40)[: int(count)]
    assert 2 < int(count) < 100


def test_a_disk_error_that_cannot_be_undone_is_healed_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal.create(path, ENVIRONMENT)
    journal.append(example_samples(2))
    real = os.write

    def torn(descriptor: int, data: bytes) -> int:
        if len(data) < 50:
            refuse()
        return real(descriptor, data[: len(data) - 40])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", torn)
        patch.setattr(os, "ftruncate", refuse)
        with pytest.raises(ColltuneError, match="Input/output error; the 2 samples before are in the file"):
            journal.append(example_samples(1))
    journal.close()
    assert not path.read_bytes().endswith(b"\n")
    with Journal.open(path, ENVIRONMENT) as healed:
        assert list(healed.samples) == example_samples(2)


def _write_for_ever(path: Path, told: int) -> None:
    journal = Journal.open(path, ENVIRONMENT)
    samples = example_samples(20, repetitions=200)
    index = len(journal.samples)
    while True:
        batch = [samples[(index + offset) % 20] for offset in range(1 + index % 3)]
        journal.append(batch)
        index += len(batch)
        os.write(told, b"%d\n" % index)


def test_a_killed_writer_loses_no_sample_whose_append_returned(path: Path) -> None:
    samples = example_samples(20, repetitions=200)
    Journal.create(path, ENVIRONMENT).close()
    generator = random.Random(7)
    acknowledged = 0
    for _ in range(10):
        writer, told = forked(partial(_write_for_ever, path))
        first = told.readline()
        time.sleep(generator.uniform(0.0, 0.05))
        writer.kill()
        rest = told.read().splitlines(keepends=True)
        writer.join()
        counts = [int(line) for line in (first, *rest) if line.endswith(b"\n")]
        assert counts[-1] > acknowledged
        acknowledged = counts[-1]
        found = read_journal(path).samples
        assert len(found) >= acknowledged
        assert all(sample == samples[index % 20] for index, sample in enumerate(found))


@given(st.data())
def test_random_damage_is_an_error_or_a_part_of_the_truth(tmp_path_factory: pytest.TempPathFactory, data) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "journal.jsonl"
    samples = example_samples(3)
    content = bytearray(written(path, samples).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(content)))
        content[position : position + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    path.write_bytes(content)
    try:
        found = list(read_journal(path).samples)
    except ColltuneError:
        return
    assert found == samples[: len(found)]


finite = st.floats(allow_nan=False, allow_infinity=False)
whole = st.integers(0, 2**40)
scenarios = st.builds(Scenario, st.text(max_size=20), st.integers(1, 10**6), st.integers(1, 512), whole)
choices = st.builds(
    Choice,
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8), max_size=4).map(
        lambda parameters: tuple(parameters.items())
    ),
)
samples = st.builds(
    Sample,
    scenarios,
    choices,
    st.sampled_from(Status),
    st.lists(finite, max_size=50).map(tuple),
    st.none() | finite,
    st.none() | finite,
    finite,
    whole,
    whole,
    finite,
    st.text(),
    st.none() | finite,
    load=st.none() | st.builds(Load, *[st.none() | finite] * 5, st.none() | st.integers(0, 99), st.integers(0, 99)),
)
environments = st.builds(
    Environment,
    *[st.text(max_size=20)] * 4,
    whole,
    whole,
    st.text(max_size=10),
    st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3),
)
facts = st.dictionaries(st.text(max_size=8), st.none() | st.booleans() | whole | finite | st.text(max_size=20))
records = (
    samples | st.builds(Header, st.just(1), st.text(max_size=10), environments) | st.builds(Note, st.text(), facts)
)


@given(records)
def test_round_trip(record) -> None:
    line = encode(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    back = decode(line[:-1])
    assert back == record
    if isinstance(record, Header):
        assert back.environment.facts == record.environment.facts


@given(st.lists(st.floats(), max_size=300).map(tuple))
def test_times_keep_every_bit(times_s: tuple[float, ...]) -> None:
    assert repr(unpack_times(pack_times(times_s), len(times_s))) == repr(times_s)


def test_times_of_whole_nanoseconds_take_less_than_their_text_and_what_inflates_without_end_is_refused() -> None:
    times_s = tuple((30_000 + 17 * index % 900) * 1e-9 for index in range(1000))
    assert len(pack_times(times_s)) < len(json.dumps(times_s)) / 2
    with pytest.raises(RecordError, match="does not hold the 2 times"):
        unpack_times(pack_times((0.0,) * 1_000_000), 2)


@given(records, st.data())
def test_any_changed_byte_is_recognised(record, data) -> None:
    line = bytearray(encode(record)[:-1])
    position = data.draw(st.integers(0, len(line) - 1))
    line[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(RecordError):
        decode(bytes(line))
