"""What a tuning directory keeps of earlier campaigns, and how much of it a new one believes."""

import math
import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Space
from colltune.judge.sentinels import Recheck, Sentinel, recheck, sentinels, verdicts
from colltune.measure.contract import Effort
from colltune.search.reuse import begin_journal, cheap, fitting, reuse
from colltune.store.earlier import Earlier, archive, entries, latest_profile, new_entry, read_history
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, MANIFEST
from colltune_study.simulated.drawn import QUIET, Noise, SimulatedSource
from journal_samples import ENVIRONMENT

RING, TREE, NB = Choice("ring"), Choice("tree"), Choice("nb")
CHOICES = (DEFAULT, RING, TREE, NB)
Time = Callable[[Scenario, Choice], float]


def scenarios(*collectives: str) -> list[Scenario]:
    return [Scenario(name, 2, 2, 1 << power) for name in collectives for power in range(10)]


def time_s(scenario: Scenario, choice: Choice) -> float:
    """Above 64 bytes the ring is 1.5 times as fast as the default."""
    base_s = 1e-5 + 1e-8 * scenario.size_bytes
    factor = {DEFAULT: 1.0, RING: 0.67 if scenario.size_bytes > 64 else 1.3, TREE: 1.4, NB: 2.0}
    return base_s * factor[choice]


def measured(*collectives: str, by: Time = time_s) -> list[Sample]:
    return [Sample(s, c, Status.OK, (by(s, c),) * 5) for s in scenarios(*collectives) for c in CHOICES]


def source(by: Time, seed: int = 1, noise: Noise = QUIET) -> SimulatedSource:
    return SimulatedSource(ENVIRONMENT, by, seed=seed, noise=noise)


def campaign(directory: Path, samples: list[Sample], environment: Environment = ENVIRONMENT, when_s: int = 0) -> None:
    with Journal.create(directory / JOURNAL, environment) as journal:
        journal.append(samples)
    if when_s:
        os.utime(directory / JOURNAL, (when_s, when_s))


def test_earlier_measurements_are_moved_and_the_tuning_stays(tmp_path: Path) -> None:
    campaign(tmp_path, measured("bcast"), when_s=1_000_000_000)
    (tmp_path / MANIFEST).write_text("{}")
    written = (tmp_path / JOURNAL).read_bytes()
    place = archive(tmp_path)
    assert place == tmp_path / "history" / "2001-09-09T01-46-40Z"
    assert (place / JOURNAL).read_bytes() == written
    assert not (tmp_path / JOURNAL).exists()
    assert (tmp_path / MANIFEST).exists()
    assert archive(tmp_path) is None
    for _ in range(2):  # campaigns of one second do not meet
        campaign(tmp_path, measured("bcast"), when_s=1_000_000_000)
        archive(tmp_path)
    assert len(list(entries(tmp_path))) == 3


def test_a_journal_that_is_being_written_is_not_moved(tmp_path: Path) -> None:
    with Journal.create(tmp_path / JOURNAL, ENVIRONMENT), pytest.raises(InputError, match="another process"):
        archive(tmp_path)
    assert (tmp_path / JOURNAL).exists()


def test_the_latest_campaign_speaks_for_a_scenario(tmp_path: Path) -> None:
    old, new = measured("bcast", "reduce"), measured("bcast", by=lambda s, c: 2.0 * time_s(s, c))
    for when_s, samples in ((1_000_000_000, old), (1_000_009_000, new)):
        campaign(tmp_path, samples, when_s=when_s)
        archive(tmp_path)
    earlier, remarks = read_history(tmp_path, ENVIRONMENT)
    assert (remarks, earlier.date) == ([], "2001-09-09T04-16-40Z")
    assert set(earlier.samples) == {*new, *measured("reduce")}


def test_other_environments_and_damage_are_left_out_with_a_reason(tmp_path: Path) -> None:
    campaign(tmp_path, measured("bcast"), replace(ENVIRONMENT, mpi_version="4.3.2"))
    archive(tmp_path)
    place = new_entry(tmp_path, 1.0)
    (place / JOURNAL).write_text("nonsense\n")
    new_entry(tmp_path, 2.0)  # a folder without a journal: a profile, or a move that was cut off
    earlier, remarks = read_history(tmp_path, ENVIRONMENT)
    assert (earlier, len(remarks)) == (None, 2)
    assert all(words in "\n".join(remarks) for words in ("4.3.2", "not a journal"))


def test_resuming_leaves_the_history_alone(tmp_path: Path) -> None:
    campaign(tmp_path, measured("bcast"))
    said: list[str] = []
    with begin_journal(tmp_path / JOURNAL, ENVIRONMENT, True, said.append) as journal:
        assert len(journal.samples) == 40
    assert not said
    with begin_journal(tmp_path / JOURNAL, ENVIRONMENT, False, said.append) as journal:
        assert not journal.samples
    assert "is kept in" in said[0]


