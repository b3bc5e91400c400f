"""`predict --calibrate` on clusters that the shipped model never saw: recorded times of simulated ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.bench.recorded_cluster import RecordedBench
from colltune.core.choice import DEFAULT
from colltune.measure.replay import TimeDrift
from colltune.predict.model import load_model
from colltune.session.calibrate import MOST_PAIRS, Calibrated, calibrate, decided
from colltune.store.dataset import load_grids
from colltune.store.grid import Grid

DATA = Path(__file__).parents[2] / "benchmarks" / "data"
NAMES = ("allgather", "allreduce", "alltoall")


@pytest.fixture(scope="module")
def grids() -> list[Grid]:
    return [grid for grid in load_grids([DATA / "simulated_dragonfly.parquet"]) if grid.collective in NAMES]


def opened(grids: list[Grid], seed: int = 0, pairs: int = MOST_PAIRS) -> tuple[RecordedBench, Calibrated]:
    bench = RecordedBench(grids, launch_s=0.5, launch_sd=0.01, drift=TimeDrift())
    spaces = {grid.collective: bench.space(grid.collective, 1, 1 << 20) for grid in grids}
    return bench, calibrate(bench, load_model(), spaces, seed=seed, pairs=pairs)


def test_rules_are_faster_than_the_default_on_a_cluster_that_nobody_measured(grids: list[Grid]) -> None:
    grids = [grid for grid in grids if grid.collective == "allreduce"]
    bench, done = opened(grids)
    assert len(done.samples) <= MOST_PAIRS
    assert done.took_s <= 10.5
    true = []
    for grid in grids:
        for guess in decided(bench, done, bench.space(grid.collective, 1, 1 << 20)):
            if guess.choice != DEFAULT:
                row = grid.rows[guess.scenario]
                true.append(grid.default_s[row] / grid.time(guess.scenario, guess.choice))
    assert len(true) >= 5
    assert np.mean(np.array(true) < 1.0 / 1.03) <= 0.02
    assert np.exp(np.log(true).mean()) > 1.1


def test_without_measurements_the_default_stays(grids: list[Grid]) -> None:
    bench, done = opened(grids, pairs=0)
    for grid in grids:
        guesses = decided(bench, done, bench.space(grid.collective, 1, 1 << 20))
        assert {guess.choice for guess in guesses} == {DEFAULT}


def test_a_default_that_was_disturbed_once_is_found_out(grids: list[Grid], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look at each default takes 50 times as long, and the second one what it takes."""
    bench = RecordedBench(grids, launch_s=0.5)
    launch = bench.launch
    seen: set[object] = set()

    def disturbed(seed: int) -> object:
        source = launch(seed)
        measure = source.measure

        def measured(points, effort):  # type: ignore[no-untyped-def]
            for point, samples in measure(points, effort):
                found = []
                for sample in samples:
                    first = sample.choice == DEFAULT and sample.scenario not in seen
                    factor = 50.0 if first else 1.0
                    seen.update({sample.scenario} if first else set())
                    found.append(replace(sample, times_s=tuple(factor * time_s for time_s in sample.times_s)))
                yield point, found

        monkeypatch.setattr(source, "measure", measured)
        return source

    monkeypatch.setattr(RecordedBench, "launch", lambda _self, seed: disturbed(seed))
    spaces = {grid.collective: bench.space(grid.collective, 1, 1 << 20) for grid in grids}
    done = calibrate(bench, load_model(), spaces)
    assert seen
    for grid in grids:
        for guess in decided(bench, done, spaces[grid.collective]):
            if guess.choice != DEFAULT:
                true = grid.default_s[grid.rows[guess.scenario]] / grid.time(guess.scenario, guess.choice)
                assert true > 1.0 / 1.03, guess
