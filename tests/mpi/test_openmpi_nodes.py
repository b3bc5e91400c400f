"""Open MPI on two nodes, where han stands before coll/tuned: the files decide, and leave the rest to han."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from jobs import in_force
from namespaces import NamespaceCluster, namespace_cluster, why_not
from one_call import NAMED, OneCall, algorithms, making, namer

from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis, Status
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis
from colltune.emit.openmpi.han import HAN_FILE
from colltune.machine.compile import cache_directory
from colltune.mpi.installation import Installation
from colltune.mpi.programs import library_for
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL
from commands import run_to_end

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
PPN = 2
Shown = dict[OneCall, str]
Show = Callable[[Sequence[int], Mapping[str, str]], Shown]


@pytest.fixture(scope="module")
def two_nodes(openmpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCluster]:
    if openmpi.version.startswith("4."):
        pytest.skip("han is off in 4.1")
    with namespace_cluster(tmp_path_factory.mktemp("nodes"), 2, realtime=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def bench(openmpi: Installation, two_nodes: NamespaceCluster) -> Workbench:
    options = MachineOptions(mpiexec=str(openmpi.mpiexec), host_file=two_nodes.host_file(PPN))
    return open_workbench(options, {**os.environ, **two_nodes.environment})


@pytest.fixture
def show(bench: Workbench, two_nodes: NamespaceCluster) -> Show:
    """The functions that run on both nodes at some sizes, under some variables, as rank 0 sees them."""

    def show(sizes: Sequence[int], variables: Mapping[str, str]) -> Shown:
        calls = [(name, size) for name in NAMED for size in sizes]
        preload = ":".join(filter(None, (variables.get("LD_PRELOAD", ""), namer())))
        command = bench.command(making(bench.installation.mpicc, calls, 2 * PPN), {**variables, "LD_PRELOAD": preload})
        environment = {**os.environ, **two_nodes.environment, **command.environment}
        environment.pop("LD_PRELOAD")  # for the ranks, not for what starts them
        done = run_to_end(two_nodes.inside(*command.argv), env=environment, check=True)
        return algorithms(done.stdout, calls)

    return show


def test_the_file_decides_across_nodes_and_han_keeps_the_rest(bench: Workbench, show: Show, tmp_path: Path) -> None:
    """Names of tuned's functions alone below the bound; above it, what runs without any file."""
    bound, step, ranks = 960, 16, 2 * PPN
    low = {"allreduce": "nonoverlapping", "bcast": "pipeline", "reduce": "in_order_binary", "barrier": "double_ring"}
    low |= {"allgather": "ring", "gather": "binomial", "scatter": "linear_nb", "alltoall": "pairwise"}
    rule_sets = {}
    for name, key in low.items():
        basis = bench.catalogue.collective(name).basis
        choice = next(choice for choice in bench.catalogue.choices(name) if choice.algorithm == key)
        whole = bound * ranks if basis is SizeBasis.TOTAL else bound
        rules = [Rule(None, None, None, choice)]
        if basis is not SizeBasis.NONE:
            rules = [Rule(None, None, whole, choice), Rule(None, None, None, DEFAULT)]
        rule_sets[name] = RuleSet(name, basis, tuple(rules))
    sizes = [bound - step, bound, bound + step]
    default = show(sizes, {})
    decided = show(sizes, in_force(bench.emitter, tmp_path, list(rule_sets.values())))
    functions = {"linear_nb": "linear_nb", "double_ring": "doublering"}
    for (name, size), ran in decided.items():
        if name in low and rule_sets[name].evaluate(Scenario(name, 2, PPN, size)) != DEFAULT:
            alone = [word for word in ran.split() if word.startswith(f"{name}_")]
            assert functions.get(low[name], low[name]) in " ".join(alone), (name, size, ran)
        else:
            assert ran == default[name, size], (name, size)
    (tmp_path / HAN_FILE).unlink()
    without = show([bound], bench.emitter.environment(tmp_path))
    assert "allreduce_" in decided["allreduce", bound]
    assert "allreduce_" not in without["allreduce", bound], "han's file is what makes the rules count"


def test_file_and_control_variables_run_the_same(bench: Workbench, show: Show, tmp_path: Path) -> None:
    """What is measured, a choice by control variables and a fresh communicator, is what the files do.

    allreduce's nonoverlapping is left out: it calls reduce and bcast, for which the file has rules of its own.
    """
    library = library_for(bench.installation, cache_directory(os.environ))
    for number in (1, 3):
        chosen = {c: bench.catalogue.choices(c)[number] for c in ("allreduce", "bcast", "reduce", "alltoall")}
        filed = [RuleSet.always(name, bench.catalogue.collective(name).basis, c) for name, c in chosen.items()]
        by_file = show([960], in_force(bench.emitter, tmp_path, filed))
        live = [RuleSet.always(name, live_basis(bench.catalogue, name), c) for name, c in chosen.items()]
        (tmp_path / LIVE_FILE).write_bytes(LiveEmitter(bench.catalogue, bench.settings).emit(live)[LIVE_FILE])
        by_variables = show([960], {"LD_PRELOAD": str(library), "COLLTUNE_SELECT": str(tmp_path / LIVE_FILE)})
        for name in chosen:
            assert by_variables[name, 960] == by_file[name, 960], name


def test_doctor_says_who_takes_what(openmpi: Installation, two_nodes: NamespaceCluster) -> None:
    where = ("--mpiexec", openmpi.mpiexec, "--hostfile", two_nodes.host_file(PPN))
    done = two_nodes.colltune("doctor", "--all", *where)
    assert "coll/han (priority 35): allgather, allreduce, barrier, bcast, gather, reduce, scatter" in done.stdout
    tuned = "allgatherv, alltoall, exscan, reduce_scatter, reduce_scatter_block, scan"
    assert f"coll/tuned (priority 30): {tuned}" in done.stdout
    assert "not ready" not in done.stdout


@pytest.mark.slow
def test_tune_measures_across_nodes(openmpi: Installation, two_nodes: NamespaceCluster, tmp_path: Path) -> None:
    where = ("--mpiexec", openmpi.mpiexec, "--hostfile", two_nodes.host_file(1), "--out", tmp_path / "tuned")
    done = two_nodes.colltune("tune", "bcast", "--max-size", "16", "--budget", "10s", *where)
    assert "2 nodes x 1 rank\n" in done.stdout
    samples = read_journal(tmp_path / "tuned" / JOURNAL).samples
    assert {s.status for s in samples} == {Status.OK}
    assert len({s.choice for s in samples}) > 3
    assert all(two_nodes.sent_bytes(node) > 10_000 for node in two_nodes.hosts)
    explained = OpenMpiBackend(openmpi.version).describe_default(Scenario("bcast", 2, 1, 16), "single")
    assert explained == "Open MPI's own decision (coll/han)"
    assert Choice("binomial") in {s.choice for s in samples}
