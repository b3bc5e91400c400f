"""`colltune predict` for the MPICH that is here: what it writes and leaves alone, and that a job runs with it."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from jobs import colltune

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.errors import InputError
from colltune.core.proven import Summary
from colltune.core.sample import DEFAULT
from colltune.mpi.installation import Installation
from colltune.predict.guesses import MOST_PROBABLE, gain_texts
from colltune.predict.model import load_model
from colltune.session import predict as predicting
from colltune.session.predict import PredictResult, existing_tuning, predict, widened
from colltune.store.earlier import tuned_sizes
from colltune.store.tuning import load_tuning, save_tuning
from commands import run_to_end
from compiled import program

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def bench(mpi: Installation) -> Workbench:
    return open_workbench(MachineOptions(str(mpi.mpiexec), ppn=2), os.environ)


def test_every_guess_is_legal_and_the_files_say_it(bench: Workbench):
    """At a risk at which something is guessed."""
    wide = widened(bench, 32, 64)
    result = predict(wide, load_model(), 1 << 20, risk=0.4)
    made = [guess for guess in result.guesses if guess.choice != DEFAULT]
    assert made
    assert len(made) < len(result.guesses)  # it abstains somewhere
    for guess in made:
        assert guess.choice in wide.catalogue.legal(guess.scenario, "single")
        assert guess.sureness > 0.5
    for name, rules in result.tuning.rule_sets.items():
        files = {path.partition("/")[2]: data for path, data in result.tuning.files.items()}
        assert wide.emitter.parse(files, name) == rules
        for guess in result.guesses:
            if guess.scenario.collective == name:
                assert rules.evaluate(guess.scenario) == guess.choice


@pytest.fixture(scope="module")
def whole(bench: Workbench) -> tuple[PredictResult, float]:
    """A prediction of 32 x 64 ranks, and the time of the processor that it took."""
    model, before_s = load_model(), time.process_time()
    result = predict(widened(bench, 32, 64), model, 1 << 20)
    return result, time.process_time() - before_s


def test_nothing_is_handed_over_that_may_lose_more_often_than_is_risked(whole: tuple[PredictResult, float]):
    result, _ = whole
    made = [guess for guess in result.guesses if guess.choice != DEFAULT]
    assert all(guess.sureness >= 1.0 - MOST_PROBABLE for guess in made)
    texts = gain_texts(result.guesses)
    for name in ("allgather", "allreduce", "alltoall", "reduce_scatter", "reduce_scatter_block"):
        assert sum(text.startswith(f"{name}: ") for text in texts) == 1


@pytest.mark.parametrize("risk", [0.0, 0.6, float("nan")])
def test_a_risk_that_is_none_is_refused(mpi: Installation, tmp_path: Path, risk: float):
    with pytest.raises(InputError, match="a risk of"):
        predicting.predict_here([], tmp_path / "tuned", MachineOptions(str(mpi.mpiexec)), risk=risk)


def test_the_whole_machine_is_predicted_without_a_pause(whole: tuple[PredictResult, float]):
    """A second is promised, and kept on an idle machine; this is for what would take it to many."""
    assert whole[1] < 15.0


def test_files_that_the_library_would_not_read_are_not_handed_over(
    bench: Workbench, mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As if the catalogue named an algorithm that this build does not have."""

    def of_tomorrow(*arguments):
        made = predict(*arguments)
        files = {
            name: data.replace(b"_intra_recursive_doubling", b"_intra_tomorrow")
            for name, data in made.tuning.files.items()
        }
        return replace(made, tuning=replace(made.tuning, files=files))

    monkeypatch.setattr(predicting, "predict", of_tomorrow)
    out, where = tmp_path / "tuned", MachineOptions(str(mpi.mpiexec), nodes=32, ppn=64)
    with pytest.raises(InputError, match="has no algorithm MPIR_Allreduce_intra_tomorrow"):
        predicting.predict_here([], out, where, risk=0.5)
    assert not out.exists()
    monkeypatch.undo()
    assert predicting.predict_here([], out, where, risk=0.5).result is not None
    assert load_tuning(out).files


def test_a_model_of_nothing_changes_nothing(bench: Workbench):
    nobody = replace(load_model(), collectives={})
    result = predict(widened(bench, 4, 4), nobody, 1 << 16)
    assert not result.guesses
    with pytest.raises(InputError, match="no collective"):
        predict(bench, nobody, 1 << 16, ["gossip"])


def test_a_tuning_of_this_machine_is_kept(bench: Workbench, tmp_path: Path):
    here = bench.environment
    assert existing_tuning(tmp_path, here) is None
    guessed = predict(bench, load_model(), 1 << 12).tuning
    save_tuning(tmp_path, guessed)
    assert existing_tuning(tmp_path, here) is None  # a prediction may be made again
    save_tuning(tmp_path, replace(guessed, summary=Summary()))
    assert existing_tuning(tmp_path, here) is not None
    save_tuning(tmp_path, replace(guessed, environment=replace(here, machine="another"), summary=Summary()))
    with pytest.raises(InputError, match="another"):
        existing_tuning(tmp_path, here)


