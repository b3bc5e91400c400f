"""The picture of the gain on the front page: which recorded job it shows, and the times that it draws."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the picture is drawn by matplotlib, of the extra evaluate")

from colltune.core.choice import DEFAULT
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune_study.recorded.dataset import load_grids
from gain_picture import CLUSTERS, largest_job, tuned_time_s

DATA = Path(__file__).parents[2] / "benchmarks" / "data"


@pytest.mark.parametrize("name", CLUSTERS.values())
def test_the_largest_job_of_each_collective_has_a_curve_of_recorded_defaults(name: str) -> None:
    for grid in load_grids([DATA / name]):
        job = largest_job(grid)
        assert len({(scenario.nodes, scenario.ppn) for scenario in job}) == 1
        assert len(job) >= 3
        nothing = RuleSet(grid.collective, SizeBasis.MESSAGE, (Rule(None, None, None, DEFAULT),))
        for scenario in job:
            default_s = float(grid.default_s[grid.scenarios.index(scenario)])
            assert default_s > 0.0
            assert tuned_time_s(grid, nothing, scenario) == tuned_time_s(grid, None, scenario) == default_s
