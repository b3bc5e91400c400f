"""Which patterns share a cell of the look-up table, and which cells a profile or a recorded matrix has."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.alltoallv.lookup_table import FILLS, Shape, alike, exists, fill_class, peers_among, runs, usual
from colltune.alltoallv.matrices import alltoallv_share, called_by, load_matrix, load_recorded, write_matrices
from colltune.alltoallv.samples import Blocks
from colltune.core.errors import InputError
from colltune.profile.application_profile import Calls, Communicator, CountsPerRank, Profile


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


SIZES = [1 << power for power in range(2, 12)]
WORLD, ROWS = Communicator(16, 4, 4), Communicator(4, 4, 1)
ONE = Calls(WORLD, "alltoallv", "blocking", "none", 160, 1000, 4.0, 20, 24.0, 30)


def profile(*calls: Calls) -> Profile:
    return Profile(calls, ((WORLD, 1.0), (ROWS, 4.0)), 16, 4, 2.0, 16)


def test_parts_and_sizes_are_those_of_the_calls_with_room_for_the_busiest_rank() -> None:
    rows = replace(ONE, communicator=ROWS, collective="alltoallw", size_least=500, size_most=900)
    found = called_by(profile(ONE, rows), Shape(4, 4), SIZES)
    assert found.parts == (Shape(4, 1), Shape(4, 4))
    assert found.sizes == (16, 32, 64, 512, 1024, 2048)
    assert found.fills == (0, 1, 2, 3, 4)
    assert found.share == alltoallv_share(profile(ONE, rows)) == pytest.approx(8.0 / 32.0)


def test_classes_that_are_denser_than_the_calls_need_no_proof() -> None:
    """A quarter of the blocks for others has bytes; no rank has fewer than the mean of all."""
    sparse = replace(ONE, blocks=CountsPerRank(count=160, empty=122, total_bytes=4000))
    assert called_by(profile(sparse), Shape(4, 4), SIZES).fills == (0, 1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (replace(ONE, collective="alltoall"), "no blocking MPI_Alltoallv"),
        (replace(ONE, form="nonblocking"), "its nonblocking calls are the library's"),
        (replace(ONE, gaps=160), "its calls whose data have gaps are the library's"),
        (replace(ONE, communicator=Communicator(2, 2, 1)), "no blocking"),
        (replace(ONE, communicator=Communicator(32, 8, 4)), "a job of 4 x 4 can form"),
        (replace(ONE, communicator=Communicator(16, 4, 4, remote_size=4)), "no blocking"),
        (replace(ONE, size_least=1 << 20, size_most=1 << 20), "of 4 to 2048 B"),
    ],
)
def test_a_profile_without_calls_that_can_be_tuned_is_refused(call: Calls, message: str) -> None:
    with pytest.raises(InputError, match=message):
        called_by(profile(call), Shape(4, 4), SIZES)


FEW_SIZES = [4, 8, 16, 32, 64]


def test_text_and_npy_say_the_same_and_come_back_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# bytes\n0 5 9\n\n1, 2, 3  # the second rank\n4 0 0\n")
    matrix = load_matrix(tmp_path / "a.txt")
    assert matrix.bytes.tolist() == [[0, 5, 9], [1, 2, 3], [4, 0, 0]]
    np.save(tmp_path / "a.npy", matrix.bytes.astype(np.uint16))
    assert (load_matrix(tmp_path / "a.npy").bytes == matrix.bytes).all()
    (again,) = write_matrices(load_recorded([tmp_path / "a.npy"], Shape(1, 3), FEW_SIZES), tmp_path)
    assert (load_matrix(again).bytes == matrix.bytes).all()


def test_a_matrix_is_in_the_cell_that_its_calls_have(tmp_path: Path) -> None:
    """The busiest rank sends 14 bytes to two others; one rank sends nothing to one, and gets from both."""
    (tmp_path / "a.txt").write_text("999 5 9\n1 999 3\n4 0 999\n")
    (one,) = load_recorded([tmp_path / "a.txt"], Shape(1, 3), FEW_SIZES)
    assert (one.matrix.average_bytes, one.plain.size_bytes, one.fill) == (7, 8, 3)
    assert (one.plain.collective, Blocks.of(one.scenario)) == ("alltoallv", Blocks("counts0"))
    (tmp_path / "b.txt").write_text("0 9 0\n0 0 9\n9 0 0\n")
    (other,) = load_recorded([tmp_path / "b.txt"], Shape(1, 3), FEW_SIZES)
    assert (other.matrix.average_bytes, other.fill) == (4, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty, and no matrix"),
        ("1 2\n3\n", "line 2 has 1 numbers, and the first has 2"),
        ("1 2 3\n4 5 6\n", "2 x 3 values"),
        ("1 2\n3 x\n", "line 2 has more than whole numbers"),
        ("1 2.5\n3 4\n", "line 1 has more than whole numbers"),
        ("1 2\n-3 4\n", "rank 1 sends -3 bytes to rank 0"),
        ("1 2147483647\n2 1\n", "over 2 GiB"),
        ("1 2\n3 4\n", "2 x 2 counts, and this job has 3 ranks"),
        ("7 0 0\n0 7 0\n0 0 7\n", "no bytes for another rank"),
        ("0 0 1\n0 0 0\n0 0 0\n", "blocks of 0 B on average"),
        ("0 999 1\n0 0 0\n0 0 0\n", "blocks of 500 B on average, and 4 to 64 B are tuned"),
    ],
)
def test_what_is_no_matrix_of_this_job_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        load_recorded([tmp_path / "a.txt"], Shape(1, 3), FEW_SIZES)
    assert "a.txt" in str(refused.value)
    assert refused.value.next_step


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"no array")
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    for name, message in (("a.npy", "no matrix of counts"), ("b.npy", "float64"), ("c.txt", "cannot read")):
        with pytest.raises(InputError, match=message):
            load_matrix(tmp_path / name)