def test_only_what_a_campaign_can_use_is_taken() -> None:
    space = Space("bcast", tuple(scenarios("bcast")[:3]), lambda _s: CHOICES)
    other_shape = Sample(Scenario("bcast", 4, 4, 1), DEFAULT, Status.OK, (1.0,))
    earlier = Earlier("2001", (*measured("bcast", "reduce"), other_shape))
    found = fitting(earlier.samples, {"bcast": space}, lambda _s: (DEFAULT, RING))
    assert {s.scenario.collective for s in found} == {"bcast"}
    assert {s.choice for s in found} == {DEFAULT, RING}
    assert other_shape not in found


@pytest.mark.parametrize("pace", [0.8, 1.0, 1.3])
def test_measurements_that_hold_are_used_again(pace: float) -> None:
    samples, recorded, said = measured("bcast", "reduce"), [], []
    now = source(lambda s, c: pace * time_s(s, c))
    found = reuse(Earlier("2001", tuple(samples)), now, Effort(), recorded.extend, said.append).samples
    assert set(samples) <= set(found)
    assert set(recorded) == set(found)  # the journal holds all that was made use of
    assert len(found) - len(samples) <= 2 * 2 * 6
    assert all("40 measurements of 2001 still hold" in text for text in said)


def slower_ring(factor: float) -> Time:
    return lambda scenario, choice: time_s(scenario, choice) * (factor if choice == RING else 1.0)


@pytest.mark.parametrize(("factor", "dropped"), [(1.0, range(3)), (1.6, range(38, 41))])
def test_heavy_tails_and_launches_with_modes_are_not_taken_for_a_change(factor: float, dropped: range) -> None:
    """Of 40 looks: noise alone hardly ever drops anything, and a ring that is 1.6 times slower does not get through."""
    said: list[str] = []
    for seed in range(40):
        by = source(slower_ring(factor), seed, Noise())
        reuse(Earlier("2001", tuple(measured("bcast"))), by, Effort(), lambda _s: None, said.append)
    assert sum("are not used" in text for text in said) in dropped


@pytest.mark.parametrize(
    ("scatter", "factor", "dropped"), [(0.05, 1.0, range(3)), (0.2, 1.0, range(3)), (0.05, 1.3, range(38, 41))]
)
def test_a_shift_is_judged_by_how_far_comparisons_scatter_from_launch_to_launch(
    scatter: float, factor: float, dropped: range
) -> None:
    """Of 40 looks, where each of eight earlier launches compared the ring of all sizes with the default."""
    noise, said = replace(QUIET, unevenness=scatter), list[str]()
    for seed in range(40):
        draw = random.Random(seed)
        gains = {one: math.log(time_s(one, DEFAULT) / time_s(one, RING)) for one in scenarios("bcast")}
        proven = {one: RING for one, gain in gains.items() if gain > 0.0}
        compared = {(s, RING): [gains[s] + draw.gauss(0.0, math.sqrt(2.0) * scatter) for _ in range(8)] for s in proven}
        earlier = Earlier("2001", tuple(measured("bcast")), None, proven, compared)
        reuse(earlier, source(slower_ring(factor), seed, noise), Effort(), lambda _s: None, said.append)
    assert sum("are not used" in text for text in said) in dropped


def test_doubt_costs_another_launch_and_certainty_none() -> None:
    def launches(factor: float) -> int:
        by = source(slower_ring(factor))
        proven = dict.fromkeys(scenarios("bcast")[-3:], RING)
        compared = {(one, RING): [0.3, 0.5] * 4 for one in proven}
        reuse(Earlier("2001", tuple(measured("bcast")), None, proven, compared), by, Effort(), lambda _s: None, print)
        return by.launches

    assert launches(1.0) == launches(3.0) == 1
    assert 1 < launches(1.3) <= 6


def test_a_collective_that_changed_is_dropped_and_the_other_kept() -> None:
    def now_s(scenario: Scenario, choice: Choice) -> float:
        return time_s(scenario, choice) * (2.0 if scenario.collective == "bcast" and choice == RING else 1.0)

    said, earlier = list[str](), Earlier("2001", tuple(measured("bcast", "reduce")))
    found = reuse(earlier, source(now_s), Effort(), lambda _s: None, said.append).samples
    assert len([s for s in found if s.scenario.collective == "reduce"]) >= 40
    kept = [s for s in found if s.scenario.collective == "bcast"]
    assert len(kept) == 2 * 6  # what was just measured, and no more
    assert any(text.startswith("bcast: measurements of 2001 are not used: ") for text in said)


def test_another_speed_of_everything_is_another_machine() -> None:
    said: list[str] = []
    by = source(lambda s, c: 3.0 * time_s(s, c))
    found = reuse(Earlier("2001", tuple(measured("bcast"))), by, Effort(), lambda _s: None, said.append).samples
    assert len(found) == 2 * 6
    assert "calls take 3.0" in said[0]


