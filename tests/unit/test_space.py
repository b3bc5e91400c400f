"""Which shapes of a job are tuned, and collectives as people name them: one line before anything heavy is loaded."""

import itertools

import pytest

from colltune.catalog.read import check_collectives, load
from colltune.core.errors import InputError
from colltune.core.sample import (
    COLLECTIVES,
    DEFAULT,
    Choice,
    Sample,
    Scenario,
    Status,
    only_alltoallv,
    parse_collectives,
)
from colltune.core.space import (
    Point,
    Space,
    counts,
    is_usual,
    message_sizes,
    shapes,
    tuned_sizes,
    weights_by_ranks,
    weights_in_job,
)
from colltune.learn.decision import DecisionLearner


@pytest.mark.parametrize("limit", [2, 5, 7, 12, 100, 127, 2048])
def test_no_two_neighbouring_counts_are_further_apart_than_half_of_the_lower(limit: int) -> None:
    assert [counts(some) for some in (1, 4, 12)] == [[1], [1, 2, 3, 4], [1, 2, 3, 4, 6, 8, 12]]
    assert counts(127) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 127]
    found = counts(limit)
    assert found[0] == 1
    assert found[-1] == limit
    assert all(b <= max(a + 1, a * 3 / 2) for a, b in itertools.pairwise(found))
    assert len(found) <= 2 * limit.bit_length()


def test_a_job_of_127_nodes_of_12_ranks_has_97_shapes() -> None:
    found = shapes(127, 12)
    assert len(found) == len(set(found)) == 97
    assert {(127, 12), (1, 12), (127, 1), (96, 6), (1, 2)} <= set(found)
    assert (1, 1) not in found


def test_what_few_applications_form_comes_after_what_most_do() -> None:
    assert is_usual(Scenario("bcast", 127, 12, 8), 127, 12)
    assert is_usual(Scenario("bcast", 64, 12, 8), 127, 12)
    assert not is_usual(Scenario("bcast", 96, 12, 8), 127, 12)
    grid = tuple(Scenario("bcast", n, p, 64) for n, p in shapes(6, 12))
    space = Space("bcast", grid, lambda _scenario: (DEFAULT, Choice("ring")), weights_by_ranks(6, 12))
    assert space.weight(grid[-1]) == 1.0

    def weight(nodes: int, ppn: int) -> float:
        return space.weight(Scenario("bcast", nodes, ppn, 64))

    assert weight(6, 12) > weight(4, 12) > weight(3, 12)
    assert weight(2, 12) > weight(3, 12)


@pytest.mark.parametrize(("nodes", "ppn"), [(8, 2), (127, 12), (8, 1), (1, 16), (2, 1)])
def test_half_of_a_job_without_a_profile_is_on_all_ranks(nodes: int, ppn: int) -> None:
    weight = weights_in_job(nodes, ppn)
    each = {shape: weight(Scenario("bcast", *shape, 8)) for shape in shapes(nodes, ppn)}
    assert sum(each.values()) == pytest.approx(1.0)
    assert each[nodes, ppn] == max(each.values())
    assert each[nodes, ppn] >= 0.5
    half = {127: 64, 8: 4}.get(nodes, nodes)
    usual = {(1, ppn), (nodes, 1), (half, ppn)} & each.keys() - {(nodes, ppn)}
    assert sum(each[shape] for shape in usual) >= 0.4 * bool(usual)
    assert weight(Scenario("bcast", nodes, ppn, 8)) == weight(Scenario("bcast", nodes, ppn, 1 << 20))


@pytest.mark.parametrize("heavy", [64, 4096])
def test_a_learner_gains_most_where_the_weight_is(heavy: int) -> None:
    """Of two scenarios of whose ring nothing is known."""
    grid = tuple(Scenario("bcast", 4, 1, size) for size in (64, 4096))
    choices, weights = (DEFAULT, Choice("ring")), {one: 100.0 if one.size_bytes == heavy else 1.0 for one in grid}
    learner = DecisionLearner(Space("bcast", grid, lambda _one: choices, weights.__getitem__), 1)
    learner.tell([Sample(one, DEFAULT, Status.OK, (1e-5,) * 3) for one in grid])
    gains = learner.expected_gain([Point(one, choices[1:]) for one in grid])
    assert grid[int(gains.argmax())].size_bytes == heavy


@pytest.mark.parametrize("collective", ["bcast", "allreduce"])
def test_one_size_in_five_lies_between_two_powers_of_two(collective: str) -> None:
    sizes = tuned_sizes(collective, 1, 1 << 20)
    between = [size for size in sizes if size & (size - 1)]
    assert 0.15 <= len(between) / len(sizes) <= 0.25
    assert all(size % (4 if collective == "allreduce" else 1) == 0 for size in sizes)
    assert set(sizes) - set(between) == set(message_sizes(collective, 1, 1 << 20))
    assert tuned_sizes("barrier", 1, 1 << 20) == [0]
    assert tuned_sizes(collective, 64, 64) == [64]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["bcast"], ["bcast"]),
        (["MPI_Bcast", "bcast"], ["bcast"]),
        (["MPI_Ibcast", "iallreduce"], ["ibcast", "iallreduce"]),
        (["PMPI_Reduce_scatter_block"], ["reduce_scatter_block"]),
        (["bcast,allreduce"], ["bcast", "allreduce"]),
        (["bcast,", " MPI_Allreduce ,reduce"], ["bcast", "allreduce", "reduce"]),
        (["all"], list(COLLECTIVES)),
        (["bcast", "ALL"], ["bcast", *(name for name in COLLECTIVES if name != "bcast")]),
        ([], []),
    ],
)
def test_a_collective_may_be_named_as_people_do(texts: list[str], names: list[str]) -> None:
    assert parse_collectives(texts) == names


@pytest.mark.parametrize(
    ("text", "meant"),
    [("bcats", "bcast"), ("MPI_Ibcats", "ibcast"), ("allreduces", "allreduce"), ("all_reduce", "allr"), ("zzz", "")],
)
def test_a_slip_is_told_what_it_resembles_and_a_name_like_no_other_is_not_guessed(text: str, meant: str) -> None:
    said = f"Did you mean {meant}" if meant else "There are allgather, "
    with pytest.raises(InputError, match=f"there is no collective '{text}'. {said}") as error:
        parse_collectives([text])
    assert ("Did you mean" in str(error.value)) == bool(meant)


def test_alltoallv_is_tuned_by_itself() -> None:
    assert only_alltoallv(["MPI_Alltoallv"])
    assert not only_alltoallv([])
    with pytest.raises(InputError, match="colltune tune alltoallv"):
        parse_collectives(["bcast", "alltoallv"])


def test_all_are_those_that_the_catalogue_has() -> None:
    wanted, nothing = check_collectives(["all"], load("mpich", "5.0.2"))
    assert "bcast" in wanted
    assert set(nothing) == {"exscan"}
    assert set(wanted) | set(nothing) == set(COLLECTIVES)


def test_a_nonblocking_one_that_nothing_steers_is_refused_with_the_reason() -> None:
    assert check_collectives(["ibcast"], load("openmpi", "5.0.11")) == (["ibcast"], {})
    with pytest.raises(InputError, match="cannot choose the algorithm of ialltoall in openmpi"):
        check_collectives(["ialltoall"], load("openmpi", "5.0.11"))
