"""Which shapes of a job are tuned: enough of them, and not too many."""

import itertools

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.scenario import Scenario
from colltune.core.space import Point, Space, counts, is_usual, shapes
from colltune.learn.decision import DecisionLearner
from colltune.schedule.durations import Durations
from colltune.search.order import Agenda


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1, [1]),
        (4, [1, 2, 3, 4]),
        (12, [1, 2, 3, 4, 6, 8, 12]),
        (127, [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 127]),
    ],
)
def test_counts_are_powers_of_two_what_is_half_way_between_and_the_jobs_own(limit: int, expected: list[int]) -> None:
    assert counts(limit) == expected


@pytest.mark.parametrize("limit", [2, 5, 7, 12, 100, 127, 2048])
def test_no_two_neighbouring_counts_are_further_apart_than_half_of_the_lower(limit: int) -> None:
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
    space = Space("bcast", grid, lambda _scenario: (DEFAULT, Choice("ring")))
    agenda = Agenda(space, DecisionLearner(space, 1), Durations(1.0))

    def worth(nodes: int, ppn: int) -> float:
        return float(agenda.worth([Point(Scenario("bcast", nodes, ppn, 64), (DEFAULT,))])[0])

    assert worth(6, 12) > worth(4, 12) > worth(3, 12)
    assert worth(2, 12) > worth(3, 12)
