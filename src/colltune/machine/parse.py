"""Reads what kernel and commands print of a machine, of its processors as far as each source says.

Nothing here raises for text that it cannot read: it is None.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from colltune.core.hardware import Hardware

_UNIT_MIB = {"": 1 / (1 << 20), "B": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0}
_MOST = 1 << 20  # no list of processors is longer: a bound against nonsense such as 0-99999999999
_PCIE_GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6, 128.0: 7}
# Gbit/s of a lane by the name of the InfiniBand rate, as it is signalled.
_LANE_GBITS = {
    "SDR": 2.5,
    "DDR": 5.0,
    "QDR": 10.0,
    "FDR10": 10.0,
    "FDR": 14.0,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}


def parse_cpu_list(text: str) -> set[int] | None:
    """``"0-3,8"`` -> {0, 1, 2, 3, 8}; the empty list for empty text."""
    numbers: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first > _MOST:
            return None
        numbers.update(range(first, last + 1))
    return numbers


def parse_cache_mib(text: str) -> float | None:
    """``"36608K"``, ``"35.8 MiB"`` -> MiB."""
    match = re.match(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([KMGB]?)(?:i?B)?\b", text)
    if match is None or float(match[1]) <= 0:
        return None
    return float(match[1]) * _UNIT_MIB[match[2]]


def parse_pcie_version(text: str) -> int | None:
    """``"16.0 GT/s PCIe"`` -> 4. Slingshot's extended speed of 25 GT/s is of version 4."""
    match = re.match(r"\s*(\d{1,4}(?:\.\d+)?)\s*GT/s", text)
    if match is None:
        return None
    speed = float(match[1])
    return 4 if 16.0 < speed < 32.0 else _PCIE_GENERATION.get(speed)


def parse_pcie_lanes(text: str) -> int | None:
    """``"16"`` or ``"x16"`` -> 16. The kernel says 0 or 255 where there is no such link."""
    match = re.fullmatch(r"\s*[xX]?(\d{1,3})\s*", text)
    lanes = int(match[1]) if match else 0
    return lanes if 0 < lanes <= 64 else None


def parse_infiniband_rate(text: str) -> tuple[float, int] | None:
    """``"100 Gb/sec (4X EDR)"`` -> (25.0, 4): Gbit/s of a lane, lanes."""
    match = re.match(r"\s*(\d{1,5}(?:\.\d+)?)\s*Gb/sec(?:\s*\((\d{1,2})X(?:\s+(\w+))?\))?", text)
    if match is None or float(match[1]) <= 0:
        return None
    lanes = int(match[2] or 1)
    if lanes == 0:
        return None
    return _LANE_GBITS.get(match[3] or "", float(match[1]) / lanes), lanes


def parse_slingshot_speed(text: str) -> float | None:
    """``"BS_200G"`` -> 200.0 Gbit/s of a port."""
    match = re.search(r"(?<!\d)(\d{2,4})G", text, re.IGNORECASE)
    return float(match[1]) if match and int(match[1]) > 0 else None


def parse_ethernet_speed(text: str) -> float | None:
    """Mbit/s as the kernel says them -> Gbit/s; it says -1 where it does not know."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*", text)
    speed = int(match[1]) if match else 0
    return speed / 1000.0 if 0 < speed < 4_000_000 else None


def parse_fields(text: str) -> dict[str, str]:
    """``name: value`` lines, the first of each name."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            fields.setdefault(name.strip(), value.strip())
    return fields


def parse_lscpu(text: str) -> Hardware:
    """The output of lscpu, of any version, in the C locale."""
    fields = parse_fields(text)
    online = parse_cpu_list(fields.get("On-line CPU(s) list", ""))
    threads = len(online) if online else _count(fields.get("CPU(s)"))
    sockets, per_socket = _count(fields.get("Socket(s)")), _count(fields.get("Core(s) per socket"))
    cores = sockets * per_socket if sockets and per_socket else None
    per_core = _count(fields.get("Thread(s) per core"))
    if cores is None and threads and per_core:
        cores = threads // per_core or None
    return Hardware(
        cpu_max_ghz=_ghz(fields.get("CPU max MHz"), fields.get("Model name", "")),
        l3_mib=_lscpu_l3(fields, sockets),
        cores=cores,
        threads=threads,
        sockets=sockets,
        numa_nodes=_count(fields.get("NUMA node(s)")),
    )


