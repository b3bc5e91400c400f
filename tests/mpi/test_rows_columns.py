"""An application on rows and columns of ranks: communicators are formed as it has them, and its calls meet rules."""

import json
from pathlib import Path

import pytest
from cluster_applications import Site
from namespaces import namespace_cluster, why_not

from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT
from colltune.emit.live_rules import live_basis
from colltune.mpi.installation import Installation
from colltune.profile.application_profile import side_by_side
from colltune.profile.profile_files import load_profile
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL
from compiled import program

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]
STEPS, BYTES = 200, 256


def test_rows_and_columns_are_tuned_as_the_application_has_them(mpi: Installation, tmp_path: Path) -> None:
    """On 4 nodes x 2 ranks: four rows of the ranks of a node, and two columns of a rank on each node."""
    with namespace_cluster(tmp_path / "cluster", 4) as cluster:
        site = Site.open(cluster, mpi, tmp_path / "site", 2)
        hosts, (profile, tuned) = str(cluster.host_file(2)), (str(tmp_path / name) for name in ("app.json", "tuned"))
        made = program(mpi.mpicc, "rows_columns.c")
        job = [str(mpi.mpiexec), "-f", hosts, "-n", "8", made, "2", str(STEPS), str(BYTES)]

        cluster.colltune("profile", "--out", profile, "--", *job)
        called = load_profile(Path(profile))
        assert {(str(one.communicator), one.calls) for one in called.calls} == {("4 x 1", 400), ("1 x 2", 800)}
        assert side_by_side(called, 2) == {(4, 1): 2, (1, 2): 1}
        of_it = ("--profile", profile, "--runtime", "1000h", "--mpiexec", str(mpi.mpiexec), "--hostfile", hosts)
        cluster.colltune("tune", *of_it, "--budget", "15s", "--gate", "off", "--out", tuned)
        measured = read_journal(Path(tuned) / JOURNAL).samples
        assert {(one.scenario.nodes, one.scenario.ppn, one.detail) for one in measured if one.times_s} == {
            (4, 1, "2-side-by-side"),
            (1, 2, ""),
        }
        choice = next(one for one in site.bench.catalogue.choices("alltoall") if one.algorithm == "pairwise")
        ends = {1: Rule(1, None, None, DEFAULT), 2: Rule(2, None, None, DEFAULT)}
        rest = Rule(None, None, None, DEFAULT)
        shapes = (Rule(1, 4, None, choice), ends[1], Rule(2, 2, None, choice), ends[2], rest)
        by_hand = site.tuning(
            "by-hand", {"alltoall": RuleSet("alltoall", live_basis(site.bench.catalogue, "alltoall"), shapes)}
        )
        said = cluster.colltune("run", "--via", "live", "--prove", str(by_hand), "--", *job).stderr
        assert f"{6 * STEPS} of {6 * STEPS} calls of alltoall met a rule" in said, json.dumps(job)
