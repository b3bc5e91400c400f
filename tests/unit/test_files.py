from pathlib import Path

import pytest

from colltune.machine.files import write_atomically


def test_a_file_takes_the_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_that_has_the_file_open_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    write_atomically(path, b"old, and long enough to be overwritten")
    with path.open("rb") as reader:
        write_atomically(path, b"new")
        assert reader.read() == b"old, and long enough to be overwritten"


def test_what_cannot_take_its_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "taken", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
