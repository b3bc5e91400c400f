"""What a whole campaign delivers on a recorded table."""

from pathlib import Path

import pytest

from colltune.store.grid import Grid
from colltune_study.recorded.dataset import load_grids
from colltune_study.recorded.launch_effects import AS_MEASURED, NO_EFFECTS
from colltune_study.research.delivery import by_cluster, deliver

DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"


@pytest.fixture(scope="module")
def lumi() -> list[Grid]:
    ((_, grids),) = by_cluster(load_grids([DATA / "pico_lumi.csv.gz"])).items()
    return grids


def test_a_campaign_captures_most_of_the_headroom_and_harms_nothing(lumi: list[Grid]) -> None:
    found = deliver("lumi", lumi, 300.0, 0)
    assert found.captured > 0.5
    assert found.harmed <= 0.02
    assert found.worst <= 1.10
    assert found.overrun <= 1.1
    assert found.kept > 0
    assert found.rules > 0
    assert 0 < found.decided < found.scenarios


@pytest.mark.slow
def test_with_the_launches_of_a_cluster_nothing_is_harmed(lumi: list[Grid]) -> None:
    calm, moved = (deliver("lumi", lumi, 120.0, 1, launch_sd=0.0, effects=one) for one in (NO_EFFECTS, AS_MEASURED))
    assert moved.captured > 0.3
    assert moved.captured != calm.captured
    assert moved.harmed == calm.harmed == 0.0


def test_without_a_launch_that_fits_nothing_is_captured_and_nothing_harmed(lumi: list[Grid]) -> None:
    found = deliver("lumi", lumi, 60.0, 0, launch_s=30.0)
    assert found.harmed == 0.0
    assert found.total_s <= 1.1 * max(found.budget_s, found.fixed_cost_s)
