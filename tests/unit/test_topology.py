"""The tree of layers: from the files that sites have, and where the user names none."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.hostlist import expand_hostlist
from colltune.core.topology import Switch, Top, Topology
from colltune.mpi.job import find_job
from colltune.schedule.topology_files import (
    load_topology,
    parse_plain,
    parse_scheme,
    parse_slurm_conf,
    parse_slurm_yaml,
    shipped_schemes,
)
from colltune.schedule.topology_sources import find_topology
from commands import shell_script
from packer_laws import random_tree, switches_between
from packing import tree_order


@pytest.mark.parametrize("seed", range(60))
def test_layers_used_are_the_switches_between_the_nodes(seed: int) -> None:
    generator = random.Random(seed)
    topology = random_tree(generator)
    for _ in range(20):
        nodes = generator.sample(range(len(topology.hosts)), generator.randint(1, min(6, len(topology.hosts))))
        assert topology.layers_used(nodes) == switches_between(topology, nodes)


@pytest.mark.parametrize("seed", range(20))
def test_tree_order_keeps_every_switch_together_and_the_job_order_else(seed: int) -> None:
    topology = random_tree(random.Random(seed))
    assert sorted(tree_order(topology)) == list(range(len(topology.hosts)))
    for switch in range(len(topology.switches)):
        below = [switch in topology.paths[topology.leaf[host]] for host in tree_order(topology)]
        assert 0 not in below[below.index(True) : len(below) - below[::-1].index(True)], "strangers in between"
    paths = [("g1", "c0"), ("g0", "c0"), ("g1", "c1"), ("g0", "c0"), ("g1", "c0")]
    assert tree_order(Topology.from_paths("abcde", paths, Top.SHARED)) == (0, 4, 2, 1, 3)


@pytest.mark.parametrize(
    ("switches", "leaf"),
    [((), ()), ((Switch("", 0),), (0,)), ((Switch("", -1), Switch("a", 1)), (0,)), ((Switch("", -1),), (1,))],
)
def test_what_is_no_tree(switches: tuple[Switch, ...], leaf: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="switch"):
        Topology(("a",), switches, leaf)


FOUR_HOSTS = tuple(expand_hostlist("n[1-4]"))
# As Slurm 22.05 prints a tree, and as topology/block does from 23.11 on.
TREE = """\
SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]
"""
BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2
BlockName=b2 BlockIndex=1 Nodes=n[3-4] BlockSize=2
AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4
"""
DRAGONFLY = "Configuration data as of 2026-11-26\nTopologyParam           = Dragonfly,SwitchAsNodeRank\n"
POLARIS = ("x3201c0s31b1n0", "x3202c0s13b0n0", "x3204c0s7b1n0", "x3204c0s7b1n1")

ADDRESSES = "ss[0-1].s1.n3\nss[0-1].s0.n1\nss[0-1].s0.n2\nss[0-1].s1.n4\n"
PARTITION = "PartitionName=gpu\n   AllowGroups=ALL Topology=second MaxTime=UNLIMITED\n"
# As LSF 10.1 prints them, all hosts of each unit: enclosures in racks.
UNITS = """\
NAME             TYPE        HOSTS
encl1            enclosure   n1
rack1            rack        n1 n2
encl2            enclosure   n2
encl3            enclosure   n3 n4
rack2            rack        n3 n4
"""

Scontrol = Callable[..., Mapping[str, str]]


