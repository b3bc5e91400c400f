"""Performance guidelines: what is called violated is violated, and what any library may do is not."""

import math

import pytest
from test_compare import UNEASY, TwoSided

from colltune.cli.compare import as_record
from colltune.cli.console import print_json
from colltune.core.sample import COLLECTIVES, PER_BLOCK, REDUCTIONS, Choice, Scenario, Status
from colltune.prove.compare.guidelines import guidelines_at, judge_guidelines
from colltune.prove.compare.two_sides import Launched, Side
from colltune.session.compare import Verification, violations_of
from documented_json import check_document
from examples import examples

SIZES = (4, 1 << 18)
CLIFF = Scenario("gather", 2, 4, 256)


def fair(scenario: Scenario, _choice: Choice) -> float:
    """Latency and bandwidth of a plain algorithm: rounds of a tree, and the bytes that a rank sends or gets."""
    moved = scenario.size_bytes * (scenario.ranks if scenario.collective in PER_BLOCK else 1)
    both_ways = 1.5 if scenario.collective in ("allreduce", "allgather", "allgatherv", "alltoall") else 1.0
    return both_ways * (2e-6 * math.log2(scenario.ranks) + 1e-9 * moved)


def cliff(scenario: Scenario, choice: Choice) -> float | Status:
    return 4e-5 if scenario == CLIFF else fair(scenario, choice)


def judged(bench: TwoSided, seed: int = 1) -> Verification:
    return violations_of(Side("call", bench), SIZES, 300.0, seed)


def test_a_library_that_keeps_them_is_not_accused() -> None:
    for seed in examples(6, 20):
        assert not judged(TwoSided(truth=fair, noise=UNEASY), seed).slower


def test_a_cliff_is_found_by_all_that_does_the_same_and_nothing_else_is_accused() -> None:
    for seed in examples(6, 20):
        found = judged(TwoSided(truth=cliff, noise=UNEASY), seed).slower
        texts = {str(one.choice) for one in found if one.scenario == CLIFF}
        assert texts >= {"allgather", "gather of 2048 B"}
        assert all(one.scenario == CLIFF for one in found)


def test_other_programs_get_what_the_reference_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = judged(TwoSided(truth=cliff))
    print_json("guidelines", {**as_record(found), "looked_at": len(found.screened), "open": found.open})
    document = check_document(capsys.readouterr().out, "guidelines")
    assert {one["choice"] for one in document["comparisons"]} >= {"allgather"}


def test_every_call_is_one_that_can_be_measured_and_none_is_beyond_the_largest() -> None:
    for nodes, ppn in ((1, 2), (4, 2), (3, 2), (1, 7)):
        found = guidelines_at(nodes, ppn, *SIZES)
        assert {one.call.collective for one in found} == set(COLLECTIVES)
        for scenario in {s for one in found for s in (one.call, *one.mock_up)}:
            assert scenario.size_bytes <= SIZES[1]
            assert scenario.size_bytes % 4 == 0 or scenario.collective not in REDUCTIONS
            if scenario.collective.startswith("reduce_scatter"):
                assert scenario.size_bytes >= 4 * scenario.ranks


def test_parts_are_of_the_size_that_makes_them_do_the_same() -> None:
    found = {(one.call, one.text): one for one in guidelines_at(4, 2, *SIZES)}
    whole = found[Scenario("bcast", 4, 2, 2048), "scatter/p + allgather/p"]
    assert [one.size_bytes for one in whole.mock_up] == [256, 256]
    block = found[Scenario("gather", 4, 2, 256), "reduce*p + local*p"]
    assert ([one.size_bytes for one in block.mock_up], block.local_bytes) == ([2048], 2048)
    assert found[Scenario("barrier", 4, 2, 0), "allreduce"].mock_up == (Scenario("allreduce", 4, 2, 4),)


def test_what_is_filled_beside_counts_for_the_call() -> None:
    (one,) = [one for one in guidelines_at(2, 1, 1 << 16, 1 << 20) if one.text == "bcast*p + local"][:1]
    measured = Launched()
    for _ in range(8):
        measured.times_s[one.call].append(1.05e-4)
        measured.times_s[one.mock_up[0]].append(1e-4)
    (found,) = judge_guidelines([one], measured)
    assert found.speedup.estimate == pytest.approx((1e-4 + 1e-9 * one.call.size_bytes) / 1.05e-4)


def test_a_call_that_no_launch_measured_costs_its_guidelines_alone() -> None:
    guidelines = guidelines_at(2, 1, 4, 256)
    measured = Launched()
    for scenario in {s for one in guidelines for s in (one.call, *one.mock_up)}:
        if scenario.collective != "scatter":
            measured.times_s[scenario] += [1e-5, 1e-5, 1e-5]
    without = [one for one in guidelines if "scatter" not in {s.collective for s in (one.call, *one.mock_up)}]
    assert len(judge_guidelines(guidelines, measured)) == len(without)
