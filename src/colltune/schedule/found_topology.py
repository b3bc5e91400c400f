"""The topology of a job where the user names none: Slurm's files, Slurm's answer, or the names of the hosts."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.topology import Top, Topology
from colltune.machine.process import run_launch
from colltune.schedule.topology_files import load_topology, of_paths, parse_slurm_topology, shipped_schemes

_PATIENCE_S = 20.0
_SCONTROL = "scontrol show topology"
# Where Slurm keeps its files: of a site, and where slurmd puts what the controller handed it ("configless").
_DIRECTORIES = ("/etc/slurm", "/run/slurm/conf")
# Slurm's word for a network whose switches are all connected with each other.
_DRAGONFLY = re.compile(r"^TopologyParam\s*=.*\bdragonfly\b", re.IGNORECASE | re.MULTILINE)


def find_topology(hosts: Sequence[str], environment: Mapping[str, str], *, slurm: bool) -> tuple[Topology, str]:
    """The topology of ``hosts``, and in one line where it is from; serial, and why, where nothing tells it.

    The line is empty for a single node. ``slurm``: whether it is a job of Slurm, so that Slurm knows its hosts.
    """
    if len(hosts) < 2:
        return Topology.serial(hosts), ""
    reasons = []
    for source, topology in _candidates(hosts, environment, slurm):
        if not isinstance(topology, Topology):
            reasons.append(topology)
        elif len(set(topology.leaf)) > 1:
            parts = f"{len(set(topology.leaf))} parts, {topology.top} above them"
            return topology, f"topology: {source} ({parts})"
        else:
            reasons.append(f"by {source} all nodes hang on one switch")
    return Topology.serial(hosts), f"topology: serial, because {'; '.join(reasons)}; --topology names another"


def _candidates(
    hosts: Sequence[str], environment: Mapping[str, str], slurm: bool
) -> Iterator[tuple[str, Topology | str]]:
    """Each source with the topology, or why it has none."""
    if slurm:
        if (path := _site_file(environment)) is not None:
            try:
                yield str(path), load_topology(str(path), hosts)
            except InputError as error:
                yield str(path), error.what
        yield _SCONTROL, _of_scontrol(hosts, environment)
    fitting = list(_by_names(hosts))
    if fitting:
        # Names of two sites may look alike: parts that are taken for greater than they are only cost time.
        yield min(fitting, key=lambda found: sum(switch.parent == 0 for switch in found[1].switches))
    else:
        yield "", f"no scheme of host names that is known ({', '.join(shipped_schemes())}) fits {hosts[0]}"


def _site_file(environment: Mapping[str, str]) -> Path | None:
    """Slurm's topology file, if this node can read one."""
    conf = environment.get("SLURM_CONF")
    directories = (*([Path(conf).parent] if conf else []), *map(Path, _DIRECTORIES))
    files = (directory / name for directory in directories for name in ("topology.yaml", "topology.conf"))
    return next((path for path in files if path.is_file() and os.access(path, os.R_OK)), None)


def _of_scontrol(hosts: Sequence[str], environment: Mapping[str, str]) -> Topology | str:
    if (shown := _scontrol("topology", environment)) is None:
        return "scontrol, which knows Slurm's topology, does not answer"
    try:
        paths = parse_slurm_topology(shown, _SCONTROL)
        if not paths:
            return "Slurm knows no switches here"
        top = Top.CROSSBAR if _DRAGONFLY.search(_scontrol("config", environment) or "") else Top.SHARED
        return of_paths(paths, hosts, top, _SCONTROL)
    except InputError as error:
        return error.what


def _scontrol(what: str, environment: Mapping[str, str]) -> str | None:
    """What ``scontrol show`` says; None where there is none, or it does not answer."""
    program = shutil.which("scontrol", path=environment.get("PATH", ""))
    if program is None:
        return None
    whole_lines = {name: value for name, value in environment.items() if name != "SLURM_TOPO_LEN"}
    try:
        done = run_launch([program, "show", what], whole_lines, _PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _by_names(hosts: Sequence[str]) -> Iterator[tuple[str, Topology]]:
    for name in shipped_schemes():
        try:
            yield f"host names as on {name}", load_topology(name, hosts)
        except InputError:
            continue
