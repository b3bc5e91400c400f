"""Hardware features: from a recorded machine, and from trees written after the kernel's documentation (synthetic)."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.hardware import NUMBERS, Fabric
from colltune.machine import parse
from colltune.machine.conditions import read_conditions
from colltune.machine.hardware_features import read_features
from colltune.machine.record import RecordedMachine, RunningMachine, record, save_record

RECORDED = Path(__file__).parents[1] / "recorded" / "machines"
CPU = "sys/devices/system/cpu"


def synthetic(sockets=2, cores=4, threads=2, l3="20480K", max_khz="3300000", numa=2, extra=None) -> RecordedMachine:
    """A tree as a kernel shows it, with hyperthreads numbered after all cores."""
    files = {}
    total = sockets * cores
    for cpu in range(total * threads):
        core = cpu % total
        socket = core // cores
        at = f"{CPU}/cpu{cpu}"
        files[f"{at}/topology/physical_package_id"] = f"{socket}\n"
        files[f"{at}/topology/core_id"] = f"{core % cores}\n"
        files[f"{at}/cpufreq/cpuinfo_max_freq"] = max_khz + "\n"
        shared = [c for c in range(total * threads) if c % total // cores == socket]
        files[f"{at}/cache/index3/level"] = "3\n"
        files[f"{at}/cache/index3/size"] = l3 + "\n"
        files[f"{at}/cache/index3/shared_cpu_list"] = ",".join(map(str, shared)) + "\n"
    for node in range(numa):
        files[f"sys/devices/system/node/node{node}/cpulist"] = f"{node * 4}-{node * 4 + 3}\n"
    files["sys/devices/system/node/node9/cpulist"] = "\n"  # memory without processors
    return RecordedMachine(files | (extra or {}))


GEN_4 = ("16.0 GT/s PCIe", "16")
EDR = "100 Gb/sec (4X EDR)"


def infiniband(name, rate, state="4: ACTIVE", layer="InfiniBand", pcie=("8.0 GT/s PCIe", "16")):
    at = f"sys/class/infiniband/{name}"
    return {
        f"{at}/ports/1/rate": rate + "\n",
        f"{at}/ports/1/state": state + "\n",
        f"{at}/ports/1/link_layer": layer + "\n",
        f"{at}/device/current_link_speed": pcie[0] + "\n",
        f"{at}/device/current_link_width": pcie[1] + "\n",
    }


def slingshot(number, esm="25.0 GT/s"):
    at = f"sys/class/cxi/cxi{number}/device"
    return {
        f"{at}/port/speed": "BS_200G\n",
        f"{at}/port/link": "up\n",
        f"{at}/properties/current_esm_link_speed": esm + "\n",
        f"{at}/current_link_speed": "16.0 GT/s PCIe\n",
        f"{at}/current_link_width": "16\n",
        f"sys/class/net/hsn{number}/speed": "200000\n",
        f"sys/class/net/hsn{number}/operstate": "up\n",
    }


MACHINES = {re.sub(r"\.(tar\.gz|txt)$", "", path.name) for path in RECORDED.iterdir()} - {"README.md"}


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_what_is_said_of_each_recorded_machine(name, tmp_path):
    """The text beside it, and again of what is recorded of the record; the page has a line of each."""
    expected = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    save_record(record(RecordedMachine.load(RECORDED / f"{name}.tar.gz")), tmp_path / "again")
    for machine in (RECORDED / f"{name}.tar.gz", tmp_path / "again"):
        assert CliRunner().invoke(app, ["doctor", "--features", "--machine", str(machine)]).stdout == expected
    assert f"| {name} |" in (RECORDED / "README.md").read_text(encoding="utf-8")


def test_a_limit_of_no_period_is_no_limit():
    for quota in ("100000 0", "max 100000", "9" * 5000 + " 100000", "x", ""):
        assert "limit" not in read_conditions(RecordedMachine({"sys/fs/cgroup/cpu.max": quota})), quota[:20]


def test_processors_caches_and_memory_of_a_two_socket_node_without_those_that_are_offline():
    found = read_features(synthetic())
    assert (found.cores, found.threads, found.sockets, found.numa_nodes) == (8, 16, 2, 2)
    assert (found.l3_mib, found.cpu_max_ghz) == (40.0, 3.3)
    found = read_features(synthetic(threads=1, extra={f"{CPU}/online": "0-3\n"}))
    assert (found.cores, found.threads, found.sockets, found.l3_mib) == (4, 4, 1, 20.0)


@pytest.mark.parametrize(
    ("extra", "fabric", "lane", "lanes", "links", "pcie"),
    [
        (infiniband("mlx5_0", "100 Gb/sec (4X EDR)"), Fabric.INFINIBAND, 25.0, 4, 1, (3, 16)),
        (infiniband("mlx5_0", "200 Gb/sec (4X HDR)", pcie=GEN_4), Fabric.INFINIBAND, 50, 4, 1, (4, 16)),
        (infiniband("mlx4_0", "40 Gb/sec (4X QDR)", pcie=("5.0 GT/s", "8")), Fabric.INFINIBAND, 10, 4, 1, (2, 8)),
        (infiniband("mlx5_0", "56 Gb/sec (4X FDR)"), Fabric.INFINIBAND, 14, 4, 1, (3, 16)),
        (infiniband("hfi1_0", "100 Gb/sec (4X EDR)"), Fabric.OMNI_PATH, 25, 4, 1, (3, 16)),
        (infiniband("mlx5_0", "100 Gb/sec (4X EDR)", layer="Ethernet"), Fabric.ETHERNET, 25, 4, 1, (3, 16)),
        (infiniband("mlx5_0", EDR) | infiniband("mlx5_1", EDR), Fabric.INFINIBAND, 25, 4, 2, (3, 16)),
        (slingshot(0), Fabric.SLINGSHOT, 50, 4, 1, (4, 16)),
        (slingshot(0) | slingshot(1, "Disabled"), Fabric.SLINGSHOT, 50, 4, 2, (4, 16)),
    ],
)
def test_networks(extra, fabric, lane, lanes, links, pcie):
    found = read_features(synthetic(extra=extra))
    assert (found.fabric, found.link_lane_gbits, found.link_lanes, found.links) == (fabric, lane, lanes, links)
    assert (found.pcie_version, found.pcie_lanes) == pcie
    assert found.link_gbits == lane * lanes


def test_the_fastest_active_port_counts():
    down = infiniband("mlx5_0", "400 Gb/sec (4X NDR)", state="1: DOWN")
    ethernet = {}
    for name, speed in (("eth0", 25000), ("eth1", -1), ("docker0", 100000), ("ib0", 100000)):
        at = f"sys/class/net/{name}"
        ethernet |= {f"{at}/speed": f"{speed}\n", f"{at}/operstate": "up\n", f"{at}/device/vendor": "0x8086\n"}
    del ethernet["sys/class/net/docker0/device/vendor"]  # no device behind it
    found = read_features(synthetic(extra=down | ethernet))
    assert (found.fabric, found.link_gbits, found.links) == (Fabric.ETHERNET, 25.0, 1)
    assert found.pcie_lanes is None
    assert "link_lanes" in found.sources


OLD_LSCPU = """CPU(s):                48
Thread(s) per core:    2
Core(s) per socket:    12
Socket(s):             2
NUMA node(s):          2
Vendor ID:             GenuineIntel
Model name:            Intel(R) Xeon(R) CPU E5-2680 v3 @ 2.50GHz
CPU max MHz:           3300.0000
L3 cache:              30720K
"""
POWER_LSCPU = """On-line CPU(s) list: 0-159
Thread(s) per core:  8
Core(s) per socket:  10
Socket(s):           2
NUMA node(s):        2
Model name:          POWER8 (raw), altivec supported
CPU max MHz:         4023.0000
L3 cache:            8192K
"""


def test_lscpu_alone():
    found = read_features(RecordedMachine({"commands/lscpu": OLD_LSCPU}))
    assert (found.cores, found.threads, found.sockets, found.numa_nodes, found.cpu_max_ghz) == (24, 48, 2, 2, 3.3)
    assert found.l3_mib == 60.0  # Intel has one per socket
    power = read_features(RecordedMachine({"commands/lscpu": POWER_LSCPU}))
    assert (power.cores, power.threads, power.cpu_max_ghz) == (20, 160, 4.023)
    assert power.l3_mib is None  # one of an unknown number of caches


HWLOC = """<?xml version="1.0"?><topology version="2.0"><object type="Machine">
<object type="Package"><object type="NUMANode"/><object type="L3Cache" cache_size="12582912">
<object type="Core"><object type="PU"/><object type="PU"/></object></object>
<object type="PCIDev" pci_link_speed="15.753846"><object type="OSDev" name="mlx5_0" osdev_type="3"/></object>
<object type="PCIDev" pci_link_speed="4.000000"><object type="OSDev" name="ib0" osdev_type="2"/></object>
</object></object></topology>"""


def test_hwloc_fills_what_the_kernel_does_not_say():
    found = parse.parse_hwloc(HWLOC)
    assert (found.cpu.cores, found.cpu.threads, found.cpu.sockets, found.cpu.numa_nodes) == (1, 2, 1, 1)
    assert found.cpu.l3_mib == 12.0
    at = "sys/class/infiniband/mlx5_0/ports/1"
    port = {f"{at}/rate": "100 Gb/sec (4X EDR)", f"{at}/state": "4: ACTIVE"}
    features = read_features(RecordedMachine({"commands/hwloc.xml": HWLOC} | port))
    # 15.75 GB/s are x16 of version 3 and x8 of version 4 alike: neither is claimed.
    assert (features.pcie_version, features.pcie_lanes, features.cores) == (None, None, 1)


def test_a_record_keeps_the_features_and_no_names(tmp_path):
    machine = synthetic(
        extra=infiniband("mlx5_0", "100 Gb/sec (4X EDR)")
        | {
            "proc/cpuinfo": "processor\t: 0\nSerial\t: 12345\nprocessor 1: version = 00,  identification = 12345\n",
            "proc/self/status": "Name:\tcolltune\nUid:\t54321\t54321\nCpus_allowed_list:\t0-3\n",
            "commands/hwloc.xml": HWLOC.replace("<object", '<info name="HostName" value="secret"/><object'),
            "sys/class/infiniband/mlx5_0/node_guid": "0002:c903:00a1:b2c3\n",
        }
    )
    for out in (tmp_path / "one.tar.gz", tmp_path / "two"):
        save_record(record(machine), out)
        again = RecordedMachine.load(out)
        assert read_features(again) == read_features(machine)
        text = "\n".join(again.files.values())
        assert not [words for words in ("secret", "12345", "c903", "54321") if words in text]
        assert read_conditions(again)["binding"] == "processors 0-3"


def test_this_machine_is_recorded_as_it_is_read_and_shown_by_commands(tmp_path):
    out = tmp_path / "machine.tar.gz"
    assert CliRunner().invoke(app, ["doctor", "--record", str(out)]).exit_code == 0
    here = read_features(RunningMachine())
    assert read_features(RecordedMachine.load(out)) == here
    assert (here.threads or 0) >= 1
    shown = CliRunner().invoke(app, ["doctor", "--features", "--machine", str(out), "--json"])
    assert set(NUMBERS) <= set(json.loads(shown.stdout))


def test_a_file_that_is_no_record_is_refused(tmp_path):
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "x.tar.gz", tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(InputError, match="doctor --record"):
            RecordedMachine.load(path)


@given(st.text(max_size=80))
def test_no_text_makes_a_parser_raise_or_invent(text):
    for name in ("cache_mib", "pcie_version", "pcie_lanes", "slingshot_speed", "ethernet_speed"):
        value = getattr(parse, f"parse_{name}")(text)
        assert value is None or value > 0
    rate = parse.parse_infiniband_rate(text)
    assert rate is None or (rate[0] > 0 and rate[1] > 0)
    parse.parse_cpu_list(text)
    parse.parse_fields(text)
    parse.parse_lscpu(f"Socket(s): {text}\nL3 cache: {text}\nCPU max MHz: {text}\nModel name: {text}")
    parse.parse_cpuinfo(f"processor: 0\nphysical id: {text}\nclock: {text}\n\n{text}")
    parse.parse_hwloc(text)


@given(st.sets(st.integers(0, 4095)))
def test_processor_lists_round_trip(numbers):
    assert parse.parse_cpu_list(",".join(map(str, sorted(numbers)))) == numbers
    ranges = ",".join(f"{number}-{number + 5}" for number in sorted(numbers))
    assert parse.parse_cpu_list(ranges) == {number + more for number in numbers for more in range(6)}


@given(st.integers(1, 1 << 22))
def test_cache_sizes(kib):
    assert parse.parse_cache_mib(f"{kib}K") == pytest.approx(kib / 1024)
    assert parse.parse_cache_mib(f"{kib} KiB (2 instances)") == pytest.approx(kib / 1024)
