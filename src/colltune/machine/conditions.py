"""The conditions of a measurement, as pyperf records them: of a node or a record of one, from /proc and /sys.

One table says how each is read, never as root, and what to do where it makes times differ from run to run. What a
system does not tell is left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from colltune.machine.parse import parse_cpu_list
from colltune.machine.record import Machine

_CPU = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_DMI = "sys/class/dmi/id"


@dataclass(frozen=True)
class Condition:
    """``read``: its value on a machine; None where it is not told.

    ``disturbs``: whether the value makes times differ. ``advice``: what to do then.
    """

    name: str
    read: Callable[[Machine], str | None]
    disturbs: Callable[[str], bool] = lambda _value: False
    advice: str = ""


def _of_all_cpus(name: str) -> Callable[[Machine], str | None]:
    """The values of all processors, each once."""

    def read(machine: Machine) -> str | None:
        values = {machine.read(path) for path in machine.find(f"{_CPU}/cpu[0-9]*/cpufreq/{name}")[:1024]}
        return ", ".join(sorted(text for text in values if text)) or None

    return read


def _frequency(machine: Machine) -> str | None:
    bounds = [_of_all_cpus(f"scaling_{which}_freq")(machine) for which in ("min", "max")]
    kilohertz = [[int(word) for word in text.split(", ") if re.fullmatch(r"\d{5,8}", word)] for text in bounds if text]
    if len(kilohertz) < 2 or not all(kilohertz):
        return None
    low, high = min(kilohertz[0]) / 1e6, max(kilohertz[1]) / 1e6
    return f"{low:.2f} to {high:.2f} GHz" if low < high else f"{high:.2f} GHz"


def _turbo(machine: Machine) -> str | None:
    if (off := machine.read(f"{_CPU}/intel_pstate/no_turbo")) is not None:
        return {"0": "on", "1": "off"}.get(off)
    return {"0": "off", "1": "on"}.get(machine.read(f"{_CPU}/cpufreq/boost") or "")


def _smt(machine: Machine) -> str | None:
    return {"0": "off", "1": "on"}.get(machine.read(f"{_CPU}/smt/active") or "")


def _binding(machine: Machine) -> str | None:
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)", machine.read("proc/self/status") or "", re.MULTILINE)
    return f"processors {match[1]}" if match else None


def _numa(machine: Machine) -> str | None:
    nodes = len(machine.find(f"{_NODES}/node[0-9]*"))
    if not nodes:
        return None
    with_processors, with_memory = (
        parse_cpu_list(machine.read(f"{_NODES}/has_{what}") or "") for what in ("cpu", "memory")
    )
    bare = len(with_processors - with_memory) if with_processors and with_memory else 0
    balancing = nodes > 1 and machine.read("proc/sys/kernel/numa_balancing") not in (None, "", "0")
    without = f", {bare} with processors and no memory" if bare else ""
    return f"{nodes}{without}" + (", pages are moved between them" if balancing else "")


def _virtual(machine: Machine) -> str | None:
    flags = re.search(r"^flags\s*:(.*)$", machine.read("proc/cpuinfo") or "", re.MULTILINE)
    if flags is None:
        return None
    if "hypervisor" not in flags[1].split():
        return "no"
    kind = machine.read("sys/hypervisor/type") or machine.read(f"{_DMI}/sys_vendor")
    return f"yes ({kind})" if kind else "yes"


def _limit(machine: Machine) -> str | None:
    """Of the processor time of the control group that this is the root of, or lies directly in."""
    old = " ".join(machine.read(f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us") or "" for name in ("quota", "period"))
    quota = re.fullmatch(r"(\d{1,15}) (\d{1,15})", machine.read("sys/fs/cgroup/cpu.max") or old)
    return f"{int(quota[1]) / int(quota[2]):g} processors" if quota and int(quota[2]) else None


def _load(machine: Machine) -> str | None:
    parts = (machine.read("proc/loadavg") or "").split()
    return f"{parts[0]} tasks a minute ago" if parts else None


CONDITIONS = (
    Condition(
        "governor",
        _of_all_cpus("scaling_governor"),
        lambda value: value != "performance",
        "frequencies change while it is measured; ask your site for the governor performance",
    ),
    Condition("turbo", _turbo, lambda value: value == "on", "frequencies depend on heat and on other processors' work"),
    Condition("frequency", _frequency),
    Condition("SMT", _smt, lambda value: value == "on", "bind one rank to a core, so that no two share one"),
    Condition("binding", _binding),
    Condition(
        "NUMA nodes",
        _numa,
        lambda value: "moved" in value,
        "set kernel.numa_balancing=0, or bind ranks with their memory",
    ),
    Condition(
        "virtual machine",
        _virtual,
        lambda value: value != "no",
        "other machines may share its processors; what they take shows as stolen time",
    ),
    Condition(
        "limit",
        _limit,
        lambda _value: True,
        "a control group holds processes that exceed it; give the job as many processors as it has ranks",
    ),
    Condition("load", _load),
)


def read_conditions(machine: Machine) -> dict[str, str]:
    """By the names in ``CONDITIONS``; what is not told is left out."""
    return {condition.name: value for condition in CONDITIONS if (value := condition.read(machine)) is not None}


def advice(facts: Mapping[str, str]) -> Iterator[str]:
    """What to know of ``found``, which may hold other facts too: a line for each that makes times differ."""
    for condition in CONDITIONS:
        if (value := facts.get(condition.name)) is not None and condition.disturbs(value):
            yield f"{condition.name} {value}: {condition.advice}"
