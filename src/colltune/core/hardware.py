"""What is known of a node: its processors and its network."""

from dataclasses import dataclass, field, fields
from enum import StrEnum


class Fabric(StrEnum):
    """The network that MPI uses between nodes."""

    INFINIBAND = "infiniband"
    OMNI_PATH = "omni-path"
    SLINGSHOT = "slingshot"
    ETHERNET = "ethernet"


@dataclass(frozen=True, slots=True)
class Hardware:
    """One node. None is missing, which is not zero: no model may take it for a number.

    ``l3_mib`` is of the whole node. ``link_lane_gbits`` x ``link_lanes`` is the signalling rate of the fastest active
    port; ``links`` counts the ports as fast as that. ``sources`` says where each feature comes from.
    """

    cpu_max_ghz: float | None = None
    l3_mib: float | None = None
    cores: int | None = None
    threads: int | None = None
    sockets: int | None = None
    numa_nodes: int | None = None
    pcie_lanes: int | None = None
    pcie_version: int | None = None
    link_lane_gbits: float | None = None
    link_lanes: int | None = None
    links: int | None = None
    fabric: Fabric | None = None
    sources: dict[str, str] = field(default_factory=dict, compare=False, hash=False)

    @property
    def link_gbits(self) -> float | None:
        """The signalling rate of one port in 10^9 bits a second."""
        if self.link_lane_gbits is None or self.link_lanes is None:
            return None
        return self.link_lane_gbits * self.link_lanes


NUMBERS = tuple(f.name for f in fields(Hardware) if f.name not in ("fabric", "sources"))
