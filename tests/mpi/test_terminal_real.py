"""The commands that run an MPI, on a terminal of 80 columns and in a pipe: no word and no number is cut.

They run in the order of the table, in one directory: what one of them writes is what the next looks at.
"""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from colltune.cli.app import app
from colltune.mpi.installation import Installation
from compiled import program
from terminals import OF_FILES, bare, in_a_pipe, lines_too_long, on_terminal

pytestmark = pytest.mark.timeout(900)

NATIVE = Path(__file__).parents[1] / "native"
_SMALL = ["--max-size", "4KiB", "--mpiexec", "MPIEXEC"]
_TINY = ["--max-size", "64", "--mpiexec", "MPIEXEC"]
_JOB = ["--", "MPIEXEC", "-n", "2", "./one_sum"]
COMMANDS = {
    "tune": ["tune", "allreduce", "reduce_scatter_block", "--budget", "40s", "--out", "tuned", *_SMALL],
    "tune without a proof": ["tune", "allreduce", "--gate", "off", "--budget", "10s", "--out", "unproven", *_SMALL],
    "report": ["report", "tuned", "--text"],
    "verify --results": ["verify", "--results", "tuned", "--short"],
    "verify": ["verify", "tuned", "--launches", "2"],
    "verify --quick": ["verify", "--quick", "tuned", "--budget", "20s"],
    "run --prove": ["run", "--prove", "unproven", *_JOB],
    "run --measure": ["run", "--measure", "unproven", *_JOB],
    "run --profile": ["run", "--profile", "tuned", *_JOB],
    "profile": ["profile", "--out", "app.json", *_JOB],
    "profile show": ["profile", "show", "app.json"],
    "tune --profile": ["tune", "--profile", "app.json", "--budget", "30s", "--out", "app", "--mpiexec", "MPIEXEC"],
    "compare": ["compare", "nothing", "MPIR_CVAR_BCAST_COMPOSITION=0", "barrier", "--budget", "20s", *_TINY],
    "guidelines": ["guidelines", "--budget", "20s", *_TINY],
    "plan": ["plan", "allreduce", "--nodes", "16384", "--ppn", "128", *_SMALL],
    "collect": ["study", "collect", "allreduce", "--budget", "10s", "--out", "data.csv", "--between", "0", *_TINY],
    "predict": ["predict", "allreduce", "--out", "predicted", *_SMALL],
    "train": ["study", "train", "data.csv", "--hardware", "hardware.csv", "--out", "model.npz"],
    "doctor --record": ["doctor", "--record", "here.tar.gz"],
    "doctor": ["doctor", "--mpiexec", "MPIEXEC"],
    "tune alltoallv": ["tune", "alltoallv", "--budget", "20s", "--out", "table", "--mpiexec", "MPIEXEC"],
}
# On a busy machine something may be slower, unsure, or take too long; `run --prove` says 3 where no call met a rule.
_CODES = (0, 1, 2, 3, 4)


@pytest.fixture(scope="module")
def place(mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("place")
    (directory / "one_sum").symlink_to(program(mpi.mpicc, "one_sum.c"))
    return directory


def test_every_command_is_looked_at() -> None:
    names = set(get_command(app).commands) - {"site", "demo"}  # type: ignore[attr-defined]
    assert names == {words[0] for words in (*COMMANDS.values(), *OF_FILES.values())}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_80_columns_cuts_no_word_and_no_number(mpi: Installation, place: Path, name: str) -> None:
    arguments = [str(mpi.mpiexec) if word == "MPIEXEC" else word for word in COMMANDS[name]]
    text = on_terminal(arguments, place=place, codes=_CODES, variables={"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"})
    print(bare(text))
    assert text.strip()
    assert lines_too_long(text) == []
    assert "…" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_tuning_tells_its_phases_without_moving_the_cursor_in_a_pipe(
    mpi: Installation, tmp_path: Path, variables: dict[str, str]
) -> None:
    arguments = ["tune", "allreduce", "--budget", "1m", "--out", "tuned", *_SMALL]
    arguments = [str(mpi.mpiexec) if word == "MPIEXEC" else word for word in arguments]
    if "TERM" in variables:  # as a screen reader has it
        written = on_terminal(arguments, place=tmp_path, variables=variables)
    else:
        written = in_a_pipe(arguments, place=tmp_path, variables=variables).decode()
    assert "\x1b" not in written
    assert "\r" not in written
    assert re.search(r"^measuring \.\.\.", written, re.MULTILINE)
    assert re.search(r"of the budget left", written)
    assert re.search(r"^(this job|next) ", written, re.MULTILINE)
