"""`colltune run --measure` on several nodes: four network namespaces with two ranks each, both libraries."""

from pathlib import Path

import pytest
from cluster_applications import Site, latest_gain
from namespaces import NamespaceCluster, why_not
from switchback_loop import fits

from colltune.core.rules import RuleSet
from colltune.emit.live_rules import live_basis
from colltune.mpi.installation import Installation
from compiled import program, shared

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]
NATIVE = Path(__file__).parents[1] / "native"


@pytest.fixture
def site(either: Installation, four_nodes: NamespaceCluster, tmp_path: Path) -> Site:
    return Site.open(four_nodes, either, tmp_path / "site", 2)


@pytest.mark.parametrize(
    ("program", "collective", "arguments"),
    [("solver", "allreduce", ["1000", "400"]), ("fft_transpose", "alltoall", ["64", "150"])],
)
def test_a_known_delay_is_found_on_all_nodes(site: Site, program: str, collective: str, arguments: list[str]) -> None:
    """Calls by default take 2 ms more than tuned ones, which are the same otherwise."""
    tuned = site.neutral("tuned", collective)
    command = [site.program(program), *arguments]
    done = site.run(tuned, ["--measure", "--share", "50%"], command, slow="default", slow_us=2000.0)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split("delayed_calls ")[1].split()[0]) > 8 * 50  # the sum of all ranks
    gain = latest_gain(tuned)
    assert fits(done.stderr, gain)
    (cell,) = gain["cells"]
    assert (cell["ranks"], cell["nodes"], cell["off"]) == (8, 4, 0)
    assert cell["by_default"]["call_s"] - cell["tuned"]["call_s"] > 0.001
    assert 0.0012 < cell["saved_s"]["estimate"] / cell["tuned_calls"] < 0.006


def test_ranks_of_all_nodes_run_the_same_calls_by_default(site: Site) -> None:
    """Communicators over some of the nodes that come and go; their first ranks are on different nodes."""
    spy = shared("switchback_spy.c", compiler=site.bench.installation.mpicc)
    calls = program(site.bench.installation.mpicc, "switchback_calls.c", "-rdynamic")
    catalogue = site.bench.catalogue
    names = ("bcast", "allreduce", "allgather")
    choices = {name: catalogue.choices(name)[1] for name in names}
    tuned = site.tuning(
        "mixed", {name: RuleSet.always(name, live_basis(catalogue, name), choices[name]) for name in names}
    )
    done = site.run(tuned, ["--measure", "--share", "50%"], [calls, "3", "1500"], preload=str(spy))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong=0" in done.stdout
    same, defaults = (int(word.partition("=")[2]) for word in done.stdout.splitlines()[-1].split())
    assert same == 1
    assert defaults > 5