def test_the_command_and_a_job_under_its_files(bench: Workbench, mpi: Installation, tmp_path: Path):
    out = tmp_path / "tuned"
    options = ["--mpiexec", str(mpi.mpiexec), "--out", str(out), "--ppn", "8", "--nodes", "4"]
    said = colltune("predict", *options, code=0)
    assert "keep it" in said.stdout
    assert "nothing was measured or proven" in said.stdout
    tuning = load_tuning(out)
    assert tuning.summary.prediction is not None
    assert tuned_sizes(out)["allgather"][0] == 1
    job = [str(mpi.mpiexec), "-n", "2", program(mpi.mpicc, "one_sum.c")]
    run = colltune("run", str(out), "--", *job, code=0)
    predicted = "predicted from other clusters' times, not proven"
    assert predicted in run.stderr
    for words in (
        ["report", str(out), "--text"],
        ["explain", str(out), "allgather", "--size", "1KiB"],
        ["lint", str(out)],
        ["env", str(out), "--mpiexec", str(mpi.mpiexec)],
        ["verify", str(out), "--results", "--short", "--ppn", "2"],
    ):
        done = colltune(*words, code=0)
        assert predicted in " ".join((done.stdout + done.stderr).split()), words
    colltune("report", str(out), code=0)
    assert predicted in (out / "report.html").read_text().replace("&#39;", "'")


def test_a_prediction_is_installed_beside_the_mpi_used_by_a_job_and_removed(mpi: Installation, tmp_path: Path):
    """From the record of a compute node: 16 cores and InfiniBand. What was measured there before goes first."""
    beside = mpi.mpiexec.parents[1] / "share" / "colltune" / "predicted"
    record = RECORDED / "machines" / "infiniband-coprocessor.tar.gz"
    install = ("predict", "--install", "--hardware", record, "--mpiexec", mpi.mpiexec)
    try:
        said = colltune(*install, "--risk", "0.4", code=0)
        assert f"colltune run {beside}" in said.stdout
        assert "All of it is predicted" in said.stdout
        tuning = load_tuning(beside)
        assert (tuning.environment.nodes, tuning.environment.ppn) == (32, 16)
        assert tuning.summary.prediction.guesses
        job = [str(mpi.mpiexec), "-n", "2", program(mpi.mpicc, "one_sum.c")]
        colltune("run", str(beside), "--", *job, code=0)
        path = os.pathsep.join([str(mpi.mpiexec.parent), os.environ["PATH"]])
        site = ("site", "init", tmp_path / "site", "--predict", "--hardware", record)
        assert "predicted, not proven" in colltune(*site, code=0, PATH=path).stdout
        status = colltune("site", "status", tmp_path / "site", code=0, PATH=path)
        assert f"jobs of which no release is get {beside}: predicted, not proven" in status.stdout
        # Its jobs run under a copy of their own, and with --measure they try what was predicted.
        under = ("site", "run", "--store", tmp_path / "site", "--out", tmp_path / "copies")
        assert "predicted from other clusters' times" in colltune(*under, "--", *job, code=0, PATH=path).stderr
        measured = colltune(*under, "--measure", "--", *job, code=0, PATH=path)
        assert "run 1: recorded what the program calls" in measured.stderr
        assert not (beside / "history").exists()
        save_tuning(beside, replace(tuning, summary=Summary()))
        assert "it stays as it is" in colltune(*install, code=0).stdout
        assert load_tuning(beside).summary.prediction is None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    assert not beside.exists()


def test_the_phase_of_the_spack_recipe_predicts_into_its_own_prefix(mpi: Installation, tmp_path: Path):
    """Run by the few names that it takes from Spack, which is not at hand, with the colltune that is installed here."""
    recipe = Path(__file__).parents[2] / "packaging" / "spack" / "package.py"
    lines = [line for line in recipe.read_text().splitlines() if not line.startswith("from ")]
    prefix, own = tmp_path / "prefix", Path(sys.executable).parent

    class Executable:
        def __init__(self, program: Path) -> None:
            self.words, self.environment = [str(program)], dict(os.environ)

        def add_default_env(self, name: str, value: str) -> None:
            self.environment[name] = value

        def __call__(self, *words: object) -> None:
            run_to_end([*self.words, *map(str, words)], check=True, env=self.environment)

    phases: list[Callable[[object], None]] = []
    said = dict.fromkeys(("license", "version", "variant", "depends_on"), lambda *_words, **_options: None)
    names = {"PythonPackage": object, "Executable": Executable, "join_path": os.path.join, "env": os.environ, **said}
    exec("\n".join(lines), {**names, "run_after": lambda *_words, **_options: lambda phase: phases.append(phase)})
    where = SimpleNamespace(colltune=own / "colltune", mpiexec=mpi.mpiexec)
    spec = {"python": SimpleNamespace(package=SimpleNamespace(purelib="lib")), "mpi": SimpleNamespace()}
    spec["mpi"].prefix = SimpleNamespace(bin=where)

    class Prefix(str):
        bin = where

    (phase,) = phases
    phase(SimpleNamespace(prefix=Prefix(prefix), spec=spec))
    tuning = load_tuning(prefix / "share" / "colltune" / "predicted")
    assert tuning.summary.prediction is not None
    assert tuning.environment.nodes == 32


def test_nothing_is_predicted_for_a_fabric_that_no_cluster_had(mpi: Installation, tmp_path: Path):
    record = RECORDED / "machines" / "wsl2.tar.gz"
    with pytest.raises(InputError, match="Ethernet"):
        predicting.predict_here([], tmp_path / "tuned", MachineOptions(str(mpi.mpiexec)), hardware=record)
    assert not (tmp_path / "tuned").exists()
