"""By which times choices are made, and what competes, looked at again in further launches."""

from dataclasses import replace
from pathlib import Path

import pytest
from memory_bench import MemoryBench
from test_tune_in_memory import options, truth

from colltune.core.medians import medians_of
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status
from colltune.core.space import Space
from colltune.search.contenders import as_in_first_launch, contenders
from colltune.session.tuning.tune import tune
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL

RING, TREE = Choice("ring"), Choice("tree")
SMALL, LARGE = Scenario("bcast", 4, 2, 64), Scenario("bcast", 4, 2, 4096)


def sample(scenario: Scenario, choice: Choice, time_s: float, launch: int = 1) -> Sample:
    return Sample(scenario, choice, Status.OK, (time_s,) * 3, cost_s=0.1, launch=launch)


def test_choices_are_made_half_way_from_the_slowest_rank_to_the_mean_of_all() -> None:
    """An interruption of all ranks is in both means; it moves the median as little as before."""
    seen = replace(sample(SMALL, RING, 1.0), times_s=(1.0, 1.0, 10.0), osu_mean_s=1.0, kept_s=2.0)
    assert seen.for_choosing().time_s == pytest.approx(0.5)
    assert seen.for_choosing().kept_s == pytest.approx(1.0)
    assert replace(seen, osu_mean_s=5.0).for_choosing().times_s == seen.times_s  # no mean is above the slowest
    assert replace(seen, osu_mean_s=None).for_choosing() == replace(seen, osu_mean_s=None)


def test_what_a_launch_does_to_all_choices_of_a_call_is_taken_off() -> None:
    """The second launch is 1.5 times as slow; beside the others ring is 1.2 times as slow in it, and tree as fast."""
    first = [sample(SMALL, DEFAULT, 1.0), sample(SMALL, RING, 0.8), sample(SMALL, TREE, 0.9), sample(LARGE, RING, 3.0)]
    second = [sample(SMALL, DEFAULT, 1.5, 2), sample(SMALL, RING, 1.2 * 1.2, 2), sample(SMALL, TREE, 1.35 / 1.2, 2)]
    alone = sample(LARGE, TREE, 2.0, 2)  # nothing that both launches looked at tells what the launch did here
    seen = medians_of(list(as_in_first_launch([*first, *second, alone])))
    assert seen[SMALL, DEFAULT] == pytest.approx(1.0)
    assert seen[SMALL, TREE] < 0.83 < seen[SMALL, RING]
    assert (seen[LARGE, RING], seen[LARGE, TREE]) == (3.0, 2.0)


def test_what_competes_is_what_is_close_to_the_fastest_and_the_default_beside_it() -> None:
    seen = [sample(SMALL, DEFAULT, 2.0), sample(SMALL, RING, 1.0), sample(SMALL, TREE, 1.3)]
    seen += [sample(LARGE, DEFAULT, 2.0), sample(LARGE, RING, 1.0), sample(LARGE, TREE, 1.5)]  # ring alone
    spaces = {"bcast": Space("bcast", (SMALL, LARGE), lambda _scenario: (DEFAULT, RING, TREE))}
    (point,) = contenders(seen, spaces, lambda _scenario: DEFAULT, 1.0)
    assert (point.scenario, set(point.choices)) == (SMALL, {DEFAULT, RING, TREE})
    assert contenders(seen, spaces, lambda _scenario: DEFAULT, 0.2) == []  # three choices of 0.1 s


@pytest.mark.parametrize(("launch_s", "further"), [(0.1, {2, 3}), (5.0, set())])
def test_where_launches_are_cheap_a_tuning_looks_again(launch_s: float, further: set[int], tmp_path: Path) -> None:
    tune(MemoryBench(truth, launch_s=launch_s), options(), tmp_path)
    samples = read_journal(tmp_path / JOURNAL).samples
    assert {one.launch for one in samples} == {1} | further
    first = {(one.scenario, one.choice) for one in samples if one.launch == 1}
    for launch in further:
        again = [(one.scenario, one.choice) for one in samples if one.launch == launch]
        assert len(again) == len(set(again)) < len(first)
        assert {(scenario, DEFAULT) for scenario, _ in again} <= set(again) <= first