@pytest.fixture
def scontrol(tmp_path: Path) -> Scontrol:
    """An environment whose scontrol, srun and bmgroup say these texts, by their last word, and fail with ``code``."""

    def made(topology: str = "", config: str = "", code: int = 0, **texts: str) -> Mapping[str, str]:
        for name, text in {"topology": topology, "config": config, **texts}.items():
            (tmp_path / name).write_text(text)
        for name in ("scontrol", "srun", "bmgroup"):
            said = f'[ ! -f "{tmp_path}/$last" ] || cat "{tmp_path}/$last"\nexit {code}'
            shell_script(tmp_path / name, f'for last; do :; done\n[ -z "$SLURM_TOPO_LEN" ] || exit 1\n{said}')
        return {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CONF": str(tmp_path / "slurm.conf"), "SLURM_TOPO_LEN": "20"}

    return made


# The groups of a dragonfly have links between all of them.
@pytest.mark.parametrize(
    ("text", "config", "above"),
    [(TREE, "", "shared"), (BLOCKS, "", "shared"), (TREE.rpartition("SwitchName=top")[0], DRAGONFLY, "crossbar")],
)
def test_slurm_tells_its_switches(scontrol: Scontrol, text: str, config: str, above: str) -> None:
    topology, line = find_topology(FOUR_HOSTS, scontrol(text, config), "slurm")
    assert topology.leaf[0] == topology.leaf[1] != topology.leaf[2] == topology.leaf[3]
    assert topology.top is Top[above.upper()]
    assert line == f"topology: scontrol show topology (2 parts, {above} above them)"
    assert find_topology(FOUR_HOSTS[:1], scontrol(text), "slurm")[1] == ""  # a single node has none to speak of


def test_a_file_beside_slurm_conf_goes_first_of_a_dragonfly_too(scontrol: Scontrol, tmp_path: Path) -> None:
    environment = scontrol(TREE)
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[2-4]\n")
    topology, line = find_topology(FOUR_HOSTS, environment, "slurm")
    assert topology.leaf[1] == topology.leaf[3] != topology.leaf[0]
    assert str(tmp_path / "topology.conf") in line
    assert find_topology(FOUR_HOSTS, scontrol(config=DRAGONFLY), "slurm")[0].top is Top.CROSSBAR


def test_a_partition_has_a_topology_of_its_own(scontrol: Scontrol, tmp_path: Path) -> None:
    blocks = TREE.replace("n[1-2]", "n[1-3]").replace("n[3-4]", "n4")
    environment = {**scontrol(TREE, gpu=PARTITION, second=blocks), "SLURM_JOB_PARTITION": "gpu"}
    of_first = {**environment, "SLURM_JOB_PARTITION": "cpu", "SLURM_JOB_PARTITION_HET_GROUP_0": "gpu"}
    assert find_topology(FOUR_HOSTS, of_first, "slurm") == find_topology(FOUR_HOSTS, environment, "slurm")
    topology, line = find_topology(FOUR_HOSTS, environment, "slurm")
    assert topology.leaf[1] == topology.leaf[2] != topology.leaf[3]
    assert line.startswith("topology: scontrol show topology second (2 parts")
    trees = (f"- topology: {name}\n  tree:\n    switches: [{{switch: a, nodes: '{a}'}}, {{switch: b, nodes: '{b}'}}]\n"
             for name, a, b in (("first", "n1", "n[2-4]"), ("second", "n[1-3]", "n4")))  # fmt: skip
    (tmp_path / "topology.yaml").write_text("".join(trees))
    topology, line = find_topology(FOUR_HOSTS, environment, "slurm")
    assert topology.leaf[1] == topology.leaf[2] != topology.leaf[3]
    assert line.startswith(f"topology: {tmp_path / 'topology.yaml'} (2 parts")


def test_addresses_of_all_nodes_tell_where_scontrol_does_not(scontrol: Scontrol) -> None:
    environment = {**scontrol(SLURM_TOPOLOGY_ADDR=ADDRESSES), "SLURM_TOPOLOGY_ADDR_PATTERN": "switch.switch.node"}
    topology, line = find_topology(FOUR_HOSTS, environment, "slurm")
    assert layers(topology) == {
        **dict.fromkeys(["n1", "n2"], ("ss[0-1]", "s0")),
        **dict.fromkeys(["n3", "n4"], ("ss[0-1]", "s1")),
    }
    assert line == "topology: SLURM_TOPOLOGY_ADDR of all nodes (2 parts, shared above them)"
    flat = {**environment, "SLURM_TOPOLOGY_ADDR_PATTERN": "node"}
    assert find_topology(FOUR_HOSTS, flat, "slurm")[0].top is Top.ALONE


def test_compute_units_of_lsf(scontrol: Scontrol, tmp_path: Path) -> None:
    environment = scontrol(**{"-w": UNITS})
    topology, line = find_topology(FOUR_HOSTS, environment, "lsf")
    assert layers(topology) == {
        "n1": ("rack1", "encl1"), "n2": ("rack1", "encl2"), "n3": ("encl3", "rack2"), "n4": ("encl3", "rack2")
    }  # fmt: skip
    assert line == "topology: bmgroup -cu -r -w (3 parts, shared above them)"
    assert "does not know 1 of the job's hosts: other" in find_topology(["n1", "other"], environment, "lsf")[1]
    (tmp_path / "-w").unlink()
    assert "LSF knows no compute units here" in find_topology(FOUR_HOSTS, environment, "lsf")[1]


@pytest.mark.parametrize(
    ("name", "resources", "line"),
    [
        ("slurm-batch", None, "serial, because scontrol show topology tells no switches; no scheme of host names"),
        ("pbs", None, "serial, because PBS hands a job hosts, and no switches; by host names as on aurora all nodes"),
        ("pbs-one-line", None, "serial, because PBS hands a job hosts, and no switches; by host names as on"),
        ("lsf", None, "serial, because LSF knows no compute units here; no scheme of host names"),
        ("flux", "flux.resources", "serial, because Flux knows nodes and cores, and no switches; no scheme of host"),
        ("laptop", None, ""),
    ],
)
def test_the_job_of_each_scheduler_says_where_its_topology_is_from(
    name: str, resources: str | None, line: str, tmp_path: Path
) -> None:
    jobs = RECORDED.with_name("jobs")
    text = (jobs / f"{name}.env").read_text().replace("@HERE@", str(jobs))
    environment = {**dict(item.split("=", 1) for item in text.splitlines()), "PATH": str(tmp_path)}
    job = find_job(environment, flux_resources=resources and (jobs / resources).read_text())
    found = find_topology(job.names, environment, str(job.scheduler))[1]
    assert found.removeprefix("topology: ").startswith(line)
    assert bool(found) == bool(line)


def test_names_of_hosts_tell_where_no_scheduler_does(scontrol: Scontrol) -> None:
    topology, line = find_topology(POLARIS, scontrol(TREE), "pbs")
    assert topology.top is Top.CROSSBAR
    assert len(set(topology.leaf)) == 3
    assert line == "topology: host names as on polaris (3 parts, crossbar above them)"


@pytest.mark.parametrize(
    ("shown", "code", "hosts", "reason"),
    [
        (TREE, 1, FOUR_HOSTS, "scontrol show topology tells no switches; no scheme of host names"),
        ("", 0, FOUR_HOSTS, "scontrol show topology tells no switches"),
        ("RingName=r1 Nodes=n[1-4] RingSize=4\n", 0, FOUR_HOSTS, "scontrol show topology tells no switches"),
        (TREE, 0, FOUR_HOSTS[:2], "by scontrol show topology all nodes hang on one switch"),
        (TREE, 0, ("n1", "other"), "scontrol show topology does not know 1 of the job's hosts: other"),
        ("SwitchName=a Nodes=n[1-\n", 0, FOUR_HOSTS, "host list"),
    ],
)
def test_serial_with_the_reason(scontrol: Scontrol, shown: str, code: int, hosts: tuple[str, ...], reason: str) -> None:
    topology, line = find_topology(hosts, scontrol(shown, code=code), "slurm")
    assert topology.top is Top.ALONE
    assert line.startswith("topology: serial, because ")
    assert reason in line
    assert line.endswith("; --topology names another")


RECORDED = Path(__file__).parents[1] / "recorded" / "topologies"
HOSTS = expand_hostlist("n[01-08],login")


def layers(topology: Topology) -> dict[str, tuple[str, ...]]:
    """Host -> names of the layers above it, the greatest first."""
    ways = (topology.paths[leaf] for leaf in topology.leaf)
    names = [tuple(topology.switches[switch].name for switch in reversed(way[:-1])) for way in ways]
    return {host.partition(".")[0]: path for host, path in zip(topology.hosts, names, strict=True)}


@pytest.mark.parametrize("name", ["topology.conf", "topology.yaml"])
def test_slurms_tree(name: str) -> None:
    topology = load_topology(str(RECORDED / name), HOSTS)
    assert topology.top is Top.SHARED
    assert layers(topology) == {
        **dict.fromkeys(HOSTS[:4], ("core", "spine", "s0")),
        **dict.fromkeys((*HOSTS[4:6], "login"), ("core", "spine", "s1")),
        **dict.fromkeys(HOSTS[6:8], ("core", "s2")),
    }


def test_slurms_blocks() -> None:
    topology = load_topology(str(RECORDED / "topology-block.conf"), HOSTS[:8])
    assert layers(topology) == {**dict.fromkeys(HOSTS[:4], ("b1",)), **dict.fromkeys(HOSTS[4:8], ("b2",))}
    text = (RECORDED / "topology.yaml").read_text().replace("cluster_default: true", "cluster_default: false")
    assert parse_slurm_yaml(text, "x")["n05"] == ("b2",), "without a default, the first one counts"


def test_a_plain_file() -> None:
    topology = load_topology(str(RECORDED / "plain.txt"), HOSTS)
    assert topology.top is Top.CROSSBAR
    assert layers(topology)["n05"] == ("g0", "c1")
    assert layers(topology)["n08"] == ("g1",)
    # Full names are found by their short ones.
    assert layers(load_topology(str(RECORDED / "plain.txt"), ["n01.site.org", "n08"])) == {
        "n01": ("g0", "c0"), "n08": ("g1",)
    }  # fmt: skip


def test_polaris() -> None:
    topology = load_topology("polaris", (RECORDED / "polaris.hosts").read_text().split())
    assert topology.top is Top.CROSSBAR
    assert layers(topology) == {
        "x3201c0s31b1n0": ("group 800", "rack 3201"),
        "x3201c0s37b0n0": ("group 800", "rack 3201"),
        "x3202c0s13b0n0": ("group 800", "rack 3202"),
        "x3204c0s7b1n0": ("group 801", "rack 3204"),
        "x3002c0s1b0n0": ("group 750", "rack 3002"),
        "x3003c0s13b0n0": ("group 750", "rack 3003"),
        "x3006c0s13b1n0": ("group 751", "rack 3006"),
    }


def test_aurora() -> None:
    topology = load_topology("aurora", (RECORDED / "aurora.hosts").read_text().split())
    assert layers(topology) == {
        "x4407c5s4b0n0": ("group 4407", "chassis 5"),
        "x4407c5s5b0n0": ("group 4407", "chassis 5"),
        "x4407c6s0b0n0": ("group 4407", "chassis 6"),
        "x4408c5s4b0n0": ("group 4408", "chassis 5"),
        "x4408c5s7b0n0": ("group 4408", "chassis 5"),
    }
    assert topology.leaf[0] != topology.leaf[3], "chassis 5 of two groups are two chassis"


def test_serial_and_the_shipped_ones() -> None:
    topology = load_topology("serial", HOSTS)
    assert topology == Topology.serial(HOSTS)
    assert topology.layers_used([0]) == topology.layers_used([1]) == {0}
    assert shipped_schemes() == ("aurora", "polaris")


BAD = [
    (parse_slurm_conf, "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2", "n2 is below both a and b"),
    (parse_slurm_conf, "SwitchName=a Switches=c\nSwitchName=b Switches=c", "c is below both a and b"),
    (parse_slurm_conf, "SwitchName=a Switches=b Nodes=n1\nSwitchName=b Switches=a", "above itself"),
    (parse_slurm_conf, "SwitchName=a Nodes=n[1-", "host list"),
    (parse_slurm_conf, "Nodes=n1", "line 1"),
    (parse_slurm_conf, "\n\nSwitchName=a Colour=red", "line 3"),
    (parse_slurm_yaml, "", "not a list"),
    (parse_slurm_yaml, "a: b", "not a list"),
    (parse_slurm_yaml, "- topology: x\n  flat: true", "neither switches nor blocks"),
    (parse_slurm_yaml, "- topology: x\n  tree:\n    switches:\n      - nodes: n1", "cannot read the switch of a"),
    (parse_slurm_yaml, "- topology: x\n  tree:\n    switches:\n      - switch: a\n     nodes: n1", "line 5"),
    (parse_slurm_yaml, "- topology: x\n\ttree: y", "line 2"),
    (parse_slurm_yaml, "- topology: *x\n", "line 1"),
    (parse_slurm_yaml, "[" * 5000, "cannot read it"),
    # Aliases that stand for 10^9 texts cost nothing.
    (parse_slurm_yaml, "- &a [x, x, x, x, x, x, x, x, x, x]\n"
     + "".join(f"- &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8))
     + "- tree:\n    switches:\n      - {switch: s, nodes: *i}\n", "neither switches|the nodes of a switch"),
    *((parse_plain, text, ".") for text in (
        "n1", "a/: n1", ": n1", "a:", "a: n[1-", "top: sideways", "a: n1\nb: n1", "a//b: n1")),
    *((parse_scheme, text, "mine") for text in (
        "", "host = '('\nlayers = [{name = 'a'}]", "host = '(?P<a>x)'", "host = '(?P<a>x)'\nlayers = [{name = 'b'}]",
        "host = '(?P<a>x)'\nlayers = [{name = 'a', divide = 0}]", "host = '(?P<a>x)'\ntop = 'side'\nlayers = []",
        "host = 3\nlayers = []", "host = 'x'\nlayers = [3]", "not toml")),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "says"), BAD)
def test_a_file_that_is_no_tree_is_refused(parse: Callable[[str, str], object], text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse(text, "mine")


@pytest.mark.parametrize(
    ("name", "hosts", "says"),
    [
        (str(RECORDED / "plain.txt"), ["n01", "x1", "x2", "x3", "x4"], r"does not know 4 of the .* x1, x2, x3 \.\.\."),
        (str(RECORDED / "nothing.conf"), ["n01"], "cannot read the topology .* serial, aurora, polaris"),
        ("aurora", ["nid001"], "nid001 does not match the scheme"),
    ],
)
def test_hosts_or_files_that_are_not_there(name: str, hosts: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_topology(name, hosts)


def test_a_new_system_is_a_few_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        "host = 'c(?P<row>[a-z])(?P<number>\\d+)'\nlayers = [{name='row'}, {name='switch', part='number', divide=16}]\n"
    )
    topology = load_topology(str(tmp_path / "mine.toml"), ["ca15", "ca16", "cb3"])
    assert topology.top is Top.SHARED
    found = {"ca15": ("row a", "switch 0"), "ca16": ("row a", "switch 1"), "cb3": ("row b", "switch 0")}
    assert layers(topology) == found
