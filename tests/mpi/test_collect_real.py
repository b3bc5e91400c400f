"""`colltune study collect` on the real MPICH: a whole small grid in one launch, as Parquet, and resumed for nothing."""

from pathlib import Path

import jobs
import pytest

import colltune
import colltune_study
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune_study.tables.collect import journal_of
from commands import Done


def collect(mpi: Installation, out: Path, *more: str, code: int = 0) -> Done:
    options = ["--mpiexec", mpi.mpiexec, "--ppn", "2", "--max-size", "64", "--out", out, *more]
    return jobs.colltune("study", "collect", "bcast", "allreduce", *options, code=code)


def test_the_table_has_every_legal_choice_of_every_scenario(mpi: Installation, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    out = tmp_path / "data.parquet"
    done = collect(mpi, out)
    table = pandas.read_parquet(out)
    assert f"{len(table)} rows in" in done.stdout
    journal = read_journal(journal_of(out))
    assert len(table) == len(journal.samples), "on shared memory everything legal has a time"
    assert sum(note.kind == "launch" for note in journal.notes) == 1
    assert (table.time_us > 0).all()
    assert (table.cost_s > 0).all()
    for (collective, _size), rows in table.groupby(["collective", "msg_bytes"]):
        assert rows.is_default.sum() == 1
        assert len(set(rows.algorithm)) == len(rows) >= 5, collective
    assert {3, 5, 6, 7} & set(table.msg_bytes), "sizes that are no power of two"
    assert set(table.nprocs) == {2}

    before = out.read_bytes()
    assert "--resume" in collect(mpi, out, code=2).stderr
    collect(mpi, out, "--resume")
    assert out.read_bytes() == before
    collect(mpi, out, "--resume", "--between", "2")
    assert len(pandas.read_parquet(out)) > len(table)


def test_the_functions_do_what_the_commands_do(mpi: Installation, tmp_path: Path) -> None:
    given = {"mpiexec": str(mpi.mpiexec), "ppn": 2}
    done = colltune_study.collect("bcast", tmp_path / "data.csv", max_size=2, between=0, **given)
    assert (done.missing, done.failed, done.interrupted) == (0, 0, False)
    assert done.rows == len((tmp_path / "data.csv").read_text().splitlines()) - 1
    assert {sample.scenario.size_bytes for sample in read_journal(journal_of(tmp_path / "data.csv")).samples} == {1, 2}
    predicted = colltune.predict("allreduce", tmp_path / "tuned", max_size="4KiB", **given)
    assert predicted.environment.mpi_build == mpi.build
    assert list(predicted.rule_sets) == ["allreduce"]
