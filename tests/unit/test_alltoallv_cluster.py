"""Simulated clusters: SimGrid's platform and catalogue; times and routes of our simulator of the all-to-all."""

import ctypes
import shutil
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from alltoallv_simulators import (
    MESSAGE_S,
    NETWORKS,
    Pattern,
    Timing,
    compile_cluster,
    compile_program,
    simulate_own,
    simulate_program,
)
from bench_alltoallv import figures_of_all
from colltune.alltoallv.lookup_table import FILLS, LIBRARY, AlltoallvRule, Setting, Shape, TableEntry, save_table
from colltune.bench.backends import recall_backend
from colltune.core import extras
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Environment, Scenario
from colltune_study.simulated.simulated_catalogue import load_simulated
from colltune_study.simulated.smpi_cluster import KINDS, parse_cluster
from colltune_study.simulated.smpi_process import settings
from compiled import shared


@pytest.mark.parametrize("text", ["dragonfly:64x4", "fattree:64x16,taper=0.25", "torus:5x1,latency_ns=50,placement=7"])
def test_text_and_value_are_the_same_without_the_values_that_are_the_network_s_own(text: str) -> None:
    assert parse_cluster(text).text == text
    assert parse_cluster("fattree:8x2,taper=0.5,bandwidth_gbit=100").text == "fattree:8x2"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dragonfly", "cannot read"),
        ("dragonfly:64", "cannot read"),
        ("dragonfly:64x4,", "cannot read"),
        ("dragonfly:64x4,taper", "cannot read"),
        ("hypercube:8x1", "no simulated network 'hypercube'"),
        ("torus:8x1,speed=3", "has no 'speed'"),
        ("torus:8x1,taper=fast", "is not a number"),
        ("torus:8x1,taper=1.5", "out of range"),
        ("torus:8x1,latency_ns=-1", "out of range"),
        ("torus:8x1,latency_ns=nan", "out of range"),
        ("torus:1x4", "2 to 1,024 nodes"),
        ("torus:1025x1", "2 to 1,024 nodes"),
        ("torus:4x0", "1 to 64 ranks"),
    ],
)
def test_what_cannot_be_simulated_is_said(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_cluster(text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nodes", [2, 3, 8, 9, 16, 33, 64, 100, 512, 1000, 1024])
def test_there_are_hosts_for_all_ranks(kind: str, nodes: int) -> None:
    cluster = parse_cluster(f"{kind}:{nodes}x2,placement=3")
    (found,) = ET.fromstring(cluster.platform()).iter("cluster")
    last = int(found.attrib["radical"].partition("-")[2])
    hosts = cluster.host_file(nodes, 2).split()
    assert len(hosts) == 2 * nodes
    assert len(set(hosts)) == nodes
    assert max(int(host.removeprefix("n")) for host in hosts) <= last
    assert hosts[0] == hosts[1]


@pytest.mark.parametrize("nodes", [2, 8, 16, 32, 64, 128, 256, 512, 1024])
def test_a_dragonfly_has_no_more_groups_than_routers_in_a_chassis(nodes: int) -> None:
    """SimGrid ends with a segmentation fault otherwise."""
    (found,) = ET.fromstring(parse_cluster(f"dragonfly:{nodes}x1").platform()).iter("cluster")
    groups, chassis, routers, hosts = (
        int(part.partition(",")[0]) for part in found.attrib["topo_parameters"].split(";")
    )
    assert groups <= routers
    assert groups * chassis * routers * hosts >= nodes


def test_a_placement_is_a_permutation_that_is_the_same_each_time() -> None:
    cluster = parse_cluster("fattree:64x1,placement=5")
    assert cluster.host_file(64, 1) == cluster.host_file(64, 1)
    assert cluster.host_file(8, 1) != parse_cluster("fattree:64x1").host_file(8, 1)
    assert cluster.host_file(8, 1) == "".join(cluster.host_file(64, 1).splitlines(keepends=True)[:8])


def test_settings_are_those_of_the_simulator_s_version() -> None:
    cluster = parse_cluster("fattree:4x1")
    old, new = settings(cluster, (3, 32)), settings(cluster, (4, 1))
    assert "--cfg=smpi/lat-factor:0:1" in old
    assert "--cfg=network/latency-factor:0:1" in new
    assert not any("smpi/lat-factor" in item for item in new)


@pytest.mark.parametrize(
    ("text", "parts"),
    [("dragonfly:64x4", 4), ("dragonfly:250x4", 8), ("dragonfly:127x12", 4), ("fattree:64x1", 4), ("torus:64x1", 1)],
)
def test_parts_of_the_network_that_measure_at_once(text: str, parts: int) -> None:
    cluster = parse_cluster(text)
    topology = cluster.topology()
    assert len(topology.hosts) == cluster.nodes
    assert len(set(topology.leaf)) == parts
    # Hosts of one part share its switch, those of different parts share none below the top.
    assert topology.layers_used((0, 1)) & topology.layers_used((2, 3))
    if parts > 1:
        assert not topology.layers_used((0, 1)) & topology.layers_used((cluster.nodes - 2, cluster.nodes - 1))


ENVIRONMENT = Environment("simulated", "1", "", "dragonfly:8x4", 8, 4, "single")


@pytest.mark.parametrize("collective", load_simulated().entries)
def test_the_default_is_a_candidate_wherever_it_stands_in(collective: str) -> None:
    catalogue = load_simulated()
    for nodes, ppn in ((2, 1), (3, 1), (8, 4), (6, 3), (64, 1), (1024, 1)):
        for power in range(2, 21):
            scenario = Scenario(collective, nodes, ppn, 0 if collective == "barrier" else 1 << power)
            assert catalogue.default(scenario) in catalogue.legal(scenario), scenario


def test_a_tuning_of_long_ago_is_explained() -> None:
    backend, scenario = recall_backend(ENVIRONMENT), Scenario("bcast", 8, 4, 1024)
    assert backend.describe_default(scenario, "single") == "knomial(k=2)"
    assert backend.default_equivalent(scenario, "single") not in (None, DEFAULT)
    assert "bcast" in backend.catalogue.entries


def test_without_the_study_it_is_said_what_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_study_version", lambda: "")
    with pytest.raises(InputError, match="colltune-study, which is not installed"):
        recall_backend(ENVIRONMENT)


pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
_SMALL = Pattern("constant", 8)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_cluster(tmp_path_factory.mktemp("cluster"))


def _times(
    program: Path, shape: Shape, *settings: Setting, pattern: Pattern = _SMALL, network: str = NETWORKS[0]
) -> list[Timing]:
    return list(simulate_own(program, shape, [(setting, pattern) for setting in settings], network=network))


@pytest.mark.parametrize(
    ("network", "message_s", "link"),
    [("fattree", MESSAGE_S, 12.5e9), ("dragonfly", 0.4e-6, 25e9), ("torus", 0.8e-6, 6.75e9)],
)
def test_small_blocks_take_cpu_time_for_each_message_and_large_ones_go_at_the_speed_of_a_link(
    program: Path, network: str, message_s: float, link: float
) -> None:
    for timing in _times(program, Shape(8, 4), LIBRARY, Setting("linear"), network=network):
        assert timing.time_s == pytest.approx(2 * 31 * message_s, rel=0.1)
    large = Pattern("constant", 1_000_000)
    (timing,) = _times(program, Shape(2, 4), Setting("linear"), pattern=large, network=network)
    own_block_s = 1e6 * 0.15e-9
    assert timing.time_s == pytest.approx(own_block_s + 4 * 4 * 1e6 / link, rel=0.02)


@pytest.mark.parametrize("network", NETWORKS)
def test_forwarding_pays_for_small_blocks_and_not_for_large_ones(program: Path, network: str) -> None:
    bruck, linear = Setting("parata", 2), Setting("linear")
    small = _times(program, Shape(32, 4), bruck, linear, network=network)
    large = _times(program, Shape(32, 4), bruck, linear, pattern=Pattern("constant", 8192), network=network)
    assert small[0].time_s < small[1].time_s / 2
    assert large[0].time_s > large[1].time_s


@pytest.mark.parametrize("shape", [Shape(1, 5), Shape(3, 1), Shape(5, 3), Shape(17, 2)])
def test_every_algorithm_ends_on_any_number_of_ranks(program: Path, shape: Shape) -> None:
    settings = [LIBRARY, Setting("linear", 0, 3), Setting("parata", 3, 1), Setting("hieata", 2, 2)]
    for kind in ("uniform", "sparse", "skewed"):
        timings = _times(program, shape, *settings, pattern=Pattern(kind, 9000))
        assert len(timings) == len(settings)
        assert all(timing.time_s > 0 for timing in timings)


def test_routes_speeds_and_how_far_nodes_are_apart_are_told_apart(program: Path) -> None:
    networks = ("torus", "torus,torus", "torus,fattree", "torus,torus,5", "fattree,torus")
    (own,), (twice,), (faster,), (apart,), (tree,) = (
        _times(program, Shape(16, 2), Setting("parata", 2), network=network) for network in networks
    )
    assert own.time_s == twice.time_s < apart.time_s  # more links on the way
    assert faster.time_s < own.time_s != tree.time_s
    assert not _times(program, Shape(4, 2), LIBRARY, network="torus,hypercube")
    assert not _times(program, Shape(4, 2), LIBRARY, network="torus,torus,0")


@pytest.mark.parametrize(("name", "words"), [("path_finding", "random 200 2 check"), ("k_core", "rmat 512 2 check")])
def test_a_whole_program_runs_on_the_simulated_cluster(tmp_path: Path, name: str, words: str) -> None:
    """It finds what it finds serially by every algorithm, and every rank has variables of its own."""
    built = compile_program(tmp_path, Path(__file__).parents[2] / "examples" / f"{name}.c")
    answers, times = set(), {}
    for algorithm in ("", "linear", "parata", "hieata"):
        table = tmp_path / f"{algorithm}.rules" if algorithm else None
        if table is not None:
            rule = AlltoallvRule(0, 1 << 40, Setting(algorithm, 2, direct_above=4096), tuple(range(len(FILLS))))
            save_table(table, [TableEntry((3, 64), (1, 64), (rule,))], {})
        answer, seconds, said = simulate_program(built, Shape(5, 3), "fattree", words.split(), table).splitlines()
        assert said.endswith("the same"), said
        answers.add(answer)
        times[algorithm] = dict(zip(seconds.split()[::2], map(float, seconds.split()[1::2]), strict=True))
    assert len(answers) == 1
    assert all(0 < one["alltoallv_s"] < one["total_s"] < 1 for one in times.values())
    assert len({one["alltoallv_s"] for one in times.values()}) == len(times)


def test_a_program_that_fails_and_a_compiler_that_is_not_there_say_so(tmp_path: Path) -> None:
    built = compile_program(tmp_path, Path(__file__).parents[2] / "examples" / "k_core.c")
    with pytest.raises(InputError, match="no graph is called star"):
        simulate_program(built, Shape(2, 2), "fattree", ["star", "9"])
    with pytest.raises(InputError, match=r"none\.rules: it cannot be read"):
        simulate_program(built, Shape(2, 2), "fattree", ["grid", "9"], tmp_path / "none.rules")
    with pytest.raises(InputError, match="no-such-cc cannot be run"):
        compile_cluster(tmp_path, "no-such-cc")


def test_a_figure_of_all_networks_is_that_of_the_worst() -> None:
    found = {
        "torus": {"speedup_median": 3.0, "model_regret": 0.01, "model_regret_worst": 0.2},
        "dragonfly": {"speedup_median": 5.0, "model_regret": 0.04, "model_regret_worst": 0.1},
    }
    figures = figures_of_all(found)
    assert figures["dragonfly_speedup_median"] == 5.0
    assert (figures["speedup_median"], figures["model_regret"], figures["model_regret_worst"]) == (3.0, 0.04, 0.2)


_SOURCE = Path(__file__).parents[2] / "benchmarks" / "native" / "alltoallv_cluster" / "routes.c"
_MOST = 64
_NODES = (2, 5, 16, 33, 64, 100)
_ROUTE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 3, ctypes.POINTER(ctypes.c_int))


class _Network(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("constants", ctypes.c_double * 5),
        ("links", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)),
        ("route", _ROUTE),
    )


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(shared(_SOURCE)))
    found.ct_network_find.restype = ctypes.POINTER(_Network)
    found.ct_network_find.argtypes = [ctypes.c_char_p]
    return found


