"""Regions as people read them: what was judged together, and what stands alone."""

import pytest

from colltune.core.choice import Choice
from colltune.core.interval import Interval
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Decision, Verdict
from colltune.core.scenario import Scenario
from colltune.core.summary import mean_of_kept

RING, TREE = Choice("ring"), Choice("tree", (("k", 4),))
REGION = Interval(1.5, 1.3, 1.8)


def decision(
    size: int,
    choice: Choice = TREE,
    *ratios: float,
    nodes: int = 2,
    region: Interval | None = REGION,
    verdict: Verdict = Verdict.KEPT,
) -> Decision:
    return Decision(Scenario("bcast", nodes, 2, size), choice, verdict, ratios, "why", region)


def test_what_an_audit_judged_together_is_one_region_with_its_own_interval() -> None:
    found = judged_regions([decision(256, TREE, 1.9, 1.2), decision(8192, nodes=8), decision(512)])
    assert [one.place for one in found] == ["bcast 2 to 8 x 2, 256 B to 8 KiB"]
    region = found[0]
    assert region.speedup == REGION
    assert (len(region.decisions), region.compared, region.comparisons) == (3, 1, 2)


def test_two_claims_of_one_choice_stay_two_regions() -> None:
    found = judged_regions([decision(256), decision(512, region=Interval(1.2, 1.1, 1.3))])
    assert [(one.sizes, one.speedup.low) for one in found] == [("256 B", 1.3), ("512 B", 1.1)]


def test_decisions_that_were_judged_one_by_one_are_told_together_where_they_are_neighbours() -> None:
    alone = [decision(size, RING, *[ratio] * 8, region=None) for size, ratio in ((64, 2.0), (128, 8.0), (4096, 3.0))]
    found = judged_regions(alone)
    assert [(one.sizes, one.speedup.low) for one in found] == [("64 B to 128 B", 2.0), ("4 KiB", 3.0)]
    assert found[0].speedup.estimate == pytest.approx(4.0)
    assert found[0].speedup.high == 8.0


def test_verdicts_and_choices_are_not_mixed() -> None:
    some = [decision(64, RING), decision(64 * 2, TREE), decision(256, TREE, verdict=Verdict.REFUSED)]
    assert len(judged_regions(some)) == 3


def test_what_was_not_compared_has_no_evidence() -> None:
    [region] = judged_regions([decision(64, RING, region=None, verdict=Verdict.NOT_TRIED)])
    assert not region.has_evidence
    assert region.speedup.estimate == 1.0


def test_a_scenario_that_was_not_compared_counts_with_its_region() -> None:
    gain = mean_of_kept([decision(64), decision(128, TREE, 1.9)])
    assert gain is not None
    assert (gain.estimate, gain.low) == pytest.approx((1.5, 1.3))
