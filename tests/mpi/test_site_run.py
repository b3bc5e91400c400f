"""A real program under the release of its site, which stays as it is whatever its job measures."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from live_jobs import ON_EITHER
from slow_default import colltune
from test_run_measure import loop_in

from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import Rule
from colltune.core.sample import DEFAULT, Scenario
from colltune.mpi.installation import Installation
from colltune.site.entry import Entry, Provenance
from colltune.site.release import activate, active, publish
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, load_tuning, save_tuning


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
        assert tuning.live is not None
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
