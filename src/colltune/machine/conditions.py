"""The conditions of a measurement, as pyperf records them: of this node, from /proc and /sys, never as root.

One table says how each is read, and what to do where it makes times differ from run to run. What a system does not tell
is left out.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_CPU = "sys/devices/system/cpu"
_DMI = "sys/class/dmi/id"


@dataclass(frozen=True)
class Condition:
    """``read``: its value below a directory that stands for the root; None where it is not told.

    ``disturbs``: whether the value makes times differ. ``advice``: what to do then.
    """

    name: str
    read: Callable[[Path], str | None]
    disturbs: Callable[[str], bool] = lambda _value: False
    advice: str = ""


def _text(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16).strip() or None
    except OSError:
        return None


def _of_all_cpus(name: str) -> Callable[[Path], str | None]:
    """The values of all processors, each once."""

    def read(root: Path) -> str | None:
        found = {_text(path) for path in sorted((root / _CPU).glob(f"cpu[0-9]*/cpufreq/{name}"))[:1024]} - {None}
        return ", ".join(sorted(text for text in found if text)) or None

    return read


def _frequency(root: Path) -> str | None:
    bounds = [_of_all_cpus(f"scaling_{which}_freq")(root) for which in ("min", "max")]
    kilohertz = [[int(one) for one in text.split(", ") if one.isdecimal()] for text in bounds if text]
    if len(kilohertz) < 2 or not all(kilohertz):
        return None
    low, high = min(kilohertz[0]) / 1e6, max(kilohertz[1]) / 1e6
    return f"{low:.2f} to {high:.2f} GHz" if low < high else f"{high:.2f} GHz"


def _turbo(root: Path) -> str | None:
    if (off := _text(root / _CPU / "intel_pstate/no_turbo")) is not None:
        return {"0": "on", "1": "off"}.get(off)
    return {"0": "off", "1": "on"}.get(_text(root / _CPU / "cpufreq/boost") or "")


def _smt(root: Path) -> str | None:
    return {"0": "off", "1": "on"}.get(_text(root / _CPU / "smt/active") or "")


def _binding(root: Path) -> str | None:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)", _text(root / "proc/self/status") or "", re.MULTILINE)
    return f"processors {found[1]}" if found else None


def _numa(root: Path) -> str | None:
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    if not nodes:
        return None
    balancing = nodes > 1 and _text(root / "proc/sys/kernel/numa_balancing") not in (None, "0")
    return f"{nodes}" + (", pages are moved between them" if balancing else "")


def _virtual(root: Path) -> str | None:
    flags = re.search(r"^flags\s*:(.*)$", _text(root / "proc/cpuinfo") or "", re.MULTILINE)
    if flags is None:
        return None
    if "hypervisor" not in flags[1].split():
        return "no"
    kind = _text(root / "sys/hypervisor/type") or _text(root / _DMI / "sys_vendor")
    return f"yes ({kind})" if kind else "yes"


def _limit(root: Path) -> str | None:
    """Of the processor time of the control group that this is the root of, or lies directly in."""
    quota = (_text(root / "sys/fs/cgroup/cpu.max") or "").split()
    if len(quota) == 2 and quota[0].isdecimal():
        return f"{int(quota[0]) / int(quota[1]):g} processors"
    old = [_text(root / f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    return f"{int(old[0]) / int(old[1]):g} processors" if all(one.isdecimal() for one in old) else None


def _load(root: Path) -> str | None:
    parts = (_text(root / "proc/loadavg") or "").split()
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


def read_conditions(root: Path = Path("/")) -> dict[str, str]:
    """Of this node, by the names in ``CONDITIONS``; what is not told is left out."""
    return {one.name: value for one in CONDITIONS if (value := one.read(root)) is not None}


def advice(found: Mapping[str, str]) -> Iterator[str]:
    """What to know of ``found``, which may hold other facts too: a line for each that makes times differ."""
    for one in CONDITIONS:
        if (value := found.get(one.name)) is not None and one.disturbs(value):
            yield f"{one.name} {value}: {one.advice}"
