"""Hardware features of a machine, running or recorded, from /sys, then lscpu, hwloc and /proc. Nothing needs root."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from colltune.core.hardware import NUMBERS, Fabric, Hardware
from colltune.machine.parse import (
    parse_cache_mib,
    parse_cpu_list,
    parse_cpuinfo,
    parse_ethernet_speed,
    parse_hwloc,
    parse_infiniband_rate,
    parse_lscpu,
    parse_pcie_lanes,
    parse_pcie_version,
    parse_slingshot_speed,
)
from colltune.machine.record import Machine

_CPU = "sys/devices/system/cpu"
# 10^9 bytes/s of a lane in one direction, by version: what hwloc's link speed is made of.
_PCIE_LANE_GBYTES = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}


@dataclass(frozen=True, slots=True)
class Port:
    """An active port of a network adapter. ``device``: its name; ``place``: the directory of its PCI device."""

    fabric: Fabric
    lane_gbits: float
    lanes: int
    device: str
    place: str

    @property
    def gbits(self) -> float:
        return self.lane_gbits * self.lanes


def read_features(machine: Machine) -> Hardware:
    """The features of ``machine``; what no source knows is missing."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    hwloc = parse_hwloc(machine.output("hwloc.xml") or "")
    for source, facts in (
        ("sys", _sys_facts(machine)),
        ("lscpu", parse_lscpu(machine.output("lscpu") or "")),
        ("hwloc", hwloc.cpu),
        ("cpuinfo", parse_cpuinfo(machine.read("proc/cpuinfo") or "")),
    ):
        for name in NUMBERS:
            if (value := getattr(facts, name)) is not None and name not in values:
                values[name], sources[name] = value, source
    ports = sorted(_ports(machine), key=lambda port: (-port.gbits, port.device))
    if ports:
        best = ports[0]
        features = {"fabric": best.fabric, "link_lane_gbits": best.lane_gbits, "link_lanes": best.lanes}
        features["links"] = sum(1 for port in ports if (port.fabric, port.gbits) == (best.fabric, best.gbits))
        features |= _pcie(machine, best, hwloc.pcie_gbytes)
        values |= features
        sources |= dict.fromkeys(features, f"sys, {best.device}")
    return Hardware(**values, sources=sources)


def _sys_facts(machine: Machine) -> Hardware:
    online = parse_cpu_list(machine.read(f"{_CPU}/online") or "")
    places, sockets, clocks = set(), set(), []
    threads = 0
    for path in machine.find(f"{_CPU}/cpu[0-9]*/topology/core_id"):
        number, directory = _number(path, "cpu"), path.rpartition("/topology/")[0]
        socket, core = machine.read(f"{directory}/topology/physical_package_id"), machine.read(path)
        if (online and number not in online) or socket is None or core is None:
            continue
        threads += 1
        sockets.add(socket)
        # The number of a core may come again in each die of a package.
        places.add(machine.read(f"{directory}/topology/thread_siblings_list") or (socket, core))
        clock = machine.read(f"{directory}/cpufreq/cpuinfo_max_freq") or ""
        clocks.append(int(clock) / 1e6 if re.fullmatch(r"\d{5,8}", clock) else 0.0)
    if "-1" in sockets:  # some ARM kernels do not know their packages
        sockets.clear()
    return Hardware(
        cpu_max_ghz=round(max(clocks, default=0.0), 3) or None,
        l3_mib=_sys_l3(machine, online),
        cores=len(places) or None,
        threads=threads or None,
        sockets=len(sockets) or None,
        numa_nodes=_numa_nodes(machine),
    )


def _sys_l3(machine: Machine, online: set[int] | None) -> float | None:
    """The sum over the caches of level 3: each is listed once for every processor that shares it."""
    caches: dict[frozenset[int], float] = {}
    for path in machine.find(f"{_CPU}/cpu[0-9]*/cache/index[0-9]*/level"):
        directory = path.rpartition("/")[0]
        if machine.read(path) != "3" or (online and _number(path, "cpu") not in online):
            continue
        size = parse_cache_mib(machine.read(f"{directory}/size") or "")
        shared = parse_cpu_list(machine.read(f"{directory}/shared_cpu_list") or "")
        if size and shared:
            caches[frozenset(shared)] = size
    return sum(caches.values()) or None


