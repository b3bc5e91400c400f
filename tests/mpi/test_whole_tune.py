"""A tuning on two nodes from end to end, one directory for all collectives and shapes, and sums in one order."""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from cluster_applications import Site
from jobs import in_force
from namespaces import NamespaceCluster, namespace_cluster, why_not
from slow_default import FAST, FILE, colltune, make_slow_mpi

from colltune.catalog import Catalogue, load
from colltune.core.proven import Verdict
from colltune.core.sample import REDUCTIONS, Choice, Scenario, Status
from colltune.distill.reproducible import distill_reproducible
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.mpi.installation import Installation
from colltune.store.earlier import measurements
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end
from compiled import program

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
NODES, PPN = 2, 2


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCluster]:
    with namespace_cluster(tmp_path_factory.mktemp("nodes"), NODES) as cluster:
        yield cluster


def test_a_job_runs_under_what_was_tuned_on_its_nodes(
    either: Installation, two_nodes: NamespaceCluster, tmp_path: Path
) -> None:
    site = Site.open(two_nodes, either, tmp_path / "site", PPN)
    job = ["--mpiexec", either.mpiexec, "--hostfile", two_nodes.host_file(PPN)]
    sizes = ["--min-size", "4KiB", "--max-size", "4KiB"]
    # A busy machine spends a short budget before it measures.
    for budget_s in (8, 45, 135):
        out = tmp_path / f"tuned{budget_s}"
        done = two_nodes.colltune("tune", "allreduce", *sizes, "--budget", f"{budget_s}s", *job, "--out", out)
        samples = read_journal(out / JOURNAL).samples
        if len({sample.choice for sample in samples}) > 1:
            break
    assert f"{NODES} nodes x {PPN} ranks" in done.stdout
    tuning = load_tuning(out)
    assert (tuning.environment.nodes, tuning.environment.ppn) == (NODES, PPN)
    assert {sample.status for sample in samples} <= {Status.OK, Status.INAPPLICABLE}
    # How far it comes beyond the default and one other depends on how busy the machine is.
    assert {sample.scenario.size_bytes for sample in samples} == {4096}
    assert len({sample.choice for sample in samples}) > 1
    ran = site.run(out, [], [site.program("solver"), "200", "20"])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "residual" in ran.stdout


