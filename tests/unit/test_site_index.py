"""The index of a store says what its entries say, in whatever order they came, and is only a cache."""

import random
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_site_store import HERE, KEY, NOW_S, entry, sample

from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import shapes
from colltune.site.index import Index, open_index
from colltune.site.index_rows import PairedRatio, comparisons_of
from colltune.site.knowledge import recall
from colltune.site.store import SiteStore


def dated(
    index: Index, collectives: Collection[str], parts: Collection[tuple[int, int]], since_s: float = 0.0
) -> list[tuple[Sample, str, float]]:
    """(sample, entry, date in seconds since the epoch) of all that is measured in communicators of ``parts``."""
    found = index.measured(collectives, parts, since_s)
    return [row for one in found for row in zip(one.samples, one.entries, one.dates_s, strict=True)]


def test_an_index_that_nobody_can_write_is_worked_out_by_each_reader(store: SiteStore) -> None:
    for number in range(9):
        store.add(entry(number, samples=8))
    said = all_of(open_index(store, KEY))
    store.index_path(KEY).unlink()
    store.index_path(KEY).mkdir()
    assert all_of(open_index(store, KEY)) == said


def test_comparisons_from_before_a_change_are_no_evidence(store: SiteStore) -> None:
    tree = Choice("tree")
    look = (sample(0, 2e-5), sample(0, 1e-5, tree))
    other = tuple(replace(one, scenario=replace(one.scenario, nodes=8)) for one in look)
    store.add(replace(entry(), compared=(*look, *other)))
    pairs = [(one.scenario, tree) for one in (look[0], other[0])]
    assert len(list(open_index(store, KEY).compared(pairs))) == 2
    later = replace(entry().provenance, began_s=NOW_S + 2e6, ended_s=NOW_S + 3e6)
    store.add(replace(entry(1), provenance=later, changed=("bcast", "reduce")))
    left = list(open_index(store, KEY).compared(pairs))
    assert [one.scenario.nodes for one in left] == [8]  # which the job that saw the change could not form
    store.add(replace(entry(2), provenance=later, compared=look))
    assert len(list(open_index(store, KEY).compared(pairs))) == 2


def test_a_sample_comes_back_as_it_was_with_its_own_date_and_not_if_it_is_too_old(store: SiteStore) -> None:
    """One from the history of a directory stays old; a clock that counts from the start of a node tells no date."""
    taken = replace(sample(0), back_to_back_s=2e-5, skewed_s=3e-5, cost_s=0.5, group=7, detail="")
    wrong = replace(sample(1, choice=Choice("tree")), status=Status.WRONG, times_s=(), detail="two bytes")
    old, no_date = replace(sample(2), started_s=NOW_S - 3e7), replace(sample(3), started_s=5e5)
    store.add(replace(entry(), samples=(taken, wrong, old, no_date)))
    index = open_index(store, KEY)
    found = {one: date_s for one, _, date_s in dated(index, ["bcast"], [(2, 2)])}
    assert found == {taken: NOW_S, wrong: NOW_S + 1, old: NOW_S - 3e7, no_date: NOW_S + 1e6}
    assert {one for one, _, _ in dated(index, ["bcast"], [(2, 2)], NOW_S + 0.5)} == {wrong, no_date}


def test_comparisons_of_many_jobs_are_launches_of_their_own(store: SiteStore) -> None:
    tree = Choice("tree")
    for job in range(3):
        looks = []
        for launch in (1, 2):
            both = [sample(0, 2e-5, launch=launch), sample(0, 1e-5, tree, launch=launch)]
            looks += both if job % 2 else both[::-1]  # whichever was told first
        broken = replace(sample(1, 2e-5, tree), status=Status.HUNG, times_s=())
        store.add(replace(entry(job), compared=(*looks, sample(1, 2e-5), broken)))
    found = list(open_index(store, KEY).compared([(sample(0).scenario, tree), (sample(1).scenario, tree)]))
    assert len({one.launch for one in found}) == 6 == len(found)
    assert {(one.choice, one.baseline, one.shape) for one in found} == {(tree, DEFAULT, (4, 2))}
    assert all(one.value == pytest.approx(0.6931, abs=1e-3) for one in found)


