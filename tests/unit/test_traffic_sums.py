"""The sums over an algorithm's messages, by what is known of them in closed form."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, Scenario, parse_choice
from colltune.traffic import COLUMNS, traffic_of
from colltune_study.recorded.dataset import load_grids
from colltune_study.simulated.simulated_catalogue import load_simulated
from colltune_study.training.recorded_algorithms import planner_of

DATA = Path(__file__).parents[2] / "benchmarks" / "data"


def describe(scenario: Scenario, choice: Choice) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(COLUMNS, traffic_of([(scenario, choice)])[0].tolist(), strict=True)))


@pytest.mark.parametrize(("library", "version"), [("mpich", "5.0"), ("openmpi", "5.0"), ("simulated", "")])
def test_every_candidate_is_described(library: str, version: str) -> None:
    catalogue = load(library, version) if version else load_simulated()
    for name in COLLECTIVES:
        try:
            choices = catalogue.choices(name)
        except InputError:
            assert library == "simulated"
            continue
        for choice in choices:
            # What a composition does by itself depends on the library's own choice.
            composed = choice.algorithm.partition(".")[0] in ("alpha", "beta", "gamma", "delta")
            if "+" in choice.algorithm or (choice != DEFAULT and not composed):
                assert planner_of(name, choice.algorithm, library), (name, choice)


def test_the_ring_sends_all_but_one_block_over_each_link_and_doubling_stays_in_the_node_at_first() -> None:
    found = describe(Scenario("allgather", 8, 4, 1000), Choice("ring"))
    assert (found.rank_messages, found.rank_bytes, found.node_bytes) == (31, 31_000, 31_000)
    assert (found.network_rounds, found.local_rounds, found.burst) == (31, 0, 1)
    assert np.isnan(describe(Scenario("allgather", 8, 4, 1000), Choice("of_tomorrow")).all_bytes)
    found = describe(Scenario("allreduce", 8, 4, 1000), Choice("recursive_doubling"))
    assert (found.network_rounds, found.local_rounds) == (3, 2)
    assert (found.node_bytes, found.reduced_bytes) == (3 * 4 * 1000, 5 * 1000)


def test_pairwise_and_linear_differ_in_the_burst_alone() -> None:
    one, other = (describe(Scenario("alltoall", 4, 16, 64), Choice(name)) for name in ("pairwise", "linear"))
    assert one.all_bytes == other.all_bytes == 64 * 63 * 64
    assert one.node_bytes == other.node_bytes == 16 * 48 * 64
    assert (one.burst_rank, other.burst_rank) == (1, 63)
    assert other.burst == 16 * 48


def test_segments_make_more_rounds_and_the_same_bytes() -> None:
    whole, cut = (
        describe(Scenario("bcast", 16, 1, 1 << 20), parse_choice(f"chain(segment={segment})"))
        for segment in (1 << 20, 1 << 16)
    )
    assert whole.all_bytes == cut.all_bytes
    assert (whole.network_rounds, cut.network_rounds) == (15, 15 + 15)
    assert whole.rank_bytes > 5 * cut.rank_bytes / 2


def test_every_recorded_time_of_processors_is_described() -> None:
    for path in sorted(DATA.glob("pico_*[!u].csv.gz")) + sorted(DATA.glob("mpiadvance_*.csv.gz")):
        if "gpu" not in path.name:
            for grid in load_grids([path], 2):
                assert [c for c in grid.choices if not planner_of(grid.collective, c.algorithm)] == [], grid.name
