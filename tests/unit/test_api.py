"""The Python interface, on a tuning written by hand; tests/mpi tunes through it."""

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command
from written_summary import read_summary

import colltune
import colltune_study
import commands
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.session.arguments import TuneArguments, offered
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from lint_trees import complete_file

HERE = Environment("mpich", "5.0.2", "0" * 64, "a machine", 1, 2, "single", {})
VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
RING = Choice("ring")
RULES = RuleSet("allreduce", SizeBasis.MESSAGE, (Rule(None, None, 4096, RING), Rule(None, None, None, DEFAULT)))
GATE = {"scenario": ["allreduce", 1, 2, 4096], "choice": "ring", "verdict": "kept", "ratios": [1.5, 1.25], "low": 1.25}


@pytest.fixture
def tuned(tmp_path: Path) -> colltune.Tuned:
    variables = {VARIABLE: "{directory}/mpich/mpich-coll.json"}
    files = {"mpich/mpich-coll.json": complete_file()}
    save_tuning(tmp_path, Tuning(HERE, {"allreduce": RULES}, files, variables, read_summary({"gate": [GATE]})))
    with Journal.create(tmp_path / JOURNAL, HERE) as journal:
        here = Scenario("allreduce", 1, 2, 4096)
        journal.append([Sample(here, RING, Status.OK, (3e-6, 1e-6, 2e-6)), Sample(here, DEFAULT, Status.HUNG)])
        journal.append([Sample(here, DEFAULT, Status.OK, (6e-6, 5e-6, 4e-6))])
    return colltune.load(tmp_path)


def test_a_tuning_answers_what_is_in_force(tuned: colltune.Tuned) -> None:
    assert tuned.choose("allreduce", "4KiB") == RING
    assert tuned.choose("allreduce", "8KiB") == DEFAULT
    assert tuned.choose("allreduce", "1KiB", nodes=4, ppn=8) == RING
    with pytest.raises(InputError, match="bcast was not tuned"):
        tuned.choose("bcast", "4KiB")


def test_frames_hold_every_sample_and_every_decision(tuned: colltune.Tuned) -> None:
    pytest.importorskip("pandas")
    samples, decisions = tuned.samples(), tuned.decisions()
    assert samples["median_s"].tolist()[0] == pytest.approx(2e-6)
    assert samples["status"].tolist() == ["ok", "hung", "ok"]
    assert samples["median_s"].isna().tolist() == [False, True, False]
    assert decisions.loc[0, ["choice", "verdict", "kept", "comparisons"]].tolist() == ["ring", "kept", True, 2]
    assert decisions.loc[0, "low"] == 1.25
    assert decisions.loc[0, "speedup"] == pytest.approx(1.375)


def test_two_tunings_are_compared_by_their_directories(tuned: colltune.Tuned, tmp_path: Path) -> None:
    other = tmp_path / "other"
    save_tuning(other, Tuning(HERE, {"allreduce": RuleSet.always("allreduce", SizeBasis.MESSAGE)}, {}, {}))
    found = tuned.diff(other)
    assert not found.same
    (difference,) = found.decisions
    assert (difference.one, difference.other) == (RING, DEFAULT)
    assert tuned.diff(colltune.load(other)) == found
    assert tuned.diff(tuned).same


NOWHERE = {"mpiexec": "/nowhere/mpiexec"}
# Calls with the name of a directory or file to make, and what their error says.
REFUSED: list[tuple[Callable[[colltune.Tuned, str], object], str]] = [
    (lambda tuned, out: tuned.to("intelmpi", out), "intelmpi is no format"),
    (lambda tuned, _: tuned.verify(**NOWHERE), "/nowhere/mpiexec"),
    (lambda tuned, _: tuned.verify(launches=1), "Give 2 or more"),
    (lambda tuned, _: tuned.check(**NOWHERE), "/nowhere/mpiexec"),
    (lambda tuned, _: tuned.check(**{"nods": 2}), "no argument 'nods'. Did you mean nodes"),
    (lambda tuned, _: tuned.drift(**NOWHERE), "/nowhere/mpiexec"),
    (lambda tuned, _: tuned.drift(budget="soon"), "soon"),
    (lambda tuned, _: tuned.drift(nodes=0), "nodes=0 is too small. Give 1 or more"),
    (lambda _, out: colltune.tune("bcats", out), "Did you mean bcast"),
    (lambda _, out: colltune.tune("bcast", out, budget=30, max_size=4096, **NOWHERE), "/nowhere/mpiexec"),
    (lambda _, out: colltune.tune("bcast", out, **{"bugdet": "1m"}), "no argument 'bugdet'. Did you mean budget"),
    (lambda _, out: colltune.tune("bcast", out, check=True), "none is given. Give one by --profile"),
    (lambda _, out: colltune.tune(out=out), "nothing to tune is given"),
    (lambda _, out: colltune.tune(out=out, profile="/nowhere"), "/nowhere"),
    (lambda _, out: colltune.tune_alltoallv(out, gate="off", min_size=4), "--min-size, --gate cannot be used"),
    (lambda _, out: colltune.tune_alltoallv(out, **{"bugdet": "1m"}), "no argument 'bugdet'"),
    (lambda _, out: colltune.tune_alltoallv(out, budget=30, **NOWHERE), "/nowhere/mpiexec"),
    (lambda _, out: colltune.predict("alreduce", out), "Did you mean allreduce"),
    (lambda _, out: colltune.predict("allreduce", out, **NOWHERE), "/nowhere/mpiexec"),
    (lambda _tuned, _out: colltune.doctor(**NOWHERE), "/nowhere/mpiexec"),
    (lambda _tuned, _out: colltune.doctor(thread_level="many"), "no thread level"),
    (lambda _, out: colltune_study.tune("dragonfly:4x2", "bcast", out, profile="a.json"), "--profile is for a real"),
    (lambda _, out: colltune_study.collect("bcats", f"{out}.csv"), "Did you mean bcast"),
    (lambda _, out: colltune_study.collect("bcast", f"{out}.txt"), "out.txt"),
    (lambda _, out: colltune_study.collect("bcast", f"{out}.csv", simulate="dragonfly:4x2", nodes=2),
     "--nodes cannot be used with --simulate"),
]  # fmt: skip