def test_what_is_taken_away_is_forgotten(store: SiteStore) -> None:
    first, second = store.add(entry(1)), store.add(entry(2))
    open_index(store, KEY)
    store.place(KEY, first).unlink()
    index = open_index(store, KEY)
    assert [one.name for one in index.entries] == [second]
    assert {name for _, name, _ in dated(index, ["bcast"], [(2, 2)])} == {second}


# What may become of a cache that was right before.
CHANGED: dict[str, Callable[[bytes], bytes]] = {
    "an older one comes back": lambda whole: whole,
    "cut off": lambda whole: whole[:5000],
    "emptied": lambda _whole: b"",
    "damaged": lambda _whole: b"SQLite format 3\x00 and then nothing",
    "something else": lambda _whole: b"nothing of it",
}


@given(
    st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=24),
    st.lists(st.sampled_from(["open", *CHANGED]), max_size=24),
)
@settings(max_examples=25)
def test_the_index_says_what_the_entries_say_whatever_came_before(added: list[int], between: list[str]) -> None:
    """Entries come in any order while others read, and while the cache is lost, or written over by a slower job."""
    with tempfile.TemporaryDirectory() as place:
        store = SiteStore.made(Path(place) / "store")
        path, older = store.index_path(KEY), b""
        for number, event in zip_longest(added, between):
            if number is not None:
                # Each sample has a date of its own: of two of one moment either may stay.
                store.add(entry(2 * number, samples=2, compared=look(number)))
            if event == "open":
                older = older or (path.read_bytes() if path.exists() else b"")
                open_index(store, KEY)
            elif event is not None:
                path.unlink(missing_ok=True)
                path.write_bytes(CHANGED[event](older))
        told = all_of(open_index(store, KEY))
        path.unlink(missing_ok=True)
        assert told == all_of(open_index(store, KEY))
        assert {one.name for one in open_index(store, KEY).entries} == store.names()[KEY]


def look(number: int) -> tuple[Sample, Sample]:
    return sample(number, 2e-5), sample(number, 1e-5, Choice("tree"))


def all_of(index: Index) -> object:
    """All that an index says, in an order of its own."""
    pairs = [(sample(number).scenario, Choice("tree")) for number in range(20)]
    said = (dated(index, ["bcast"], [(2, 2)]), index.compared(pairs), index.entries, index.coverage())
    return [sorted(map(repr, one)) for one in said]


@pytest.mark.parametrize(
    "changes",
    [{"group": 10**400}, {"times_s": (0.0, 0.0)}, {"scenario": Scenario("bcast", 2, 2, 1 << 70)}],
    ids=["huge", "no time", "large size"],
)
def test_an_entry_with_an_impossible_number_does_not_stop_the_others(
    store: SiteStore, changes: dict[str, object]
) -> None:
    """Its bytes are those that its writer meant, so that its checksums are right."""
    kept = store.add(entry(1))
    store.add(replace(entry(2), samples=(sample(7), replace(sample(8), **changes))))  # type: ignore[arg-type]
    index = open_index(store, KEY)
    assert [one.name for one in index.entries] == [kept]
    assert {name for _, name, _ in dated(index, ["bcast"], [(2, 2)])} == {kept}
    ((_, reason),) = store.quarantined()
    assert "number" in reason or "<= 9223372036854775807" in reason


CHOICES = [DEFAULT, Choice("tree"), Choice("chain", (("k", 2),)), Choice("chain", (("k", 4),))]


def _drawn_entries(store: SiteStore, seed: int, jobs: int) -> None:
    """Entries of jobs with samples and comparisons in parts of 4 x 2, each at a moment of its own, in any order."""
    draw = random.Random(seed)
    moment = iter(draw.sample(range(10**6), 10**4))

    def taken(scenario: Scenario, choice: Choice, launch: int = 1, group: int = 1) -> Sample:
        status = Status.OK if choice == DEFAULT or draw.random() < 0.9 else draw.choice(list(Status))
        times = (draw.uniform(1e-6, 1e-3), 2e-3, 3e-3) if status is Status.OK else ()
        views = (draw.choice([None, 1e-5]), draw.choice([None, 2e-5]))
        started_s = NOW_S + 10.0 + next(moment)
        return Sample(scenario, choice, status, times, *views, 0.5, launch, group, started_s)

    def scenario() -> Scenario:
        return Scenario(draw.choice(["bcast", "reduce"]), *draw.choice(shapes(4, 2)), 4 << draw.randint(0, 3))

    for job in range(jobs):
        places = [scenario() for _ in range(4)]
        samples = [taken(place, choice) for place in places for choice in draw.sample(CHOICES, 3)]
        compared = [(1, DEFAULT), (1, CHOICES[2]), (2, DEFAULT), (2, CHOICES[3])]
        looks = [taken(place, choice, launch, launch) for place in places[:2] for launch, choice in compared]
        changed = ("reduce",) if draw.random() < 0.2 else ()
        said = replace(entry(job).provenance, began_s=NOW_S + job, ended_s=NOW_S + 2e6 + job)
        store.add(replace(entry(job), provenance=said, samples=samples, compared=looks, changed=changed))


