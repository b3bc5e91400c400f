"""Which patterns share a cell of the look-up table, and which sizes a setting."""

import pytest

from colltune.alltoallv.cells import alike, exists, fill_class, peers_among, runs, usual
from colltune.alltoallv.lookup_table import FILLS


@pytest.mark.parametrize("ranks", [3, 4, 8, 16, 33, 1024])
def test_every_number_of_peers_is_in_one_class_and_its_ends_are_tried(ranks: int) -> None:
    for peers in range(1, ranks):
        fill = fill_class(peers / (ranks - 1))
        fewest, most = (peers_among(f"{name}{fill}", ranks) for name in ("few", "most"))
        assert fewest is not None
        assert most is not None
        assert (fewest or ranks - 1) <= peers <= (most or ranks - 1)
        assert fill_class((fewest or ranks - 1) / (ranks - 1)) == fill_class((most or ranks - 1) / (ranks - 1)) == fill
    classes = {fill_class(peers / (ranks - 1)) for peers in range(1, ranks)}
    assert {fill for fill in range(len(FILLS)) if exists(usual(fill), fill, ranks)} == classes


def test_the_usual_pattern_of_a_class_comes_first_and_those_that_gain_least_follow() -> None:
    def found(fill: int, ranks: int) -> list[tuple[str, int | None]]:
        some = [usual(fill), *alike(fill)]
        return [(name, peers_among(peers, ranks)) for name, peers in some if exists((name, peers), fill, ranks)]

    assert found(4, 8) == [("constant", 0), ("constant", 6), ("skewed", 6), ("power", 6)]
    assert found(0, 8) == []
    assert found(4, 3) == [("constant", 0), ("skewed", 0), ("power", 0)]


@pytest.mark.parametrize("text", ["", "most", "few5", "least3", "-1", "most1.5"])
def test_text_that_means_no_number_of_peers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number of peers"):
        peers_among(text, 8)


def test_a_run_has_no_gap_and_one_setting() -> None:
    assert runs({4: "a", 8: "a", 32: "a", 64: "b", 128: "b"}) == [[4, 8], [32], [64, 128]]
