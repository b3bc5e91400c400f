"""`colltune lint` as a command, for an MPICH that need not be here."""

from pathlib import Path

import pytest
from test_lint import DOUBLING, RING, file_with
from typer.testing import CliRunner

from colltune.catalog import load
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.sample import Environment
from colltune.emit.mpich.tree import format_tree
from colltune.session.lint import lint_selection
from colltune.store.tuning import Tuning, save_tuning
from commands import colltune
from lint_trees import complete_trees


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lint", *map(str, arguments), "--mpi-version", "5.0.2"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_a_clean_file_ends_with_0(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(file_with("allgather", RING))
    (tmp_path / "b.json").write_bytes(format_tree(complete_trees(load("mpich", "5.0.2")).ch4))
    code, output = run(tmp_path / "a.json", tmp_path / "b.json")
    assert (code, output) == (0, "2 files for MPICH 5.0.2: 0 errors, 0 warnings\n")


def test_a_version_that_nobody_described_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(file_with("allgather", RING))
    done = colltune("lint", str(tmp_path / "a.json"), "--mpi-version", "99.0")
    assert "mpich 99.0 is not in the catalogue; it is taken for" in done.stdout + done.stderr


def test_an_error_is_shown_with_its_place_and_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(file_with("allgather", DOUBLING))
    line = path.read_text().split("\n").index('   "algorithm=MPIR_Allgather_intra_recursive_doubling": {}') + 1
    code, output = run(path)
    assert code == 1
    assert output.startswith(
        f"{path}:{line}: error: MPIR_Allgather_intra_recursive_doubling can be reached on 3 ranks\n"
    )
    assert output.endswith("1 file for MPICH 5.0.2: 1 error, 0 warnings\n")


def test_a_warning_alone_ends_with_0(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(file_with("allgather", {"comm_size<=8": RING, "comm_size<=4": RING, "comm_size=any": RING}))
    code, output = run(path)
    assert code == 0
    assert "0 errors, 1 warning" in output


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        run(tmp_path / "a.json")


def test_a_version_that_no_catalogue_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"{}")
    result = CliRunner().invoke(app, ["lint", str(tmp_path / "a.json"), "--mpi-version", "3.2"])
    assert isinstance(result.exception, InputError)


def test_a_tuning_is_linted_for_its_own_mpi_where_that_is_not_here(tmp_path: Path) -> None:
    environment = Environment("openmpi", "4.1.4", "abc", "a machine", 1, 4, "single")
    rules = {"openmpi/rules.conf": b"1\n7\n1\n2\n1\n0 6 0 0\n"}
    save_tuning(tmp_path / "tuned", Tuning(environment, {}, rules, {}))
    nowhere = {"PATH": str(tmp_path)}
    assert lint_selection([tmp_path / "tuned"], nowhere).version == "4.1.4"
    with pytest.raises(InputError, match="mpiexec"):
        lint_selection([tmp_path / "tuned" / "openmpi" / "rules.conf"], nowhere)


def test_a_tuning_directory_is_linted_file_by_file(tmp_path: Path) -> None:
    environment = Environment("mpich", "5.0.2", "abc", "a machine", 1, 4, "single")
    files = {"mpich/a.json": file_with("allgather", DOUBLING), "mpich/b.json": file_with("allgather", RING)}
    save_tuning(tmp_path / "tuned", Tuning(environment, {}, {**files, "live/rules": b"x"}, {}))
    code, output = run(tmp_path / "tuned")
    assert code == 1
    assert f"{tmp_path}/tuned/mpich/a.json:" in output
    assert "2 files for MPICH 5.0.2" in output
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a directory and holds no tuning"):
        run(tmp_path / "empty")
