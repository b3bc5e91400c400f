"""Clusters that exist only in a simulation: ``dragonfly:64x4`` as text, as a value, and as SimGrid's platform file."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from math import ceil, prod
from random import Random
from typing import Any

from colltune.core.errors import InputError
from colltune.core.topology import Top, Topology

MOST_NODES = 1024
_EXAMPLE = "Write for example dragonfly:64x4, or fattree:64x16,taper=0.5,latency_ns=200"


@dataclass(frozen=True)
class SimulatedCluster:
    """``nodes`` x ``ppn`` ranks on a network of ``kind``.

    ``bandwidth_gbit``: of a node's link and of every other link of which there are not several. ``latency_ns``: of
    one link; a message crosses several. ``overhead_ns``: what a rank spends on sending a message, and on receiving
    one. ``taper``: of what the nodes below a switch (of a group, in a dragonfly) can inject, the share that can leave
    it. ``memory_gbyte``: bandwidth in 10^9 bytes per second of a copy, of a reduction and between two ranks of a
    node. ``memory_ns``: latency between two ranks of a node. ``eager_bytes``: up to this size a message does not wait
    for its receiver. ``placement``: 0 takes neighbouring nodes, any other number nodes at random, drawn by it.
    """

    kind: str
    nodes: int
    ppn: int
    bandwidth_gbit: float
    latency_ns: float
    overhead_ns: float
    taper: float = 0.5
    memory_gbyte: float = 10.0
    memory_ns: float = 250.0
    eager_bytes: int = 8192
    placement: int = 0

    @property
    def text(self) -> str:
        """The shortest text that parses to this cluster."""
        preset = KINDS[self.kind].preset
        differing = [
            f",{field.name}={getattr(self, field.name):g}"
            for field in fields(self)
            if field.name not in ("kind", "nodes", "ppn") and getattr(self, field.name) != getattr(preset, field.name)
        ]
        return f"{self.kind}:{self.nodes}x{self.ppn}{''.join(differing)}"

    def platform(self) -> str:
        """SimGrid's description of the whole network, in XML."""
        total, attributes = KINDS[self.kind].layout(self)
        memory = f'loopback_bw="{self.memory_gbyte}GBps" loopback_lat="{self.memory_ns}ns"'
        links = f'bw="{self.bandwidth_gbit / 8}GBps" lat="{self.latency_ns}ns"'
        return (
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            '<platform version="4.1"><zone id="world" routing="Full">\n'
            f'<cluster id="c" prefix="n" suffix="" radical="0-{total - 1}" speed="1Gf" '
            f"{links} {attributes} {memory}/>\n"
            "</zone></platform>\n"
        )

    def topology(self) -> Topology:
        """What of the job's nodes can measure at once: groups of a dragonfly, leaf switches of a fat tree.

        On the other networks points are measured one after another.
        """
        hosts = self._hosts(self.nodes)
        names = [f"n{host}" for host in hosts]
        width, top = KINDS[self.kind].part(self)
        if width is None:
            return Topology.serial(names)
        return Topology.from_paths(names, [(f"part{host // width}",) for host in hosts], top)

    def _hosts(self, nodes: int) -> list[int]:
        """Where the first ``nodes`` nodes are in the network."""
        total, _ = KINDS[self.kind].layout(self)
        hosts = list(range(total))
        if self.placement:
            Random(self.placement).shuffle(hosts)
        return hosts[:nodes]

    def host_file(self, nodes: int, ppn: int) -> str:
        """The hosts of the ranks of a job on the first ``nodes`` nodes, one line for each rank."""
        return "".join(f"n{host}\n" * ppn for host in self._hosts(nodes))


@dataclass(frozen=True)
class _Kind:
    """``layout``: how many hosts the network has, those beyond the cluster's nodes included, and its XML attributes.

    ``part``: how many hosts have switches of their own, None where none have, and what is above these.
    """

    preset: SimulatedCluster
    layout: Callable[[SimulatedCluster], tuple[int, str]]
    part: Callable[[SimulatedCluster], tuple[int | None, Top]] = lambda _cluster: (None, Top.ALONE)


def _dragonfly_shape(cluster: SimulatedCluster) -> tuple[int, int, int, int]:
    """Groups, chassis of a group, routers of a chassis, hosts of a router.

    SimGrid's routes are right only if there are no more groups than routers in a chassis.
    """
    for shape in (
        (2, 1, 2, 2),
        (2, 1, 2, 4),
        (2, 2, 2, 4),
        (4, 1, 4, 4),
        (4, 2, 4, 4),
        (8, 1, 8, 4),
        (8, 2, 8, 4),
        (8, 4, 8, 4),
    ):
        if prod(shape) >= cluster.nodes:
            break
    return shape


