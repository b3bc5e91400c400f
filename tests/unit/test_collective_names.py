"""Collectives may be named as MPI names them, with commas, or all at once; a slip is said before MPI starts."""

from pathlib import Path

import pytest
from test_cli import colltune, fails_with_one_line

from colltune.bench.workbench import check_collectives
from colltune.catalog import load
from colltune.core.collective_names import only_alltoallv, parse_collectives
from colltune.core.errors import InputError
from colltune.core.scenario import COLLECTIVES


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