def _lscpu_l3(fields: dict[str, str], sockets: int | None) -> float | None:
    """Since version 2.34 it is the sum over the caches; before, one cache, of which only Intel has one per socket."""
    text = fields.get("L3 cache") or fields.get("L3")
    size = parse_cache_mib(text) if text else None
    if size is None or text is None:
        return None
    if "instance" in text or re.search(r"\diB|\siB|[KMG]iB", text):
        return size
    return size * sockets if sockets and fields.get("Vendor ID") == "GenuineIntel" else None


def _ghz(max_mhz: str | None, model: str) -> float | None:
    """The maximum, or, where no source says it, the clock that the maker put into the model's name."""
    match = re.fullmatch(r"\d{2,5}(?:[.,]\d+)?", max_mhz or "")
    if match:
        return round(float(match[0].replace(",", ".")) / 1000.0, 3) or None
    named = re.search(r"@\s*(\d{1,2}(?:\.\d+)?)\s*GHz", model)
    return float(named[1]) or None if named else None


def _count(text: str | None) -> int | None:
    match = re.fullmatch(r"\s*(\d{1,7})\s*", text or "")
    return int(match[1]) or None if match else None


def cpuinfo_blocks(text: str) -> tuple[list[dict[str, str]], list[dict[str, str]], set[tuple[str, str]]]:
    """The blocks of /proc/cpuinfo, those of processors, and the places of cores as far as they are said."""
    blocks = [parse_fields(block) for block in text.split("\n\n")]
    processors = [block for block in blocks if "processor" in block]
    with_place = [block for block in processors if {"physical id", "core id"} <= block.keys()]
    return blocks, processors, {(block["physical id"], block["core id"]) for block in with_place}


def parse_cpuinfo(text: str) -> Hardware:
    """/proc/cpuinfo. Its clock is the present one, so of the clock only the one in the model's name counts."""
    blocks, processors, cores = cpuinfo_blocks(text)
    sockets = {block["physical id"] for block in processors if "physical id" in block}
    model = next((block["model name"] for block in blocks if "model name" in block), "")
    clocks = [block["clock"] for block in blocks if "clock" in block]  # POWER: "3491.000000MHz", the nominal one
    return Hardware(
        cpu_max_ghz=_ghz(clocks[0].removesuffix("MHz") if clocks else None, model),
        cores=len(cores) or None,
        threads=len(processors) or None,
        sockets=len(sockets) or None,
    )


@dataclass(frozen=True, slots=True)
class HwlocFacts:
    """``pcie_gbytes``: the bandwidth of the PCI link of a network adapter by the names of its devices, 10^9 bytes/s."""

    cpu: Hardware
    pcie_gbytes: dict[str, float]


def parse_hwloc(text: str) -> HwlocFacts:
    """The XML of lstopo, of versions 1 and 2."""
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return HwlocFacts(Hardware(), {})
    objects = list(root.iter("object"))
    kinds = [item.get("type", "") for item in objects]
    caches = [
        item
        for item in objects
        if item.get("type") == "L3Cache" or (item.get("type") == "Cache" and item.get("depth") == "3")
    ]
    sizes = [int(size) for item in caches if (size := item.get("cache_size", "")).isdecimal() and len(size) < 16]
    model = next((info.get("value", "") for info in root.iter("info") if info.get("name") == "CPUModel"), "")
    adapters = {}
    for item in objects:
        if item.get("type") == "PCIDev" and (speed := _decimal(item.get("pci_link_speed"))):
            adapters.update(dict.fromkeys(_network_names(item), speed))
    cpu = Hardware(
        cpu_max_ghz=_ghz(None, model),
        l3_mib=sum(sizes) / (1 << 20) or None,
        cores=kinds.count("Core") or None,
        threads=kinds.count("PU") or None,
        sockets=kinds.count("Package") + kinds.count("Socket") or None,
        numa_nodes=kinds.count("NUMANode") or None,
    )
    return HwlocFacts(cpu, adapters)


def _network_names(item: ElementTree.Element) -> Iterator[str]:
    for child in item.iter("object"):
        if child.get("type") == "OSDev" and child.get("osdev_type") in ("2", "3", "16", "32", "Network", "OpenFabrics"):
            yield child.get("name", "")


def _decimal(text: str | None) -> float | None:
    match = re.fullmatch(r"\d{1,6}(?:\.\d+)?", text or "")
    return float(match[0]) or None if match else None
