"""Which patterns share a cell of the look-up table, and which sizes a setting."""

from __future__ import annotations

import pytest

from colltune.alltoallv.cells import fill_class, patterns, runs, smooth
from colltune.alltoallv.table import FILLS


@pytest.mark.parametrize("ranks", [3, 4, 8, 16, 33, 1024])
def test_every_number_of_peers_is_in_one_class_and_its_ends_are_tried(ranks: int) -> None:
    tried: set[int] = set()
    for fill in range(len(FILLS)):
        for _, peers in patterns(fill, ranks):
            assert fill_class((peers or ranks - 1) / (ranks - 1)) == fill
            tried.add(peers)
    classes = {fill_class(peers / (ranks - 1)) for peers in range(1, ranks)}
    assert {0} <= tried
    assert len(classes) == sum(bool(patterns(fill, ranks)) for fill in range(len(FILLS)))


def test_the_usual_pattern_of_a_class_comes_first_and_those_that_gain_least_follow() -> None:
    assert patterns(4, 8) == [("uniform", 0), ("uniform", 6), ("skewed", 6), ("power", 6)]
    assert patterns(0, 8) == []
    assert patterns(4, 3) == [("uniform", 0), ("skewed", 0), ("power", 0)]


def test_neighbours_share_a_setting_unless_another_is_clearly_better() -> None:
    times = {
        4: {"a": 1.0, "b": 1.01},
        8: {"a": 1.02, "b": 1.0},
        16: {"a": 1.0, "b": 1.0},
        32: {"a": 5.0, "b": 1.0},
        64: {"b": 1.0},
    }
    assert smooth(times) == {4: "b", 8: "b", 16: "b", 32: "b", 64: "b"}
    times[4]["b"] = times[8]["b"] = 2.0
    assert smooth(times)[4] == smooth(times)[8] == "a"
    assert smooth(times)[32] == "b"
    assert smooth({}) == {}


def test_a_run_has_no_gap_and_one_setting() -> None:
    assert runs({4: "a", 8: "a", 32: "a", 64: "b", 128: "b"}) == [[4, 8], [32], [64, 128]]