def _numa_nodes(machine: Machine) -> int | None:
    """Memory without processors (high-bandwidth memory, memory of GPUs) is no place for ranks."""
    lists = [machine.read(path) for path in machine.find("sys/devices/system/node/node[0-9]*/cpulist")]
    return sum(1 for text in lists if text) or None


def _number(path: str, name: str) -> int:
    match = re.search(rf"/{name}(\d+)/", path)
    return int(match[1]) if match else -1


def _ports(machine: Machine) -> Iterator[Port]:
    yield from _slingshot_ports(machine)
    yield from _infiniband_ports(machine)
    taken = {path.split("/")[3] for path in machine.find("sys/class/infiniband/*")}
    for path in machine.find("sys/class/net/*/speed"):
        directory, name = path.rpartition("/")[0], path.split("/")[3]
        speed = parse_ethernet_speed(machine.read(path) or "")
        physical = machine.find(f"{directory}/device") or name.startswith("hsn")
        if speed is None or not physical or machine.read(f"{directory}/operstate") != "up" or name in taken:
            continue
        if not name.startswith(("ib", "hsn")):  # IP over InfiniBand: the adapter itself is listed above
            yield Port(Fabric.ETHERNET, speed, 1, name, f"{directory}/device")
        elif name.startswith("hsn") and not machine.find("sys/class/cxi/*"):
            yield Port(Fabric.SLINGSHOT, speed / 4, 4, name, f"{directory}/device")


def _infiniband_ports(machine: Machine) -> Iterator[Port]:
    for path in machine.find("sys/class/infiniband/*/ports/*/rate"):
        port, device = path.rpartition("/")[0], path.split("/")[3]
        rate = parse_infiniband_rate(machine.read(path) or "")
        if rate is None or "ACTIVE" not in (machine.read(f"{port}/state") or ""):
            continue
        fabric = Fabric.INFINIBAND
        if device.startswith(("hfi1", "opa")):
            fabric = Fabric.OMNI_PATH
        elif machine.read(f"{port}/link_layer") == "Ethernet":
            fabric = Fabric.ETHERNET
        yield Port(fabric, *rate, device, f"sys/class/infiniband/{device}/device")


def _slingshot_ports(machine: Machine) -> Iterator[Port]:
    for path in machine.find("sys/class/cxi/*/device/port/speed"):
        device = path.split("/")[3]
        place = f"sys/class/cxi/{device}/device"
        speed = parse_slingshot_speed(machine.read(path) or "")
        if speed is not None and (machine.read(f"{place}/port/link") or "up").lower() == "up":
            yield Port(Fabric.SLINGSHOT, speed / 4, 4, device, place)


def _pcie(machine: Machine, port: Port, hwloc_gbytes: dict[str, float]) -> dict[str, int]:
    extended = parse_pcie_version(machine.read(f"{port.place}/properties/current_esm_link_speed") or "")
    version = extended or parse_pcie_version(machine.read(f"{port.place}/current_link_speed") or "")
    lanes = parse_pcie_lanes(machine.read(f"{port.place}/current_link_width") or "")
    if version is None and lanes is None and port.device in hwloc_gbytes:
        version, lanes = _from_bandwidth(hwloc_gbytes[port.device])
    return {name: value for name, value in (("pcie_version", version), ("pcie_lanes", lanes)) if value is not None}


def _from_bandwidth(gbytes: float) -> tuple[int | None, int | None]:
    """Version and lanes from a bandwidth, which says both only where one pair fits: 2 GB/s are x4 of 2 or x8 of 1."""
    fits = [
        (version, lanes)
        for version, lane in _PCIE_LANE_GBYTES.items()
        for lanes in (1, 2, 4, 8, 16)
        if abs(lane * lanes - gbytes) <= 0.002 * gbytes
    ]
    return fits[0] if len(fits) == 1 else (None, None)