def _dragonfly(cluster: SimulatedCluster) -> tuple[int, str]:
    """Groups of chassis of routers of nodes; one path between two groups, of as many links as the taper asks for."""
    groups, chassis, routers, hosts = _dragonfly_shape(cluster)
    total = groups * chassis * routers * hosts
    between = max(1, round(cluster.taper * total / groups / (groups - 1)))
    return total, f'topology="DRAGONFLY" topo_parameters="{groups},{between};{chassis},2;{routers},1;{hosts}"'


def _dragonfly_part(cluster: SimulatedCluster) -> tuple[int | None, Top]:
    return prod(_dragonfly_shape(cluster)[1:]), Top.CROSSBAR


def _leaf_switch(cluster: SimulatedCluster) -> int:
    return 32 if cluster.nodes >= 512 else min(16, cluster.nodes)


def _fat_tree_part(cluster: SimulatedCluster) -> tuple[int | None, Top]:
    return _leaf_switch(cluster), Top.SHARED


def _fat_tree(cluster: SimulatedCluster) -> tuple[int, str]:
    """Leaf switches of 16 nodes (32 from 512 nodes on) below a layer of switches that each leaf is connected to."""
    leaf = _leaf_switch(cluster)
    leaves = ceil(cluster.nodes / leaf)
    if leaves == 1:
        return leaf, f'topology="FAT_TREE" topo_parameters="1;{leaf};1;1"'
    up = max(1, round(cluster.taper * leaf))
    return leaf * leaves, f'topology="FAT_TREE" topo_parameters="2;{leaf},{leaves};1,{up};1,1"'


def _torus(cluster: SimulatedCluster) -> tuple[int, str]:
    """Three dimensions, as equal as powers of two allow."""
    sides = [2, 2, 2]
    while sides[0] * sides[1] * sides[2] < cluster.nodes:
        sides[sides.index(min(sides))] *= 2
    return sides[0] * sides[1] * sides[2], f'topology="TORUS" topo_parameters="{",".join(map(str, sides))}"'


def _star(cluster: SimulatedCluster) -> tuple[int, str]:
    """One switch that carries, of what all nodes can inject, the share ``taper`` at once."""
    backbone = max(1.0, cluster.taper * cluster.nodes) * cluster.bandwidth_gbit / 8
    return cluster.nodes, f'bb_bw="{backbone}GBps" bb_lat="{cluster.latency_ns}ns"'


KINDS: dict[str, _Kind] = {
    kind.preset.kind: kind
    for kind in (
        _Kind(SimulatedCluster("dragonfly", 0, 0, 200, 150, 400), _dragonfly, _dragonfly_part),
        _Kind(SimulatedCluster("fattree", 0, 0, 100, 300, 300), _fat_tree, _fat_tree_part),
        _Kind(SimulatedCluster("torus", 0, 0, 54, 100, 800, memory_gbyte=20.0), _torus),
        _Kind(SimulatedCluster("ethernet", 0, 0, 10, 2500, 2000, memory_gbyte=5.0, memory_ns=400), _star),
    )
}
_SPEC = re.compile(r"(?P<kind>[a-z]+):(?P<nodes>\d{1,9})x(?P<ppn>\d{1,9})(?P<rest>(?:,[a-z_]+=[^,=]+)*)")


def parse_cluster(text: str) -> SimulatedCluster:
    """``"dragonfly:64x4"``, and any of the cluster's quantities after commas. Raises InputError."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise InputError(f"cannot read the simulated cluster {text!r}", _EXAMPLE)
    if match["kind"] not in KINDS:
        raise InputError(f"there is no simulated network {match['kind']!r}", f"There are {', '.join(KINDS)}")
    cluster = replace(KINDS[match["kind"]].preset, nodes=int(match["nodes"]), ppn=int(match["ppn"]))
    for item in filter(None, match["rest"].split(",")):
        name, _, value = item.partition("=")
        cluster = _with(cluster, name, value, text)
    if not 2 <= cluster.nodes <= MOST_NODES or not 1 <= cluster.ppn <= 64:
        raise InputError(
            f"{text}: a simulated cluster has 2 to {MOST_NODES:,} nodes and 1 to 64 ranks per node", _EXAMPLE
        )
    return cluster


def _with(cluster: SimulatedCluster, name: str, value: str, text: str) -> SimulatedCluster:
    known = [field.name for field in fields(cluster) if field.name not in ("kind", "nodes", "ppn")]
    if name not in known:
        raise InputError(f"{text}: a simulated cluster has no {name!r}", f"It has {', '.join(known)}")
    try:
        number = int(value) if name in ("eager_bytes", "placement") else float(value)
    except ValueError:
        raise InputError(f"{text}: {name}={value} is not a number", _EXAMPLE) from None
    least = 0 if name in ("eager_bytes", "placement") else 1e-3
    if not least <= number <= 1e9 or (name == "taper" and number > 1.0):
        raise InputError(f"{text}: {name}={value} is out of range", _EXAMPLE)
    changed: dict[str, Any] = {name: number}
    return replace(cluster, **changed)