def test_sentinels_are_spread_and_mostly_where_something_is_gained() -> None:
    found = sentinels(measured("bcast"), 4)
    assert [one.choice for one in found] == [RING] * 4
    assert sum(one.gain > 1.03 for one in found) == 3
    assert found[0].scenario.size_bytes <= 64
    assert len(sentinels(measured("bcast"), 100)) == 10
    assert {one.choice for one in sentinels(measured("bcast"), 9, lambda _s: TREE)} == {TREE}
    # A failed choice is none, nor is anything without a time of the default.
    one = scenarios("bcast")[0]
    assert not sentinels([Sample(one, DEFAULT, Status.OK, (1.0,)), Sample(one, RING, Status.CRASHED)], 3)
    assert not sentinels([Sample(one, TREE, Status.OK, (1.0,)), Sample(one, RING, Status.OK, (2.0,))], 3)


@pytest.mark.parametrize(
    ("now_s", "finding"), [(1.0, "holds"), (1.2, "holds"), (1.4, "changed"), (0.7, "changed"), (1.6, "slower")]
)
def test_a_gain_is_compared_with_that_of_then(now_s: float, finding: str) -> None:
    one, finding = Sentinel(scenarios("bcast")[0], RING, default_s=1.5, choice_s=1.0), SpeedVerdict(finding)
    assert Recheck(one, ((1.5, now_s),)).verdict is finding
    # The median of three launches: one that is off changes nothing.
    assert Recheck(one, ((1.5, now_s), (1.5, now_s), (1.5, 9.0))).verdict is finding


def test_what_could_not_be_measured_does_not_hold() -> None:
    wanted = sentinels(measured("bcast"), 4)
    found = recheck(wanted, [[Sample(one.scenario, DEFAULT, Status.OK, (1.0,)) for one in wanted]])
    assert {one.verdict for one in found} == {SpeedVerdict.UNMEASURED}
    assert verdicts(found)["bcast"].why_not == "4 of 4 sentinels changed"


def test_one_rule_that_turned_slower_is_enough() -> None:
    wanted = sentinels(measured("bcast"), 8)
    pairs = [(one.scenario, choice) for one in wanted for choice in (DEFAULT, one.choice)]
    times_s = {pair: time_s(*pair) * (2.0 if pair == pairs[-1] else 1.0) for pair in pairs}
    now = [Sample(*pair, Status.OK, (now_s,)) for pair, now_s in times_s.items()]
    assert "ring is now slower than the default" in verdicts(recheck(wanted, [now]))["bcast"].why_not


def test_what_was_proven_comes_first_and_must_not_be_slower_even_where_that_was_measured_before() -> None:
    """A job that is killed after it measured a machine that changed leaves such samples, and no tuning of its own."""
    proven = dict.fromkeys(scenarios("bcast")[::2], TREE)
    wanted = sentinels(measured("bcast"), 6, proven.get)
    assert sum(one.promised for one in wanted) == len(proven) == 5
    times_s = {DEFAULT: 1.0, RING: 1.0, TREE: 2.0}
    now = [Sample(one.scenario, c, Status.OK, (times_s[c],)) for one in wanted for c in (DEFAULT, one.choice)]
    as_then = [Sentinel(one.scenario, one.choice, 1.0, 2.0, promised=one.promised) for one in wanted if one.promised]
    assert {one.verdict for one in recheck(as_then, [now])} == {SpeedVerdict.SLOWER}
    assert verdicts(recheck(as_then, [now]))["bcast"].why_not


def test_the_fastest_of_many_that_is_a_little_slower_when_it_is_measured_again_has_not_changed() -> None:
    """It was picked for one lucky time, and nobody proved anything of it."""
    wanted = [Sentinel(one, RING, 1.0, 1.0 / 1.06) for one in scenarios("bcast")[:6]]
    unproven = [one.scenario for one in wanted]

    def now(ring_s: float) -> list[Recheck]:
        times = {DEFAULT: 1.0, RING: ring_s}
        return recheck(wanted, [[Sample(one.scenario, c, Status.OK, (times[c],)) for one in wanted for c in times]])

    assert {one.verdict for one in now(1.05)} == {SpeedVerdict.SLOWER}
    assert verdicts(now(1.05), unproven)["bcast"].holds
    assert verdicts(now(1.05))["bcast"].why_not
    assert verdicts(now(1.3), unproven)["bcast"].why_not == "6 of 6 sentinels changed"


def test_the_look_leaves_expensive_calls_out_where_there_are_cheap_ones() -> None:
    many = [Scenario("bcast", 2, 2, 1 << size) for size in range(20)]
    samples = [
        Sample(one, choice, Status.OK, (1e-6,), cost_s=0.01 if one.size_bytes < 1 << 14 else 5.0)
        for one in many
        for choice in (DEFAULT, RING)
    ]
    assert max(one.scenario.size_bytes for one in cheap(samples, 0.1)) == 1 << 13
    assert len({one.scenario for one in cheap(samples[28:], 0.1)}) == 6  # all are expensive


def test_the_latest_profile_is_found(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no profile"):
        latest_profile(tmp_path)
    for when_s in (1.0, 90_000.0, 50.0):
        (new_entry(tmp_path, when_s) / "profile.json").write_text(str(when_s))
    new_entry(tmp_path, 100_000.0)
    assert latest_profile(tmp_path).read_text() == "90000.0"
