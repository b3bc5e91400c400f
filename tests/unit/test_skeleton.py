"""The skeletons that benchmarks/applications_at_scale.py replays: their calls, computing, and what is left out."""

from collections import Counter
from dataclasses import replace
from math import log2
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.profile.profile_files import load_profile
from skeleton import Computing, computing_of, make_skeleton, order_of

RECORDED = Path(__file__).parents[2] / "benchmarks" / "data" / "at_scale"


def calls(
    ranks: int, name: str, number: float, least: float, most: float | None = None, form: str = "blocking"
) -> Calls:
    """Of a job of ``ranks``; a third of the calls of a range have its larger size. Each call takes 10 us."""
    made, top = round(number * ranks), least if most is None else most
    mean = least + (top - least) / 3
    where = Communicator(ranks, 1, ranks)
    return Calls(where, name, form, "", made, round(made * mean), 1e-5 * made, round(least), mean, round(top))


def profiles(*more: str) -> list[Profile]:
    """Of 2, 4 and 8 ranks: an alltoall of blocks that shrink by the square, a bcast of two sizes, and ``more``."""
    found = []
    for ranks in (2, 4, 8):
        made = [calls(ranks, "alltoall", 1000, (1 << 22) / ranks**2), calls(ranks, "bcast", 30, 1024, 1600)]
        if "no law" in more:
            made.append(calls(ranks, "allreduce", 250, {2: 64, 4: 7000, 8: 400}[ranks]))
        if "non-blocking" in more:
            made.append(calls(ranks, "allreduce", 250, 64, form="nonblocking"))
        seen = tuple((where, 1.0) for where in {one.communicator for one in made})
        found.append(Profile(tuple(made), seen, ranks, 1, 10.0, ranks, command=("app",)))
    return found


@pytest.mark.parametrize("shape", [(64, 1), (64, 4), (512, 1)])
def test_a_skeleton_has_the_calls_of_the_laws_and_their_bytes(shape: tuple[int, int]) -> None:
    nodes, ppn = shape
    skeleton = make_skeleton(profiles(), nodes, ppn)
    found = {kind.scenario: kind.calls for kind in skeleton.kinds}
    block = round((1 << 22) / (nodes * ppn) ** 2)
    assert found[Scenario("alltoall", nodes, ppn, block)] == pytest.approx(1000)
    sizes = {scenario.size_bytes: number for scenario, number in found.items() if scenario.collective == "bcast"}
    assert sizes.keys() == {1024, 1600}
    assert sum(sizes.values()) == pytest.approx(30)
    assert sum(size * number for size, number in sizes.items()) == pytest.approx(30 * (1024 + 576 / 3), rel=1e-3)
    assert skeleton.left_out == 0.0


@pytest.mark.parametrize("why", ["no law", "non-blocking"])
def test_what_is_left_out_counts_by_its_time(why: str) -> None:
    skeleton = make_skeleton(profiles(why), 64, 1)
    assert {kind.scenario.collective for kind in skeleton.kinds} == {"alltoall", "bcast"}
    assert skeleton.left_out == pytest.approx(250 / 1280, abs=0.005)
    assert "allreduce" in skeleton.why


def test_a_program_without_calls_that_can_be_replayed_is_refused() -> None:
    only = [replace(one, calls=(calls(one.ranks, "allreduce", 5, 64, form="nonblocking"),)) for one in profiles()]
    with pytest.raises(InputError, match="can be replayed"):
        make_skeleton(only, 64, 1)


def test_a_part_of_a_run_keeps_the_proportions_and_spreads_them() -> None:
    order = order_of([1000.0, 100.0, 1.0], 0.1)
    kinds = [kind for kind, _ in order]
    assert Counter(kinds) == {0: 100, 1: 10, 2: 1}
    for begin in range(0, 110, 11):
        assert 9 <= kinds[begin : begin + 11].count(0) <= 10
    assert sum(share for _, share in order) == pytest.approx(len(order) / 1101)


def test_a_whole_run_computes_all_of_it_and_a_step_before_its_calls_kind_after_kind() -> None:
    for steps in (0, 3):
        order = order_of([9.0, 4.0], steps=steps)
        assert Counter(kind for kind, _ in order) == {0: 9, 1: 4}
        assert sum(share for _, share in order) == pytest.approx(1.0)
    order = order_of([6.0, 3.0], steps=3)
    assert [kind for kind, _ in order] == [0, 0, 1] * 3
    assert [round(3 * share) for _, share in order] == [1, 0, 0] * 3


def test_computing_is_shared_out_but_for_what_two_ranks_did_not_halve() -> None:
    alone, pair = (Profile((), (), ranks, 1, time_s, ranks) for ranks, time_s in ((1, 10.0), (2, 6.0)))
    found = computing_of(alone, pair)
    assert (found.whole_s, found.own_s) == (10.0, 2.0)
    assert found.on(2) == pytest.approx(6.0)
    assert found.on(64) == pytest.approx(2.0 + 8.0 / 64)
    assert computing_of(alone, replace(pair, elapsed_s=4.9), 0.5).own_s == 0.5
    assert Computing(64.0).on(512) == 0.125
    with pytest.raises(InputError, match="of 2 ranks"):
        computing_of(pair, alone)


@pytest.mark.parametrize(("code", "most_called"), [("pw", "alltoall"), ("elk", "bcast")])
def test_the_recorded_programs_are_extrapolated_but_for_a_hundredth(code: str, most_called: str) -> None:
    recorded = [load_profile(RECORDED / f"{code}_{ranks}.json") for ranks in (2, 4, 8)]
    skeleton = make_skeleton(recorded, 512, 1)
    assert skeleton.left_out < 0.01
    most = max(skeleton.kinds, key=lambda kind: kind.calls)
    assert most.scenario.collective == most_called
    assert most.moving == (code == "elk")
    if code == "pw":  # a slab's blocks shrink by the square of the ranks
        whole = {one.size_most * p.ranks**2 for p in recorded for one in p.calls if one.calls > 1000 and one.size_most}
        assert most.scenario.size_bytes == pytest.approx(max(whole) / 512**2, rel=0.05)
    assert log2(most.scenario.ranks) == 9
