"""Where the topology of a job is from when the user names none."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from colltune.core.hostlist import expand_hostlist
from colltune.core.topology import Top
from colltune.schedule.found_topology import find_topology

HOSTS = tuple(expand_hostlist("n[1-4]"))
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

Scontrol = Callable[..., Mapping[str, str]]


@pytest.fixture
def scontrol(tmp_path: Path) -> Scontrol:
    """An environment whose scontrol shows these texts, and fails with ``code``."""

    def made(topology: str = "", config: str = "", code: int = 0) -> Mapping[str, str]:
        for name, text in (("topology", topology), ("config", config)):
            (tmp_path / name).write_text(text)
        program = tmp_path / "scontrol"
        program.write_text(f'#!/bin/sh\n[ -z "$SLURM_TOPO_LEN" ] && cat "{tmp_path}/$2"\nexit {code}\n')
        program.chmod(0o755)
        return {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_CONF": str(tmp_path / "slurm.conf"), "SLURM_TOPO_LEN": "20"}

    return made


@pytest.mark.parametrize("text", [TREE, BLOCKS])
def test_slurm_tells_its_switches(scontrol: Scontrol, text: str) -> None:
    topology, line = find_topology(HOSTS, scontrol(text), slurm=True)
    assert topology.leaf[0] == topology.leaf[1] != topology.leaf[2] == topology.leaf[3]
    assert topology.top is Top.SHARED
    assert line == "topology: scontrol show topology (2 parts, shared above them)"


def test_a_dragonfly_of_slurm_has_links_between_all_groups(scontrol: Scontrol) -> None:
    topology, line = find_topology(HOSTS, scontrol(TREE.rpartition("SwitchName=top")[0], DRAGONFLY), slurm=True)
    assert topology.top is Top.CROSSBAR
    assert "crossbar above them" in line


def test_a_file_beside_slurm_conf_goes_first(scontrol: Scontrol, tmp_path: Path) -> None:
    environment = scontrol(TREE)
    (tmp_path / "topology.conf").write_text("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[2-4]\n")
    topology, line = find_topology(HOSTS, environment, slurm=True)
    assert topology.leaf[1] == topology.leaf[3] != topology.leaf[0]
    assert str(tmp_path / "topology.conf") in line


def test_names_of_hosts_tell_where_no_scheduler_does(scontrol: Scontrol) -> None:
    topology, line = find_topology(POLARIS, scontrol(TREE), slurm=False)
    assert topology.top is Top.CROSSBAR
    assert len(set(topology.leaf)) == 3
    assert line == "topology: host names as on polaris (3 parts, crossbar above them)"


@pytest.mark.parametrize(
    ("shown", "code", "hosts", "reason"),
    [
        (TREE, 1, HOSTS, "scontrol, which knows Slurm's topology, does not answer; no scheme of host names"),
        ("", 0, HOSTS, "Slurm knows no switches here"),
        (TREE, 0, HOSTS[:2], "by scontrol show topology all nodes hang on one switch"),
        (TREE, 0, ("n1", "other"), "scontrol show topology does not know 1 of the job's hosts: other"),
        ("SwitchName=a Nodes=n[1-\n", 0, HOSTS, "host list"),
    ],
)
def test_serial_with_the_reason(scontrol: Scontrol, shown: str, code: int, hosts: tuple[str, ...], reason: str) -> None:
    topology, line = find_topology(hosts, scontrol(shown, code=code), slurm=True)
    assert topology.top is Top.ALONE
    assert line.startswith("topology: serial, because ")
    assert reason in line
    assert line.endswith("; --topology names another")


def test_a_single_node_has_no_topology_to_speak_of(scontrol: Scontrol) -> None:
    assert find_topology(HOSTS[:1], scontrol(TREE), slurm=True)[1] == ""