Pair = tuple[Scenario, Choice]
Newest = dict[Pair, tuple[float, str, Sample]]


def _read_plainly(store: SiteStore) -> tuple[Newest, dict[Pair, list[PairedRatio]]]:
    """The newest sample of each pair, and the comparisons that still count, out of the entries themselves."""
    newest: Newest = {}
    compared: defaultdict[Pair, list[PairedRatio]] = defaultdict(list)
    entries = {name: store.read(KEY, name) for name in store.names()[KEY]}
    for name, one in entries.items():
        for taken in one.samples:
            pair = (taken.scenario, taken.choice)
            newest[pair] = max(newest.get(pair, (0.0, "", taken)), (taken.started_s, name, taken), key=lambda at: at[0])
        for look in comparisons_of(one.compared, name, (4, 2), one.provenance.ended_s):
            compared[look.scenario, look.choice].append(look)
    changed_s = [one.provenance.began_s for one in entries.values() if one.changed]
    for pair, looks in compared.items():
        since_s = max(changed_s, default=0.0) if pair[0].collective == "reduce" else 0.0
        compared[pair] = sorted((look for look in looks if look.date_s >= since_s), key=lambda look: look.date_s)
    return newest, compared


@pytest.mark.parametrize("seed", range(3))
def test_a_job_reads_what_the_entries_say_when_they_are_read_one_by_one(
    store: SiteStore, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_S + 3e6)
    _drawn_entries(store, seed, 30)
    newest, compared = _read_plainly(store)
    for parts, names in ((shapes(4, 2), ("bcast", "reduce")), (shapes(2, 2), ("reduce",))):
        known, index = recall(store, HERE, names, parts)
        asked = {Scenario(name, *part, 4 << power) for name in names for part in parts for power in range(4)}
        within = {pair: at for pair, at in newest.items() if pair[0] in asked}
        assert len(within) > 20
        assert {(one.scenario, one.choice): one for one in known.samples} == {p: at[2] for p, at in within.items()}
        taken = {(one, date_s) for one, _, date_s in dated(index, names, parts)}
        assert taken == {(at[2], at[0]) for at in within.values()}
        assert {(one.scenario, one.choice) for one in known.side_by_side} == _side_by_side(within)
    pairs = [*compared, (Scenario("bcast", 4, 2, 1 << 20), CHOICES[1])]
    looks = [look for pair in pairs for look in compared.get(pair, [])]
    assert index.compared(pairs) == looks
    assert index.compared(pairs, NOW_S + 2e6 + 15) == [look for look in looks if look.date_s >= NOW_S + 2e6 + 15]


def _side_by_side(within: Newest) -> set[Pair]:
    """Of each scenario the choices of the job that has most of the newest samples, the default among several."""
    found: set[Pair] = set()
    for scenario in {pair[0] for pair in within}:
        jobs: defaultdict[str, list[tuple[str, Choice, float]]] = defaultdict(list)
        for (place, choice), (date_s, name, _) in within.items():
            if place == scenario:
                jobs[name].append((str(choice), choice, date_s))
        able = [sorted(some) for some in jobs.values() if len(some) > 1 and any(one[1] == DEFAULT for one in some)]
        # Of two jobs with as many the one whose first sample, in the order of the choices, is the later.
        most = max(able, key=lambda some: (len(some), some[0][2]), default=[])
        found |= {(scenario, choice) for _, choice, _ in most}
    return found
