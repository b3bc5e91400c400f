"""Several nodes with several ranks each, where a point has most choices: compositions times what runs below them."""

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from namespaces import NamespaceCluster, why_not

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.sample import DEFAULT, Choice, Scenario, Status
from colltune.core.space import Point, message_sizes
from colltune.measure.contract import Effort
from colltune.mpi.installation import Installation
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
NODES, PPN = 4, 2
LARGEST = 1 << 17
# One repetition: what is asked is whether every choice is measured, and not how long it takes.
ONCE = Effort(relative_width=9.0, box_s=1e-5, fewest=1, most=1, warm_up=0)


def points_of(bench: Workbench, collective: str) -> list[Point]:
    """Of the sizes that have the same choices, the largest: every request that differs from the others."""
    sizes = message_sizes(collective, 1, LARGEST)
    scenarios = [Scenario(collective, NODES, PPN, size) for size in sizes]
    by_choices: dict[tuple[Choice, ...], Scenario] = {bench.legal(scenario): scenario for scenario in scenarios}
    return [Point(scenario, choices) for choices, scenario in by_choices.items()]


def test_every_choice_of_every_collective_is_measured(
    either: Installation, four_nodes: NamespaceCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in four_nodes.environment.items():
        monkeypatch.setenv(name, value)
    options = MachineOptions(str(either.mpiexec), four_nodes.host_file(PPN), NODES, PPN, "single")
    bench = open_workbench(options, os.environ)
    points = [point for name in bench.catalogue.entries for point in points_of(bench, name)]
    source = bench.launch(seed=1)
    # The job starts on a node, as that of a user does.
    object.__setattr__(source._plan, "command", four_nodes.inside(*source._plan.command))
    with closing(source):
        found = list(source.measure(points, ONCE))
    samples = [sample for _, some in found for sample in some]
    assert Counter((s.scenario, s.choice) for s in samples) == Counter(
        (p.scenario, c) for p in points for c in p.choices
    )
    assert source.launches == 1
    bad = [(str(s.scenario), str(s.choice), s.status, s.detail) for s in samples if s.status is not Status.OK]
    assert not [item for item in bad if item[2] is not Status.INAPPLICABLE], bad
    assert {s.scenario.collective for s in samples if s.choice == DEFAULT and s.status is Status.OK} == set(
        bench.catalogue.entries
    )
    if either.library == "mpich":
        assert max(len(point.choices) for point in points) > 64


def tune(cluster: NamespaceCluster, mpi: Installation, out: Path, *options: str) -> None:
    where = ("--mpiexec", mpi.mpiexec, "--hostfile", cluster.host_file(PPN), "--out", out)
    cluster.colltune("tune", *options, *where, timeout_s=1500.0)


@pytest.mark.slow
def test_tune_measures_whole_points_of_many_choices(
    mpi: Installation, four_nodes: NamespaceCluster, tmp_path: Path
) -> None:
    options = ("bcast", "--min-size", "64KiB", "--max-size", "256KiB", "--budget", "60s")
    tune(four_nodes, mpi, tmp_path, *options)
    samples = read_journal(tmp_path / JOURNAL).samples
    assert max(Counter(s.scenario for s in samples).values()) > 64
    assert {s.status for s in samples} <= {Status.OK, Status.INAPPLICABLE}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_collective_is_tuned_over_all_sizes(
    either: Installation, four_nodes: NamespaceCluster, tmp_path: Path
) -> None:
    options = MachineOptions(str(either.mpiexec), four_nodes.host_file(PPN), NODES, PPN, "single")
    names = list(open_workbench(options, {**os.environ, **four_nodes.environment}).catalogue.entries)
    tune(four_nodes, either, tmp_path, *names, "--budget", "5m")
    samples = read_journal(tmp_path / JOURNAL).samples
    assert {s.status for s in samples} <= {Status.OK, Status.INAPPLICABLE}
    assert {(4, 2)} <= {(s.scenario.nodes, s.scenario.ppn) for s in samples}