def test_arguments_are_checked_before_anything_starts(tuned: colltune.Tuned, tmp_path: Path) -> None:
    for call, says in REFUSED:
        with pytest.raises(InputError, match=re.escape(says)):
            call(tuned, str(tmp_path / "out"))


def test_the_command_and_the_function_take_the_same() -> None:
    helped = commands.colltune("tune", "--help", code=0).stdout
    shown = {name.replace("-", "_") for name in re.findall(r"^  --([a-z-]+)", helped, re.MULTILINE)}
    taken = set(inspect.getfullargspec(colltune.tune).kwonlyargs)
    # Matrices are for MPI_Alltoallv, which has a function of its own; what a function returns needs no JSON.
    assert shown - {"help", "out", "counts", "json"} == taken - {"listener"} == set(offered(TuneArguments))


def test_a_tuning_is_shown_in_a_line_and_in_a_notebook_with_its_headline_and_curves(tuned: colltune.Tuned) -> None:
    assert len(repr(tuned)) < 300
    assert tuned.environment.mpi in repr(tuned)
    shown = tuned._repr_html_()
    assert "<b>1 node x 2 ranks: allreduce 1.38x (at least 1.25)" in shown
    assert f"colltune env {tuned.directory})" in shown
    assert "<Tuned" not in shown
    assert shown.count("<svg") == 1
    assert "allreduce, 1 x 2" in shown


def test_the_curves_are_drawn_of_what_was_measured_and_saved(tuned: colltune.Tuned, tmp_path: Path) -> None:
    picture = tuned.plot("allreduce")
    assert picture.save(tmp_path / "curves.svg").read_text() == picture.svg
    assert picture.save(tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"ends in \.svg or \.png"):
        picture.save(tmp_path / "curves.gif")
    with pytest.raises(InputError, match="There is allreduce on 1 x 2"):
        tuned.plot("bcast")
    with pytest.raises(InputError, match="nothing of that was measured"):
        tuned.plot(nodes=7)


def test_evaluations_are_functions_too() -> None:
    pytest.importorskip("pandas")
    recorded = Path(__file__).parents[1] / "recorded"
    done = colltune_study.evaluate(recorded / "pico_lumi_allreduce.csv.gz", strategies=["random"], seeds=1, budget="2m")
    assert {run.strategy for run in done.runs} == {"random"}
    with pytest.raises(InputError, match="nobody"):
        colltune_study.evaluate(recorded / "pico_lumi_allreduce.csv.gz", strategies=["nobody"])


def test_a_file_is_linted_as_the_command_does(tmp_path: Path) -> None:
    path = tmp_path / "rules.conf"
    path.write_text("1\n2\n1\n4\n2\n0 3 0 0\n0 4 0 0\n")
    found = colltune.lint(path, mpi_version="5.0.11")
    assert (found.library, found.version) == ("openmpi", "5.0.11")
    assert found.findings
    done = commands.colltune("lint", str(path), "--mpi-version", "5.0.11", code=int(bool(found.errors)))
    assert done.stdout == f"{found}\n"
    with pytest.raises(InputError, match="there is no file to lint"):
        colltune.lint([])


def test_a_run_says_what_was_asked_of_it(tuned: colltune.Tuned) -> None:
    check = f"import os, sys; sys.exit(7 if os.environ['{VARIABLE}'].endswith('mpich-coll.json') else 1)"
    command = [sys.executable, "-c", check]
    assert tuned.run(command) == 7
    for where in (tuned, tuned.directory, str(tuned.directory)):
        done = colltune.run(where, command)
        assert (done.exit_code, done.proof, done.profile, done.gains) == (7, None, None, ())
    with pytest.raises(InputError, match="no rules for the live selector"):
        colltune.run(tuned, command, measure=True)
    with pytest.raises(InputError, match="no whole percentage"):
        colltune.run(tuned, command, measure=True, share=70)
    with pytest.raises(InputError, match="no command to run"):
        colltune.run(tuned, [])


def test_a_room_of_the_package_never_hides_a_function_of_its_name() -> None:
    rooms = {path.name for path in Path(colltune.__file__).parent.iterdir() if path.is_dir()}
    for name in rooms & set(colltune.__all__):
        importlib.import_module(f"colltune.{name}")
        assert not isinstance(getattr(colltune, name), ModuleType), name


def test_importing_colltune_imports_nothing_heavy() -> None:
    check = "import colltune, sys; sys.exit(any(m in sys.modules for m in ('numpy', 'sklearn', 'rich', 'typer')))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_every_command_is_a_function_or_a_method_of_a_tuning() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    # The reference says that a site has none; the demo is for people who look.
    names = {*commands} - {"site", "study", "demo"}
    other = {"env": "variables", "export": "to"}
    for name in names:
        assert name in colltune.__all__ or hasattr(colltune.Tuned, other.get(name, name)), name
    for name in commands["study"].commands:
        assert hasattr(colltune_study, name), name
