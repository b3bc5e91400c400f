"""`colltune study tune` and `colltune study collect` on simulated clusters, as a user runs them."""

import sys
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.sample import Scenario
from colltune.store.tuning import load_deployable, load_tuning
from colltune_study.recorded.dataset import load_grids, read_table
from colltune_study.simulated.simulated_cluster import find_simgrid
from commands import Done, colltune, ended_with, run_to_end

TUNE = ("study", "tune")


def run(environ: dict[str, str], *arguments: str, code: int = 0) -> Done:
    return ended_with(code, run_to_end([sys.executable, "-m", "colltune", *arguments], env=environ))


@pytest.fixture(scope="module", name="tuned")
def _tuned(simulated_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "out"
    sizes = ("--min-size", "1KiB", "--max-size", "16KiB")
    done = run(simulated_environ, *TUNE, "dragonfly:4x2", "bcast", *sizes, "--budget", "1m", "--out", str(out))
    assert "are read by no MPI" in " ".join(done.stdout.split())
    return out


def test_a_tuned_simulated_cluster_beats_its_default(tuned: Path) -> None:
    tuning = load_tuning(tuned)
    assert tuning.environment.machine == "dragonfly:4x2"
    summary = tuning.summary
    assert summary.speedup.estimate > 1.03
    assert 0.0 < summary.share.inside_collectives_s < summary.total_s
    rules = tuning.rule_sets["bcast"]
    # knomial with k = 2 is the default of small messages, and never what departs from it.
    chosen = {str(rules.evaluate(Scenario("bcast", 4, 2, 1 << power))) for power in range(10, 15)}
    assert chosen != {"default"}
    assert tuning.files == {}


def test_its_rules_can_be_explained_and_not_run(tuned: Path, simulated_environ: dict[str, str]) -> None:
    said = colltune("explain", str(tuned), "bcast", "--size", "4KiB", environ=simulated_environ, code=0)
    assert "comparisons" in said.stdout or "none was tried" in said.stdout
    for command in (("env", str(tuned)), ("run", str(tuned), "--", "true"), ("verify", str(tuned))):
        refused = colltune(*command, environ=simulated_environ, code=2)
        assert "simulated cluster dragonfly:4x2" in refused.stderr
    with pytest.raises(InputError, match="no MPI reads its rules"):
        load_deployable(tuned)


def test_the_whole_table_of_a_cluster(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "table.csv.gz"
    words = ("study", "collect", "allreduce", "bcast", "--simulate", "fattree:4x2", "--out", str(out))
    run(simulated_environ, *words, "--min-size", "512", "--max-size", "8KiB", "--node-counts", "2,3,4")
    table = read_table(out)
    assert set(table.collective) == {"allreduce", "bcast"}
    assert set(zip(table.nodes, table.ppn, strict=True)) == {(n, p) for n in (2, 3, 4) for p in (1, 2)}
    assert any(size & (size - 1) for size in table.msg_bytes)
    assert (table.n_reps == 1).all()
    assert {grid.collective for grid in load_grids([out], fewest_scenarios=10)} == {"allreduce", "bcast"}
    assert table.is_default.sum() == len(table.groupby(["collective", "nodes", "ppn", "msg_bytes"]))


def test_what_was_measured_is_used_again(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    arguments = (*TUNE, "fattree:3x1", "barrier", "gather", "--max-size", "64", "--out", str(tmp_path))
    run(simulated_environ, *arguments, "--gate", "off")
    journal = tmp_path / "journal.jsonl"
    measured = journal.read_text()
    run(simulated_environ, *arguments, "--resume")
    assert journal.read_text().startswith(measured)
    assert "still hold and are used again" in run(simulated_environ, *arguments).stdout
    other = run(simulated_environ, *TUNE, "fattree:2x1", "barrier", "--out", str(tmp_path), code=2)
    assert "is of another environment" in other.stderr


def test_what_does_not_go_together_is_refused(simulated_environ: dict[str, str], tmp_path: Path) -> None:
    for more, said in (
        (("dragonfly:4x2", "bcast", "--profile", "app.json"), "--profile is for a real machine"),
        (("dragonfly:4x2", "bcast", "--reproducible"), "--reproducible"),
        (("ring:4x2", "bcast"), "no simulated network 'ring'"),
    ):
        done = colltune(*TUNE, *more, "--out", str(tmp_path), environ=simulated_environ, code=2)
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_without_simgrid_it_is_said_what_to_install_and_a_broken_smpirun_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="apt-get install libsimgrid-dev"):
        find_simgrid({"PATH": str(tmp_path)})
    for name in ("smpirun", "smpicxx"):
        (tmp_path / name).write_text("#!/bin/sh\necho nothing of use\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(InputError, match="does not say its version"):
        find_simgrid({"PATH": str(tmp_path)})
