"""`site publish` in a job: the rules are measured anew before anybody gets them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Scenario
from colltune.mpi.installation import Installation
from colltune.session.site.publish import lost_here


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