def _routes(library: ctypes.CDLL, network: str, nodes: int) -> tuple[dict[tuple[int, int], list[int]], int]:
    """The links from each node to each other one, and how many links there are."""
    kind = library.ct_network_find(network.encode()).contents
    found, links = {}, (ctypes.c_int * _MOST)()
    for pair in permutations(range(nodes), 2):
        count = kind.route(nodes, *pair, links)
        found[pair] = list(links[:count])
    return found, kind.links(nodes)


@pytest.mark.parametrize("nodes", _NODES)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_route_takes_links_that_there_are_from_card_to_card(library: ctypes.CDLL, network: str, nodes: int) -> None:
    """None of them twice; nodes of a torus have no cards beside its links."""
    routes, links = _routes(library, network, nodes)
    for (source, target), route in routes.items():
        assert route
        assert len(set(route)) == len(route)
        assert all(0 <= link < links for link in route)
        assert network == "torus" or (route[0], route[-1]) == (source, nodes + target)


@pytest.mark.parametrize(("nodes", "sides"), [(2, (2, 1, 1)), (16, (4, 2, 2)), (64, (4, 4, 4)), (100, (8, 4, 4))])
def test_a_torus_goes_the_shortest_way(library: ctypes.CDLL, nodes: int, sides: tuple[int, int, int]) -> None:
    def place(node: int) -> tuple[int, int, int]:
        return node % sides[0], node // sides[0] % sides[1], node // sides[0] // sides[1]

    for (source, target), route in _routes(library, "torus", nodes)[0].items():
        at = list(place(source))
        for link in route:
            node, dimension, up = link // 6, link // 2 % 3, link % 2
            assert place(node) == tuple(at)
            at[dimension] = (at[dimension] + (1 if up else -1)) % sides[dimension]
        assert tuple(at) == place(target)
        apart = [abs(a - b) for a, b in zip(place(source), place(target), strict=True)]
        assert len(route) == sum(min(far, side - far) for far, side in zip(apart, sides, strict=True))


@pytest.mark.parametrize(("nodes", "groups"), [(16, 1), (64, 2), (128, 4)])
def test_a_dragonfly_leaves_a_group_once_and_shares_links_evenly(library: ctypes.CDLL, nodes: int, groups: int) -> None:
    routes, links = _routes(library, "dragonfly", nodes)
    first = links - 32 * groups  # of the links between groups
    used: Counter[int] = Counter()
    for (source, target), route in routes.items():
        outside = [link for link in route if link >= first]
        used.update(outside)
        assert len(route) <= 5
        assert [(link - first) // 32 for link in outside] == [source // 32] * (source // 32 != target // 32)
    whole = [used[link] for link in range(first, first + 32)]  # the first group has all of its nodes
    if groups > 1:
        assert min(whole) > 0
        assert max(whole) <= 3 * min(whole)
