"""Recorded matrices of counts: read, placed in a cell of the table, and decisive there."""

from pathlib import Path

import numpy as np
import pytest

from colltune.alltoallv.matrices import load_matrix, load_recorded, write_matrices
from colltune.alltoallv.samples import Blocks
from colltune.alltoallv.setting import Shape
from colltune.core.errors import InputError

SIZES = [4, 8, 16, 32, 64]


def test_text_and_npy_say_the_same_and_come_back_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# bytes\n0 5 9\n\n1, 2, 3  # the second rank\n4 0 0\n")
    matrix = load_matrix(tmp_path / "a.txt")
    assert matrix.bytes.tolist() == [[0, 5, 9], [1, 2, 3], [4, 0, 0]]
    np.save(tmp_path / "a.npy", matrix.bytes.astype(np.uint16))
    assert (load_matrix(tmp_path / "a.npy").bytes == matrix.bytes).all()
    (again,) = write_matrices(load_recorded([tmp_path / "a.npy"], Shape(1, 3), SIZES), tmp_path)
    assert (load_matrix(again).bytes == matrix.bytes).all()


def test_a_matrix_is_in_the_cell_that_its_calls_have(tmp_path: Path) -> None:
    """The busiest rank sends 14 bytes to two others; one rank sends nothing to one, and gets from both."""
    (tmp_path / "a.txt").write_text("999 5 9\n1 999 3\n4 0 999\n")
    (one,) = load_recorded([tmp_path / "a.txt"], Shape(1, 3), SIZES)
    assert (one.matrix.average_bytes, one.plain.size_bytes, one.fill) == (7, 8, 3)
    assert (one.plain.collective, Blocks.of(one.scenario)) == ("alltoallv", Blocks("counts0"))
    (tmp_path / "b.txt").write_text("0 9 0\n0 0 9\n9 0 0\n")
    (other,) = load_recorded([tmp_path / "b.txt"], Shape(1, 3), SIZES)
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
        load_recorded([tmp_path / "a.txt"], Shape(1, 3), SIZES)
    assert "a.txt" in str(refused.value)
    assert refused.value.next_step


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"no array")
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    for name, message in (("a.npy", "no matrix of counts"), ("b.npy", "float64"), ("c.txt", "cannot read")):
        with pytest.raises(InputError, match=message):
            load_matrix(tmp_path / name)
