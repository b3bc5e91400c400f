"""Each line of tests/mpi/slice.txt names tests that there are."""

from pathlib import Path

_TESTS = Path(__file__).parents[1] / "mpi"


def test_every_line_names_a_file_and_a_function() -> None:
    gone = []
    for line in (_TESTS / "slice.txt").read_text().splitlines():
        name, _, function = line.partition(" # ")[0].partition("[")[0].partition("::")
        path = _TESTS / name
        if not line.startswith("#") and not (
            path.is_file() and (not function or f"def {function}(" in path.read_text())
        ):
            gone.append(line)
    assert gone == []
