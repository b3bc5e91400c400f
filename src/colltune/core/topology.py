"""The network of a job as a tree of layers: which measurements may run side by side.

A measurement on several nodes uses every switch on the ways between them: from each node up to the lowest switch
that is above them all, that one included. Two measurements that use no switch in common do not disturb each other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property


class Top(StrEnum):
    """What happens at the top of the tree, where its greatest parts meet."""

    SHARED = "shared"  # a switch as any other: one measurement at a time may cross it
    CROSSBAR = "crossbar"  # every two parts have links of their own, as the groups of a dragonfly
    ALONE = "alone"  # nothing is known: each measurement has the whole job for itself


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch, or whatever a layer is made of: a chassis, a rack, a group. ``parent`` is an index, -1 at the top."""

    name: str
    parent: int


@dataclass(frozen=True)
class Topology:
    """Hosts by their position in the job, and the tree of switches above them.

    ``switches[0]`` is the top; parents stand before their children. ``leaf[i]`` is the switch that host i hangs on.
    Raises ValueError for what is not such a tree.
    """

    hosts: tuple[str, ...]
    switches: tuple[Switch, ...]
    leaf: tuple[int, ...]
    top: Top = Top.SHARED

    def __post_init__(self) -> None:
        if not self.switches or self.switches[0].parent != -1 or len(self.leaf) != len(self.hosts):
            raise ValueError("a topology has one top, and a switch for every host")
        if any(not 0 <= switch.parent < index for index, switch in enumerate(self.switches) if index):
            raise ValueError("a switch stands before the one it hangs on")
        if any(not 0 <= switch < len(self.switches) for switch in self.leaf):
            raise ValueError("a host hangs on a switch that is not there")

    @classmethod
    def from_paths(cls, hosts: Sequence[str], paths: Iterable[Sequence[str]], top: Top) -> "Topology":
        """The tree in which host i is found along ``paths[i]``: names of layers, the greatest first.

        Equal names under different parents are different switches.
        """
        switches = [Switch("", -1)]
        known: dict[tuple[int, str], int] = {}
        leaf = []
        for path in paths:
            at = 0
            for name in path:
                below = known.get((at, name))
                if below is None:
                    below = known[at, name] = len(switches)
                    switches.append(Switch(name, at))
                at = below
            leaf.append(at)
        return cls(tuple(hosts), tuple(switches), tuple(leaf), top)

    @classmethod
    def serial(cls, hosts: Sequence[str]) -> "Topology":
        """A network of which nothing is known: measurements run one at a time. Always right, never parallel."""
        return cls(tuple(hosts), (Switch("", -1),), (0,) * len(hosts), Top.ALONE)

    def in_order(self, order: Sequence[int]) -> "Topology":
        """The same tree in which host i is the one that is ``order[i]`` here; switches stand as its hosts come."""
        paths = [[str(switch) for switch in reversed(self.paths[self.leaf[host]][:-1])] for host in order]
        return Topology.from_paths([self.hosts[host] for host in order], paths, self.top)

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """For each switch: itself and the switches above it, the top last."""
        paths: list[tuple[int, ...]] = []
        for index, switch in enumerate(self.switches):
            paths.append((index,) if switch.parent < 0 else (index, *paths[switch.parent]))
        return tuple(paths)

    def layers_used(self, nodes: Sequence[int]) -> frozenset[int]:
        """The switches that a measurement on ``nodes`` (positions in the job) has for itself, by index.

        None for a single node, which sends nothing through the network; the top only where it is shared.
        """
        if self.top is Top.ALONE:
            return frozenset({0})
        if len(nodes) < 2:
            return frozenset()
        leaves = {self.leaf[node] for node in nodes}
        common = set.intersection(*(set(self.paths[leaf]) for leaf in leaves))
        lowest = max(common)  # parents stand before their children, so the last common one is the lowest
        used = {switch for leaf in leaves for switch in self.paths[leaf]} - common | {lowest}
        return frozenset(used - {0}) if self.top is Top.CROSSBAR else frozenset(used)
