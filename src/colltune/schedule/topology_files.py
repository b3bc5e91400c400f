"""Topologies from what a site has: Slurm's files, a scheme of host names, or a plain file."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.hostlist import expand_hostlist
from colltune.core.topology import Top, Topology
from colltune.machine.files import read_text

SERIAL = "serial"
_NEXT = "Give another --topology, or serial, which is always right"

Paths = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SchemeLayer:
    """A layer of a scheme: the part of the host name that numbers it, divided if several are one part."""

    name: str
    part: str
    divide: int = 1


@dataclass(frozen=True, slots=True)
class NameScheme:
    """How the host names of a site show where a host is."""

    host: re.Pattern[str]
    layers: tuple[SchemeLayer, ...]
    top: Top

    def path(self, host: str) -> tuple[str, ...]:
        """The layers above ``host``, the greatest first. Raises InputError for a name of another site."""
        match = self.host.fullmatch(host)
        if match is None:
            raise InputError(f"the host name {host} does not match the scheme {self.host.pattern}", _NEXT)
        path = []
        for layer in self.layers:
            value = match.group(layer.part)
            if value is None or (layer.divide > 1 and not value.isdecimal()):
                raise InputError(f"the host name {host} has no number for the layer {layer.name}", _NEXT)
            path.append(f"{layer.name} {int(value) // layer.divide if layer.divide > 1 else value}")
        return tuple(path)


def shipped_schemes() -> tuple[str, ...]:
    """Names of the schemes that come with colltune."""
    files = resources.files("colltune.schedule").joinpath("schemes").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_topology(source: str, hosts: Sequence[str], named: str = "") -> Topology:
    """The topology of ``hosts`` by ``source``.

    ``"serial"``, the name of a shipped scheme, or a file: a scheme (.toml), Slurm's topology.yaml (.yaml, .yml) or
    topology.conf (.conf), or else a plain file. ``named``: which of several of a topology.yaml. Raises InputError for
    a file that cannot be read, and for hosts that it does not know.
    """
    if source == SERIAL:
        return Topology.serial(hosts)
    if source in shipped_schemes():
        text = resources.files("colltune.schedule").joinpath("schemes", f"{source}.toml").read_text("utf-8")
        return of_scheme(parse_scheme(text, source), hosts)
    path = Path(source)
    try:
        text = read_text(path, link=True)
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join((SERIAL, *shipped_schemes()))
        raise InputError(f"cannot read the topology {source}: {error}", f"Give a file, or one of: {known}") from error
    match path.suffix:
        case ".toml":
            return of_scheme(parse_scheme(text, source), hosts)
        case ".yaml" | ".yml":
            return of_paths(parse_slurm_yaml(text, source, named), hosts, Top.SHARED, source)
        case ".conf":
            return of_paths(parse_slurm_conf(text, source), hosts, Top.SHARED, source)
        case _:
            paths, top = parse_plain(text, source)
            return of_paths(paths, hosts, top, source)


def of_scheme(scheme: NameScheme, hosts: Sequence[str]) -> Topology:
    return Topology.from_paths(hosts, [scheme.path(host) for host in hosts], scheme.top)


def of_paths(paths: Paths, hosts: Sequence[str], top: Top, source: str) -> Topology:
    """The part of a site's tree that ``hosts`` are in; they are found by their full or their short name."""
    places = [paths.get(host, paths.get(host.partition(".")[0])) for host in hosts]
    unknown = [host for host, path in zip(hosts, places, strict=True) if path is None]
    if unknown:
        shown = ", ".join(unknown[:3]) + (" ..." if len(unknown) > 3 else "")
        raise InputError(f"{source} does not know {len(unknown)} of the job's hosts: {shown}", _NEXT)
    return Topology.from_paths(hosts, [path for path in places if path is not None], top)


