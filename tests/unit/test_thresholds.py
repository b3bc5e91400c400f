"""MPICH by thresholds: the model, the exact optimum, and the file."""

import math
import random

import pytest

from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario
from colltune.emit.thresholds import MODELS, fit, format_fits
from thresholds_file import parse_thresholds

TIMES = dict[tuple[Scenario, Choice], float]


def table(collective: str, algorithms: list[str], seed: int, ranks: tuple[int, ...] = (8, 16)) -> TIMES:
    draw = random.Random(f"{collective} {seed}")
    sizes = [4 << power for power in range(0, 18, 2)]
    return {
        (Scenario(collective, count, 1, size), Choice(name)): draw.uniform(1.0, 9.0)
        for count in ranks
        for size in sizes
        for name in algorithms
    }


ALGORITHMS = {
    "alltoall": ["brucks", "scattered", "pairwise"],
    "allgather": ["recursive_doubling", "brucks", "ring"],
    "allreduce": ["recursive_doubling", "reduce_scatter_allgather"],
    "bcast": ["binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"],
    "reduce": ["binomial", "reduce_scatter_gather"],
    "reduce_scatter": ["recursive_halving", "pairwise"],
}


def loss_of(collective: str, times: TIMES, values: tuple[int, ...]) -> float:
    model = MODELS[collective]
    scenarios = sorted({scenario for scenario, _ in times})
    best = {s: min(t for (other, _), t in times.items() if other == s) for s in scenarios}
    logs = [math.log(times[s, Choice(model.decide(s, values))] / best[s]) for s in scenarios]
    return math.exp(sum(logs) / len(logs))


@pytest.mark.parametrize("collective", ALGORITHMS)
@pytest.mark.parametrize("seed", range(3))
def test_no_thresholds_are_better_than_those_found(collective: str, seed: int) -> None:
    """Against many drawn ones, each measured size and its neighbours among them."""
    times = table(collective, ALGORITHMS[collective], seed)
    found = fit(collective, times)
    assert found is not None
    assert found.loss == pytest.approx(loss_of(collective, times, found.values))
    assert found.default_loss == pytest.approx(loss_of(collective, times, MODELS[collective].defaults))
    draw = random.Random(seed)
    near = [s.size_bytes * factor + step for s, _ in times for factor in (1, s.ranks) for step in (-1, 0, 1)]
    for _ in range(400):
        values = tuple(draw.choice(near) for _ in MODELS[collective].variables)
        assert found.loss <= loss_of(collective, times, values) + 1e-9


def test_the_thresholds_of_mpich_itself_stay_where_they_are_best() -> None:
    """Equal times everywhere: nothing is gained by another value."""
    times = dict.fromkeys(table("bcast", ALGORITHMS["bcast"], 1), 1.0)
    found = fit("bcast", times)
    assert found is not None
    assert found.values == MODELS["bcast"].defaults
    assert found.loss == 1.0


def test_a_call_that_was_not_measured_with_all_algorithms_says_nothing() -> None:
    times = table("reduce", ["binomial"], 1)
    assert fit("reduce", times) is None
    assert fit("gather", times) is None
    with pytest.raises(InputError, match="no thresholds of barrier"):
        fit("barrier", times)


@pytest.mark.parametrize(
    ("collective", "nodes", "size", "algorithm"),
    [
        ("alltoall", 8, 256, "brucks"),
        ("alltoall", 8, 257, "scattered"),
        ("alltoall", 7, 256, "scattered"),
        ("alltoall", 8, 32768, "scattered"),
        ("alltoall", 8, 32769, "pairwise"),
        ("allgather", 8, 65535, "recursive_doubling"),
        ("allgather", 8, 65536, "ring"),
        ("allgather", 10, 8191, "brucks"),
        ("allgather", 10, 8192, "ring"),
        ("allreduce", 4, 2048, "recursive_doubling"),
        ("allreduce", 4, 2052, "reduce_scatter_allgather"),
        ("bcast", 8, 12287, "binomial"),
        ("bcast", 8, 12288, "scatter_recursive_doubling_allgather"),
        ("bcast", 9, 12288, "scatter_ring_allgather"),
        ("bcast", 7, 1 << 20, "binomial"),
        ("bcast", 8, 524288, "scatter_ring_allgather"),
        ("reduce", 4, 2048, "binomial"),
        ("reduce", 4, 2052, "reduce_scatter_gather"),
        ("reduce_scatter", 4, 524284, "recursive_halving"),
        ("reduce_scatter", 4, 524288, "pairwise"),
    ],
)
def test_the_model_decides_as_mpich_3_does(collective: str, nodes: int, size: int, algorithm: str) -> None:
    model = MODELS[collective]
    assert model.decide(Scenario(collective, nodes, 1, size), model.defaults) == algorithm


def test_the_file_reads_back_and_has_crays_names() -> None:
    fits = [fit(name, table(name, algorithms, 2)) for name, algorithms in ALGORITHMS.items()]
    data = format_fits([found for found in fits if found is not None])
    assert parse_thresholds(data) == {found.collective: found.values for found in fits if found is not None}
    text = data.decode()
    assert f"export MPICH_REDUCE_SHORT_MSG={parse_thresholds(data)['reduce'][0]}" in text
