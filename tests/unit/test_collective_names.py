"""Slips of the fingers: collectives as people name them, and one line before anything heavy is loaded."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from test_cli import colltune, fails_with_one_line

from colltune.bench.workbench import check_collectives
from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES, only_alltoallv, parse_collectives
from colltune.store.tuning import MANIFEST, load_tuning
from terminals import MEASURED


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
    [("bcats", "bcast"), ("MPI_Ibcats", "ibcast"), ("allreduces", "allreduce"), ("all_reduce", "allr")],
)
def test_a_slip_is_told_what_it_resembles(text: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"there is no collective '{text}'. Did you mean {meant}"):
        parse_collectives([text])


def test_a_name_like_no_other_is_not_guessed() -> None:
    with pytest.raises(InputError) as error:
        parse_collectives(["zzz"])
    assert "Did you mean" not in str(error.value)
    assert "There are allgather, " in str(error.value)


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune", "bcats"],
        ["tune", "bcast,bcats"],
        ["study", "collect", "bcats"],
        ["predict", "bcats"],
    ],
)
def test_a_slip_is_said_before_mpi_starts(arguments: list[str], tmp_path: Path) -> None:
    done = colltune(*arguments, "--mpiexec", "/nowhere/mpiexec", "--out", str(tmp_path / "out.csv"))
    fails_with_one_line(done, "there is no collective 'bcats'", "Did you mean bcast?")


def test_a_slip_is_said_before_simgrid_is_looked_for(tmp_path: Path) -> None:
    done = colltune("study", "tune", "dragonfly:2x2", "bcats", "--out", str(tmp_path / "out"))
    fails_with_one_line(done, "there is no collective 'bcats'", "Did you mean bcast?")


def test_a_prediction_of_what_no_cluster_measured_is_refused(tmp_path: Path) -> None:
    done = colltune("predict", "bcast", "ibcast", "--mpiexec", "/nowhere/mpiexec", "--out", str(tmp_path / "out"))
    fails_with_one_line(done, "no other cluster says anything of ibcast", "colltune tune ibcast")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["tune", "--profile", "PROGRAM"],
            "is a program or other binary file, and no profile. Make one: colltune profile",
        ),
        (["profile", "show", "PROGRAM"], "is a program or other binary file"),
        (["tune", "bcast", "--min-size", "1MiB", "--max-size", "4"], "--min-size 1 MiB is above --max-size 4 B"),
        (["plan", "bcast", "--min-size", "1MiB", "--max-size", "4"], "--min-size 1 MiB is above --max-size 4 B"),
        (["report", "absent"], "absent does not exist (tuning.json). Make one: colltune tune"),
        (["verify", "."], ". holds no tuning"),
        (["env", "PROGRAM"], "is a program or other binary file, and no tuning. Give the directory of one"),
        (["site", "status", "absent"], "absent is no store of a site: No such file"),
        (["study", "evaluate", "absent"], "there is no file absent. Give a CSV"),
    ],
)
def test_bad_input_gets_one_line(words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = str(Path(sys.executable).resolve())
    done = colltune(*(program if word == "PROGRAM" else word for word in words))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("field", "value"), [("total_s", 1e300), ("samples", 10**30)])
def test_numbers_that_nobody_measured_are_refused(field: str, value: float, tmp_path: Path) -> None:
    place = tmp_path / "tuned"
    shutil.copytree(MEASURED, place)
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["summary"][field] = value
    (place / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="out of range"):
        load_tuning(place)
