"""The cache of compiled programs: what somebody else may have put there never runs."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.machine.compile import build, cache_directory, is_own
from colltune.mpi.installation import Installation

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
ANOTHER = 12345


def test_a_new_cache_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = cache_directory({"HOME": str(tmp_path)})
    finally:
        os.umask(before)
    assert made == tmp_path / ".cache/colltune"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_cache_that_others_may_write_is_not_used(mode: int, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.raises(InputError, match="may be written by others"):
        cache_directory({"COLLTUNE_CACHE": str(tmp_path / "cache")})


@root_only
@pytest.mark.parametrize("place", ["COLLTUNE_CACHE", "HOME"])
def test_the_cache_of_another_user_is_not_used(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one in the temporary directory that has our name, where there is no home."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    theirs = tmp_path / f"colltune-{os.geteuid()}"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, ANOTHER, ANOTHER)
    (tmp_path / "file").touch()
    environment = {"COLLTUNE_CACHE": str(theirs)} if place == "COLLTUNE_CACHE" else {"HOME": str(tmp_path / "file")}
    with pytest.raises(InputError, match="is another user's"):
        cache_directory(environment)


def test_a_link_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "eve").mkdir()
    (tmp_path / f"colltune-{os.geteuid()}").symlink_to("eve")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="no place for a cache"):
        cache_directory({"HOME": str(tmp_path / "file")})
    assert list((tmp_path / "eve").iterdir()) == []


@pytest.mark.parametrize("way", ["link", "writable", pytest.param("owner", marks=root_only)])
def test_a_program_that_is_not_our_own_is_compiled_again(mpi: Installation, way: str, tmp_path: Path) -> None:
    made = build(mpi.mpicc, "probe", tmp_path)
    program = made.read_bytes()
    if way == "link":
        made.rename(tmp_path / "eve")
        made.symlink_to("eve")
    else:
        made.write_bytes(b"#!/bin/sh\n")
        made.chmod(0o722) if way == "writable" else os.chown(made, ANOTHER, ANOTHER)
    assert build(mpi.mpicc, "probe", tmp_path) == made
    assert is_own(made)
    assert made.read_bytes() == program
