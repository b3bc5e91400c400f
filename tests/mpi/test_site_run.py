"""A release of a site: a program under it, published in a job, and taken back (docs/how-to/site-wide.md)."""

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import legal_calls
from live_jobs import ON_EITHER
from slow_default import colltune
from test_run_measure import loop_in

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis
from colltune.emit.mpich.defaults import cut_default_trees
from colltune.emit.mpich.tree import Tree, format_tree
from colltune.mpi.installation import Installation
from colltune.session.site.publish import lost_here
from colltune.site.entry import Entry, Provenance
from colltune.site.release import activate, active, publish, read_release
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, Tuning, load_tuning, save_tuning
from commands import run_to_end


def test_jobs_get_the_active_release_and_leave_it_as_it_is(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loop_in(mpi, tmp_path)
    tuned = made.out.parent
    store = SiteStore.made(tmp_path / "store")
    nodes, ppn = made.mpi.bench.nodes, made.mpi.bench.ppn

    def released(number: int) -> str:
        """A release whose rules leave small calls, of ``number`` bytes at most, to the default."""
        tuning = load_tuning(tuned)
        whole = tuning.live["bcast"]
        rules = replace(whole, rules=(Rule(None, None, number, DEFAULT), *whole.rules))
        kept = Decision(Scenario("bcast", nodes, ppn, 64), whole.rules[-1].choice, Verdict.KEPT, (2.0,) * 9, "faster")
        tuning = replace(tuning, rule_sets={"bcast": rules}, summary=Summary(decisions=(kept,)))
        save_tuning(tmp_path / f"made{number}", tuning)
        files = {**tuning.files, MANIFEST: (tmp_path / f"made{number}" / MANIFEST).read_bytes()}
        began_s = time.time() + number
        said = Provenance("colltune tune", "root", "", (), began_s, began_s)
        store.add(Entry(tuning.environment, said, files=files))
        return publish(store, "root", "1", lambda _tuning: []).name

    activate(store, released(1))
    before, later = active(store), released(2)
    monkeypatch.setenv("COLLTUNE_STORE", str(store.directory))
    slow = {**ON_EITHER, "LD_PRELOAD": f"{made.mpi.preload}:{made.spy}", "CT_SLOW": "default", "CT_SLOW_US": "1000"}
    mpiexec = mpi.mpiexec
    program = [str(mpiexec), "-n", "2", str(made.program), "2000", "64", "0"]
    monkeypatch.setenv("PATH", f"{mpiexec.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    for name in (before, later):
        colltune("site", "activate", name)
        with monkeypatch.context() as context:
            for variable, value in slow.items():
                context.setenv(variable, value)
            done = colltune("site", "run", "--measure", "--share", "50%", "--", *program)
        assert done.stdout.splitlines()[0] == "done"
        assert "this run took" in done.stderr
        assert list((tmp_path / "colltune-release" / name).glob("*/history/*/application-run.json"))
    with monkeypatch.context() as context:
        for name, value in slow.items():
            context.setenv(name, value)
        # As in a job that has loaded the module of the release, to which nobody may write.
        (placed,) = (store.outbox / "releases" / later).glob("tunings/*/*")
        loaded = colltune("run", "--measure=50%", str(placed), "--", *program)
    assert f"what is measured is kept in colltune-release/{later}/{placed.name}" in loaded.stderr
    assert not (placed / "history").exists()


def test_the_rules_are_measured_anew_in_a_job_of_their_build(
    mpi: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = open_workbench(MachineOptions(str(mpi.mpiexec), nodes=1, ppn=2), os.environ)
    choice = bench.catalogue.choices("bcast")[1]
    rules = {"bcast": RuleSet.always("bcast", bench.catalogue.collective("bcast").basis, choice)}
    kept = Decision(Scenario("bcast", 1, 2, 1024), choice, Verdict.KEPT, (9.0,) * 9, "faster")
    tuning = replace(bench.tuning(rules), summary=Summary(decisions=(kept,)))
    said: list[str] = []
    environ = {**os.environ, "JOB_ID": "4711", "PATH": f"{mpi.mpiexec.parent}:{os.environ['PATH']}"}
    lost = lost_here(tuning, environ, said.append)
    assert said == ["1 x 2: measured anew at 1 call"]
    # Whether the choice pays a little is the machine's affair.
    assert all("it is slower at bcast" in text for text in lost)
    other = replace(tuning, environment=replace(tuning.environment, mpi_build="0" * 64))
    assert lost_here(other, environ, said.append) == []
    assert "is not measured anew: the MPI that is here" in said[-1]
    assert lost_here(tuning, {"PATH": environ["PATH"]}, said.append) == []
    assert len(said) == 2


LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
pytestmark = pytest.mark.skipif(not LMOD.exists(), reason="no Lmod (apt: lmod)")
FILE = "mpich/mpich-coll.json"
VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
# MPICH ends a job of three ranks where this can be reached: a release that no check would let through.
FOR_POWERS_OF_TWO: Tree = {"algorithm=MPIR_Allgather_intra_recursive_doubling": {}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SiteStore:
    """The one that commands take."""
    made = SiteStore.made(tmp_path / "store")
    monkeypatch.setenv("COLLTUNE_STORE", str(made.directory))
    return made


def handed_over(mpi: Installation, place: Path, selection: Tree, choice: str, now_s: float) -> Entry:
    """A job of one node and three ranks says that ``choice`` is faster, by the file ``selection``."""
    facts = {"libmpi": str(mpi.libmpi), "mpiexec": str(mpi.mpiexec)}
    here = Environment("mpich", mpi.version, mpi.build, "a machine", 1, 3, "single", facts)
    chosen = Choice(choice)
    rules = RuleSet("allgather", SizeBasis.TOTAL, (Rule(None, None, None, chosen),))
    kept = Decision(Scenario("allgather", 1, 3, 64), chosen, Verdict.KEPT, (2.0,) * 9, "faster")
    files = {FILE: format_tree(selection)}
    tuning = Tuning(here, {"allgather": rules}, files, {VARIABLE: f"{{directory}}/{FILE}"}, Summary(decisions=(kept,)))
    save_tuning(place, tuning)
    said = Provenance("colltune tune allgather", "root", f"job {choice}", ("n1",), now_s, now_s)
    return Entry(here, said, files={**files, MANIFEST: (place / MANIFEST).read_bytes()})


def loaded(store: SiteStore, version: str) -> dict[str, str]:
    """The environment of a job of one node with three ranks after ``module load``."""
    job = {"SLURM_JOB_NUM_NODES": "1", "SLURM_TASKS_PER_NODE": "3"}
    around = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "MODULEPATH": str(store.outbox / "active/modules/lmod"),
    }
    command = [LMOD, "bash", "load", f"colltune-tuned/mpich-{version}"]
    lines = run_to_end(command, check=True, env={**around, **job}).stdout
    shell = ["bash", "-c", f"{lines}\nenv -0"]
    done = run_to_end(shell, check=True, env={"PATH": os.environ["PATH"]})
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)


def test_a_release_that_hurts_is_taken_back_and_does_not_come_again(
    mpi: Installation, store: SiteStore, tmp_path: Path
) -> None:
    defaults = cut_default_trees(mpi.libmpi).general
    key = "collective=allgather"
    bad = {**defaults, key: {**defaults[key], "comm_type=intra": FOR_POWERS_OF_TWO}}
    entries = {
        "good": handed_over(mpi, tmp_path / "good", defaults, "ring", time.time() - 60),
        "bad": handed_over(mpi, tmp_path / "bad", bad, "recursive_doubling", time.time() - 30),
    }

    def job_ends_well(environment: dict[str, str]) -> bool:
        around = {**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", **environment}
        command = [mpi.mpiexec, "-n", "3", *legal_calls(mpi.mpicc, 3)]
        done = run_to_end(command, env=around)
        return done.returncode == 0

    store.add(entries["good"])
    colltune("site", "publish")
    good = next(one.name for one in (store.outbox / "releases").iterdir())
    colltune("site", "activate", good)
    began_under_good = loaded(store, mpi.version)
    assert FILE in began_under_good[VARIABLE]
    assert job_ends_well(began_under_good)

    # The bad one: lint refuses it, so it is published past lint, as a fault would be that no check knows.
    store.add(entries["bad"])
    assert "can be reached on 3 ranks" in colltune("site", "publish", code=2).stderr
    hurts = publish(store, "root", "1", lambda _tuning: []).name
    colltune("site", "activate", hurts)
    under_bad = loaded(store, mpi.version)
    assert not job_ends_well(under_bad)
    assert job_ends_well(began_under_good)  # a job keeps what it has loaded

    # 1. Back: one rename, and nobody's job has to be touched.
    began_s = time.monotonic()
    assert f"{good} is active again" in colltune("site", "rollback").stdout
    assert time.monotonic() - began_s < 60.0
    assert active(store) == good
    assert job_ends_well(loaded(store, mpi.version))
    assert not job_ends_well(under_bad)  # what loaded the bad one has to be started anew

    # 2. Whose word it was is believed no more, so the next release does not bring it again, even past lint.
    (said,) = {one.entry for one in read_release(store.outbox / "releases" / hurts).tunings}
    assert "revoked" in colltune("site", "revoke", said).stdout
    again = publish(store, "root", "1", lambda _tuning: [])
    assert said not in {one.entry for one in again.tunings}
    colltune("site", "activate", again.name)
    assert job_ends_well(loaded(store, mpi.version))

    # 3. Where colltune itself cannot be run: the link is all there is.
    colltune("site", "activate", hurts)
    assert not job_ends_well(loaded(store, mpi.version))
    subprocess.run(["ln", "-sfn", f"releases/{good}", store.outbox / "active"], check=True)
    assert job_ends_well(loaded(store, mpi.version))
    assert f"active: {good}" in colltune("site", "status").stdout
