"""The drill of docs/how-to/site-wide.md: a release that hurts is loaded by real jobs, and taken back."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from jobs import legal_calls
from slow_default import colltune

from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Choice, Environment, Scenario, SizeBasis
from colltune.emit.mpich.defaults import cut_default_trees
from colltune.emit.mpich.tree import Tree, format_tree
from colltune.mpi.installation import Installation
from colltune.site.entry import Entry, Provenance
from colltune.site.release import active, publish, read_release
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, Tuning, save_tuning
from commands import run_to_end

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
