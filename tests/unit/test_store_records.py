"""A record is read back exactly as it was written, and nothing else is read as a record."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.core.disturbance import Load
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.store.records import Header, Note, RecordError, decode, encode, pack_times, unpack_times

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


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(samples, st.data())
def test_a_fitting_checksum_over_nonsense_is_still_an_error(sample: Sample, data) -> None:
    document = json.loads(encode(sample))
    del document["crc32"]
    name = data.draw(st.sampled_from(sorted(document["sample"])))
    document["sample"][name] = data.draw(json_values)
    body = json.dumps(document).encode()[1:]
    try:
        back = decode(b'{"crc32":"%08x",%b' % (zlib.crc32(body), body))
    except RecordError:
        return
    assert isinstance(back, Sample)
    assert isinstance(encode(back), bytes)
