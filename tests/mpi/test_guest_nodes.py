"""Ranks without the preloaded library on other nodes: network namespaces with two ranks each, both libraries."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from guests import MODULES, Guest, guest_fixtures
from live_jobs import live, sanitized
from namespaces import NamespaceCluster, namespace_cluster, why_not
from test_live_selector import prefer

from colltune.machine.compile import build
from colltune.profile.parts import part_files, read_parts
from colltune.prove.replay.conformance import replay_arguments
from commands import run_to_end, shell_script

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
built, guest = guest_fixtures("guest_worlds.c")
_PPN = 2
_SAID = "a part of this program's ranks runs without libcolltune.so"


@pytest.fixture(scope="module", params=[2, 4])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceCluster]:
    directory = tmp_path_factory.mktemp("nodes")
    with namespace_cluster(directory, request.param, realtime=False) as nodes:
        yield nodes


def _launched(cluster: NamespaceCluster, guest: Guest, *programs: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """``programs`` as one on all nodes."""
    hosts = ["-f", str(cluster.host_file(_PPN))]
    if guest.openmpi:
        slots = guest.profile.with_name("slots")
        slots.write_text("".join(f"{host} slots={_PPN}\n" for host in cluster.hosts))
        hosts = ["--hostfile", str(slots), "--bind-to", "none"]
    joined = [word for program in programs for word in (":", *program)][1:]
    return run_to_end(
        cluster.inside(str(guest.bench.installation.mpiexec), *hosts, *joined),
        env={**os.environ, **cluster.environment},
    )


def _ends_well(cluster: NamespaceCluster, guest: Guest, *programs: Sequence[str]) -> str:
    """Standard error of a launch in which all ranks found all bytes right."""
    done, ranks = _launched(cluster, guest, *programs), _PPN * len(cluster.hosts)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank={rank} wrong=0" for rank in range(ranks)], done.stderr
    return done.stderr


def _with(guest: Guest, *modules: str) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in guest.told(*modules).items()), guest.program, "plain"]


@pytest.mark.parametrize("without", ["half", "last", "first"])
def test_ranks_without_the_library_on_another_node_are_not_waited_for(
    cluster: NamespaceCluster, guest: Guest, without: str
) -> None:
    """Whole nodes, or one rank alone."""
    ranks, plain = _PPN * len(cluster.hosts), [guest.program, "plain"]
    first = {"half": ranks // 2, "last": ranks - 1, "first": 1}[without]
    programs = [_with(guest, *MODULES), plain][:: -1 if without == "first" else 1]
    split = zip((first, ranks - first), programs, strict=True)
    said = _ends_well(cluster, guest, *(["-n", str(count), *program] for count, program in split))
    assert said.count(_SAID) == 1, said
    assert part_files(guest.profile) == []


def test_a_wrapper_that_preloads_on_one_node_only_is_found(
    cluster: NamespaceCluster, guest: Guest, tmp_path: Path
) -> None:
    commands = '[ "$(hostname)" = node1 ] && exec env -u LD_PRELOAD "$@"\nexec "$@"'
    wrapper = shell_script(tmp_path / "wrapper", commands)
    environment, (*variables, program, mode) = "env", _with(guest, *MODULES)[1:]
    command = [environment, *variables, str(wrapper), program, mode]
    said = _ends_well(cluster, guest, ["-n", str(_PPN * len(cluster.hosts)), *command])
    assert said.count(_SAID) == 1, said


def test_several_programs_that_all_have_the_library_are_served(cluster: NamespaceCluster, guest: Guest) -> None:
    half, each = str(_PPN * len(cluster.hosts) // 2), _with(guest, "profile")
    said = _ends_well(cluster, guest, ["-n", half, *each], ["-n", half, *each])
    assert "colltune" not in said
    assert read_parts(part_files(guest.profile)).ranks == _PPN * len(cluster.hosts)


@pytest.mark.slow
def test_the_library_is_clean_under_sanitizers_on_several_nodes(
    cluster: NamespaceCluster, guest: Guest, tmp_path: Path
) -> None:
    """Every legal call with all modules at work: no byte beyond a buffer, and nothing that C leaves undefined.

    Open MPI 5.0.11 gathers wrongly on two nodes by itself, so results are those without the library.
    """
    kit, ranks = live(guest.bench.installation, tmp_path), _PPN * len(cluster.hosts)
    rule_sets = prefer(kit, 1)
    Path(guest.variables["COLLTUNE_SELECT"]).write_bytes(kit.emit(*rule_sets))
    told = {**guest.told(*MODULES), "LD_PRELOAD": str(sanitized(kit).preload), "COLLTUNE_MEASURE_SHARE": "50"}
    calls = replay_arguments([ranks], rule_sets, short=True, max_bytes=20_000)
    program = [str(build(guest.bench.installation.mpicc, "conformance")), *calls]
    variables = [f"{name}={value}" for name, value in {**told, "ASAN_OPTIONS": "detect_leaks=0"}.items()]
    plain = _launched(cluster, guest, ["-n", str(ranks), *program])
    done = _launched(cluster, guest, ["-n", str(ranks), "env", *variables, *program])
    assert done.returncode == plain.returncode, done.stdout[-1500:] + done.stderr[-1500:]
    assert _failed(done.stdout) == _failed(plain.stdout)
    assert "done cases=" in done.stdout
    assert "Sanitizer" not in done.stderr
    assert "runtime error" not in done.stderr
    assert "selector is off" not in done.stderr
    assert read_parts(part_files(guest.profile)).ranks == ranks


def _failed(output: str) -> list[str]:
    return [line.partition(" | ")[0] for line in output.splitlines() if line.startswith("FAIL")]
