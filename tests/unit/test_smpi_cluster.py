"""Simulated clusters as text and as SimGrid's platform, their catalogue, and what is said of a tuning of one."""

import xml.etree.ElementTree as ET

import pytest

from colltune.bench.backends import recall_backend
from colltune.core import extras
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Environment, Scenario
from colltune_study.simulated.simulated_catalogue import load_simulated
from colltune_study.simulated.smpi_cluster import KINDS, parse_cluster
from colltune_study.simulated.smpi_process import settings


@pytest.mark.parametrize("text", ["dragonfly:64x4", "fattree:64x16,taper=0.25", "torus:5x1,latency_ns=50,placement=7"])
def test_text_and_value_are_the_same(text: str) -> None:
    assert parse_cluster(text).text == text
    assert parse_cluster(parse_cluster(text).text) == parse_cluster(text)


def test_values_that_are_the_network_s_own_are_not_repeated() -> None:
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
    assert backend.twin(scenario, "single") not in (None, DEFAULT)
    assert "bcast" in backend.catalogue.entries


def test_without_the_study_it_is_said_what_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_study_version", lambda: "")
    with pytest.raises(InputError, match="colltune-study, which is not installed"):
        recall_backend(ENVIRONMENT)