@pytest.fixture(scope="module")
def mpiexec(mpi: Installation, agent: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_mpi(mpi, agent, tmp_path_factory.mktemp("slow"))


@pytest.fixture(scope="module")
def out(mpiexec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bcast on 1 x 2, then allreduce there, then bcast on 1 x 3."""
    out = tmp_path_factory.mktemp("one") / "tuned"
    bcast = ["bcast", "--min-size", "256", "--max-size", "256"]
    common = ["--out", str(out), "--mpiexec", str(mpiexec), "--budget", "150s"]
    colltune("tune", *bcast, "--ppn", "2", *common)
    assert load_tuning(out).rule_sets["bcast"].departs
    (out / "export").mkdir()
    colltune("tune", "allreduce", "--min-size", "64", "--max-size", "64", "--ppn", "2", *common)
    assert not (out / "export").exists()
    assert load_tuning(out).rule_sets["bcast"].departs
    colltune("tune", *bcast, "--ppn", "3", *common)
    return out


def test_the_rules_of_every_collective_and_shape_are_in_force(out: Path, mpiexec: Path) -> None:
    tuning = load_tuning(out)
    assert set(tuning.rule_sets) == {"bcast", "allreduce"}
    assert tuning.tuned_in == ((1, 2), (1, 3))
    for ppn in (2, 3):
        assert str(tuning.rule_sets["bcast"].evaluate(Scenario("bcast", 1, ppn, 256))) == FAST
        said = colltune("explain", str(out), "bcast", "--ppn", str(ppn), "--size", "256").stdout
        assert f"{FAST} kept" in said
    kept = {one.scenario for one in tuning.summary.having(Verdict.KEPT)}
    assert {Scenario("bcast", 1, 2, 256), Scenario("bcast", 1, 3, 256)} <= kept
    assert set(tuning.summary.reasons) == {"bcast", "allreduce"}
    assert FILE in colltune("env", str(out), mpiexec=mpiexec).stdout
    measured = {(s.scenario.collective, s.scenario.ppn) for s in measurements(out)}
    assert {("bcast", 2), ("bcast", 3), ("allreduce", 2)} <= measured


def test_the_commands_work_on_it(out: Path) -> None:
    report = " ".join(colltune("report", str(out), "--text", "--all").stdout.split())
    assert "1 node x 2 ranks; 1 node x 3 ranks" in report
    assert "stopped because" in report
    colltune("verify", "--results", str(out), "--short")
    colltune("report", str(out), "--diff", str(out))
    colltune("lint", *(str(path) for path in (out / "mpich").glob("*.json")))


def test_going_on_in_another_shape_goes_on_with_its_own_campaign(out: Path, mpiexec: Path) -> None:
    before = measurements(out)
    done = colltune(
        "tune", "allreduce", "--min-size", "64", "--max-size", "64", "--ppn", "2", "--out", str(out),
        "--mpiexec", str(mpiexec), "--budget", "60s", "--resume",
    )  # fmt: skip
    assert "going on with the last campaign in this shape of job" in " ".join(done.stdout.split())
    assert {s.scenario for s in before} <= {s.scenario for s in measurements(out)}
    assert load_tuning(out).rule_sets["bcast"].evaluate(Scenario("bcast", 1, 3, 256)) != "default"


def test_another_mpi_is_refused_in_one_line(out: Path, openmpi: Installation) -> None:
    before = json.loads((out / "tuning.json").read_text())
    done = colltune("tune", "bcast", "--ppn", "2", "--out", str(out), "--mpiexec", str(openmpi.mpiexec), code=2)
    assert len(done.stderr.strip().splitlines()) == 1
    assert "MPI mpich there, openmpi here; MPI version 5.0.2 there, 5.0" in done.stderr
    assert "--out" in done.stderr
    done = colltune("tune", "bcast", "--ppn", "2", "--out", str(out), "--thread-level", "multiple", code=2)
    assert "thread level single there, multiple here" in done.stderr
    assert json.loads((out / "tuning.json").read_text()) == before


SOURCE = Path(__file__).parents[1] / "native" / "sum_order.c"
RANKS = 7  # no power of two, nor of any radix
COUNTS = ("1", "8", "3000")
Orders = Callable[..., tuple[int, int, int]]


@pytest.fixture(scope="module")
def catalogue(mpi: Installation) -> Catalogue:
    return load("mpich", mpi.version)


@pytest.fixture(scope="module")
def orders(mpi: Installation) -> Orders:
    """Different results of element 0, of any element, and of the ranks."""
    made = program(mpi.mpicc, "sum_order.c")

    def orders(collective: str, variables: Mapping[str, str], *counts: str) -> tuple[int, int, int]:
        done = run_to_end(
            [str(mpi.mpiexec), "-n", str(RANKS), made, collective, *(counts or COUNTS)],
            env={**os.environ, "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", **variables},
            check=True,
        )
        first, any_, ranks = map(int, re.findall(r"\d+", done.stdout))
        return first, any_, ranks

    return orders


@pytest.mark.parametrize("collective", sorted(REDUCTIONS))
def test_what_the_catalogue_calls_reproducible_is(catalogue: Catalogue, orders: Orders, collective: str) -> None:
    tested = 0
    # Radices beyond the ranks repeat each other; legal leaves these out.
    for choice in catalogue.legal(Scenario(collective, 1, RANKS, 4 * RANKS * 8))[1:]:
        if catalogue.algorithm(collective, choice).reproducible:
            # With this setting the library says so, where it would run another algorithm in its place.
            variables = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error", **dict(catalogue.settings(collective, choice))}
            assert (choice, orders(collective, variables)) == (choice, (1, 1, 1))
            tested += 1
    assert tested


def test_an_order_that_depends_on_the_place_is_seen(catalogue: Catalogue, orders: Orders) -> None:
    if catalogue.version == "4.0":
        pytest.skip("4.0 has no ring")
    _, any_, _ = orders("allreduce", dict(catalogue.settings("allreduce", Choice("ring"))))
    assert any_ > 1


def test_the_default_changes_its_order_and_the_reproducible_file_does_not(
    emitter: MpichEmitter, catalogue: Catalogue, orders: Orders, tmp_path: Path
) -> None:
    scenario = Scenario("allreduce", 1, RANKS, 32)
    tree = Choice("tree", (("k", 2),))
    measured = {(scenario, Choice("recursive_doubling")): 1.0}
    if catalogue.version != "4.0":
        measured[scenario, tree] = 0.5
    rules = [distill_reproducible(name, measured, {}, catalogue).rule_set for name in sorted(REDUCTIONS)]
    named = in_force(emitter, tmp_path, rules)
    for name in ("allreduce", "reduce"):
        assert orders(name, {})[0] > 1
        assert orders(name, named) == (1, 1, 1)