def parse_scheme(text: str, source: str) -> NameScheme:
    """A scheme of host names in TOML: see the shipped ones. Raises InputError with what is wrong."""
    try:
        document = tomllib.loads(text)
        pattern = re.compile(document["host"])
        top = Top(document.get("top", Top.SHARED))
        layers = tuple(
            SchemeLayer(str(item["name"]), str(item.get("part", item["name"])), int(item.get("divide", 1)))
            for item in document["layers"]
        )
    except (re.error, KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise InputError(
            f"cannot read the scheme {source}: {error}", "It needs host, and layers with a name"
        ) from error
    for layer in layers:
        if layer.part not in pattern.groupindex or layer.divide < 1:
            raise InputError(
                f"{source}: the layer {layer.name} needs a part (?P<{layer.part}>...) of host, and divide at least 1",
                f"The parts are: {', '.join(pattern.groupindex) or 'none'}",
            )
    return NameScheme(pattern, layers, top)


def parse_slurm_conf(text: str, source: str) -> Paths:
    """Hosts of a topology.conf (tree or block) and the switches above them. Raises InputError with the line."""
    switches: list[tuple[str, str, str]] = []
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        pairs = dict(item.partition("=")[::2] for item in re.split(r"(?<!\s)\s+(?=\w+=)", content))
        values = {name.strip().lower(): value.strip() for name, value in pairs.items()}
        name = values.pop("switchname", None) or values.pop("blockname", None)
        if name is None and values.keys() <= {"blocksizes"}:
            continue
        if name is None or not values.keys() <= {"switches", "nodes", "linkspeed"}:
            raise InputError(f"{source}, line {number}: cannot read {content!r}", "See topology.conf(5)")
        switches.append((name, values.get("switches", ""), values.get("nodes", "")))
    return _paths_of_switches(switches, source)


def parse_slurm_topology(text: str, source: str) -> Paths:
    """The same of what ``scontrol show topology`` prints; none where Slurm knows no switches. Raises InputError.

    Slurm lists all hosts under a switch of switches too: only those of the lowest ones count. Blocks of blocks
    (AggregatedBlock) are left out: the blocks in them are listed as well.
    """
    switches = []
    for line in text.splitlines():
        values = dict(re.findall(r"\b(\w+)=(\S+)", line))
        name, children = values.get("SwitchName", values.get("BlockName")), values.get("Switches", "")
        if name is not None:
            nodes = "" if children else values.get("Nodes", "")
            switches.append((name, children, "" if nodes == "(null)" else nodes))
    return _paths_of_switches(switches, source)


def parse_slurm_addresses(text: str) -> Paths:
    """Hosts by their SLURM_TOPOLOGY_ADDR, one a line: ``top.leaf.node``, where a part may be a list of switches."""
    addresses = (line.strip().split(".") for line in text.splitlines())
    return {host: tuple(switches) for *switches, host in addresses if switches}


def parse_compute_units(text: str) -> Paths:
    """Hosts by LSF's compute units, as ``bmgroup -cu -r -w`` prints them: name, type and all hosts of each."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    units = sorted(((row[0], row[2:]) for row in rows if row[:2] != ["NAME", "TYPE"]), key=lambda unit: -len(unit[1]))
    paths: dict[str, tuple[str, ...]] = {}
    for name, hosts in units:  # the larger ones are above the smaller ones
        paths |= {host: (*paths.get(host, ()), name) for host in hosts}
    return paths


def parse_slurm_yaml(text: str, source: str, named: str = "") -> Paths:
    """Hosts of the topology ``named`` in a topology.yaml, else of the cluster's default or the first.

    Raises InputError.
    """
    document = _yaml(text, source)
    entries = [entry for entry in document if isinstance(entry, dict)] if isinstance(document, list) else []
    if not entries:
        raise InputError(f"{source} is not a list of topologies", "See topology.yaml(5)")
    default = [entry for entry in entries if str(entry.get("cluster_default", "")).lower() == "true"]
    entry = next((entry for entry in entries if named and entry.get("topology") == named), (default or entries)[0])
    for kind, key, name in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        part = entry.get(kind)
        if isinstance(part, dict) and isinstance(items := part.get(key), list):
            return _paths_of_switches([_switch_of_yaml(item, name, source) for item in items], source)
    raise InputError(f"{source}: the topology {entry.get('topology')} has neither switches nor blocks", _NEXT)


def _yaml(text: str, source: str) -> object:
    """The document, its scalars as text. Raises InputError, with the line."""
    import yaml  # late: few jobs have such a file

    try:
        return yaml.load(text, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = source if mark is None else f"{source}, line {mark.line + 1}"
        why = getattr(error, "problem", None) or type(error).__name__
        raise InputError(f"{place}: cannot read it: {why}", "See topology.yaml(5)") from None


def _switch_of_yaml(item: object, name: str, source: str) -> tuple[str, str, str]:
    values = item if isinstance(item, dict) else {}
    texts = []
    for key in (name, "children", "nodes"):
        value = values.get(key, "")
        parts = value if isinstance(value, list) else [value]
        # Not shown: what aliases make of a few lines may be endless.
        if not all(isinstance(part, str) for part in parts) or (key == name and not value):
            raise InputError(f"{source}: cannot read the {key} of a {name}", "See topology.yaml(5)")
        texts.append(",".join(parts))
    return texts[0], texts[1], texts[2]


def _paths_of_switches(switches: Sequence[tuple[str, str, str]], source: str) -> Paths:
    """(name, children, nodes) of each switch -> the path to each host. Raises InputError if this is not a tree."""
    parent: dict[str, str] = {}
    for name, children, _ in switches:
        for child in expand_hostlist(children) if children else ():
            if child in parent:
                raise InputError(f"{source}: the switch {child} is below both {parent[child]} and {name}", _NEXT)
            parent[child] = name
    paths: dict[str, tuple[str, ...]] = {}
    for name, _, nodes in switches:
        above = [name]
        while above[-1] in parent:
            above.append(parent[above[-1]])
            if len(above) > len(parent) + 1:
                raise InputError(f"{source}: the switch {name} is above itself", _NEXT)
        path = tuple(reversed(above))
        for host in expand_hostlist(nodes) if nodes else ():
            if host in paths:
                raise InputError(f"{source}: the host {host} is below both {paths[host][-1]} and {name}", _NEXT)
            paths[host] = path
    return paths


def parse_plain(text: str, source: str) -> tuple[Paths, Top]:
    """A plain file: ``group1/rack2: n[01-16]`` per line, ``top: crossbar`` for a dragonfly, ``#`` comments."""
    paths: dict[str, tuple[str, ...]] = {}
    top = Top.SHARED
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        place, colon, rest = content.partition(":")
        path = tuple(part.strip() for part in place.split("/"))
        if not colon or not all(path) or not rest.strip():
            raise InputError(f"{source}, line {number}: cannot read {content!r}", "Write group1/rack2: n[01-16]")
        if path == ("top",):
            try:
                top = Top(rest.strip())
            except ValueError:
                raise InputError(f"{source}, line {number}: top is shared, crossbar or alone", _NEXT) from None
            continue
        for host in expand_hostlist(rest.strip()):
            if host in paths:
                raise InputError(f"{source}, line {number}: the host {host} is listed twice", _NEXT)
            paths[host] = path
    return paths, top
