"""The topology of a job where the user names none: by its scheduler, or by the names of the hosts."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.topology import Top, Topology
from colltune.machine.process import run_launch
from colltune.schedule.topology_files import (
    load_topology,
    of_paths,
    parse_compute_units,
    parse_slurm_addresses,
    parse_slurm_topology,
    shipped_schemes,
)

_PATIENCE_S = 20.0
_SCONTROL = "scontrol show topology"
_COMPUTE_UNITS = "bmgroup -cu -r -w"
# Where Slurm keeps its files: of a site, and where slurmd puts what the controller handed it ("configless").
_DIRECTORIES = ("/etc/slurm", "/run/slurm/conf")
# Slurm's word for a network whose switches are all connected with each other.
_DRAGONFLY = re.compile(r"^TopologyParam\s*=.*\bdragonfly\b", re.IGNORECASE | re.MULTILINE)
# From 25.05 on a partition may have a topology of its own.
_OF_PARTITION = re.compile(r"\bTopology=([\w.-]+)")
# Why a scheduler itself tells no switches.
_SILENT = {"flux": "Flux knows nodes and cores, and no switches", "pbs": "PBS hands a job hosts, and no switches"}


def find_topology(hosts: Sequence[str], environment: Mapping[str, str], scheduler: str) -> tuple[Topology, str]:
    """The topology of ``hosts``, and in one line where it is from; serial, and why, where nothing tells it.

    The line is empty for a single node. ``scheduler``: the one whose job this is, as ``Scheduler`` names it.
    """
    if len(hosts) < 2:
        return Topology.serial(hosts), ""
    reasons = []
    for source, topology in _candidates(hosts, environment, scheduler):
        if not isinstance(topology, Topology):
            reasons.append(topology)
        elif len(set(topology.leaf)) > 1:
            parts = f"{len(set(topology.leaf))} parts, {topology.top} above them"
            return topology, f"topology: {source} ({parts})"
        else:
            reasons.append(f"by {source} all nodes hang on one switch")
    return Topology.serial(hosts), f"topology: serial, because {'; '.join(reasons)}; --topology names another"


def _candidates(
    hosts: Sequence[str], environment: Mapping[str, str], scheduler: str
) -> Iterator[tuple[str, Topology | str]]:
    """Each source with the topology, or why it has none."""
    if scheduler == "slurm":
        yield from _of_slurm(hosts, environment)
    elif scheduler == "lsf":
        paths = parse_compute_units(_answer(_COMPUTE_UNITS, environment))
        known = _or_why(lambda: of_paths(paths, hosts, Top.SHARED, _COMPUTE_UNITS))
        yield _COMPUTE_UNITS, known if paths else "LSF knows no compute units here"
    elif scheduler in _SILENT:
        yield "", _SILENT[scheduler]
    fitting = list(_by_names(hosts))
    if fitting:
        # Names of two sites may look alike: parts that are taken for greater than they are only cost time.
        yield min(fitting, key=lambda candidate: sum(switch.parent == 0 for switch in candidate[1].switches))
    else:
        yield "", f"no scheme of host names that is known ({', '.join(shipped_schemes())}) fits {hosts[0]}"


def _of_slurm(hosts: Sequence[str], environment: Mapping[str, str]) -> Iterator[tuple[str, Topology | str]]:
    partition = environment.get("SLURM_JOB_PARTITION_HET_GROUP_0") or environment.get("SLURM_JOB_PARTITION", "")
    own = _OF_PARTITION.search(_answer(f"scontrol show partition {partition}", environment) if partition else "")
    name = own[1] if own else ""
    top = Top.CROSSBAR if _DRAGONFLY.search(_answer("scontrol show config", environment)) else Top.SHARED
    if (path := _site_file(environment)) is not None:
        yield str(path), _or_why(lambda: replace(load_topology(str(path), hosts, name), top=top))
    asked = f"{_SCONTROL} {name}".strip()
    try:
        paths = parse_slurm_topology(_answer(asked, environment), asked)
    except InputError as error:
        yield asked, error.what
        return
    if paths:
        yield asked, _or_why(lambda: of_paths(paths, hosts, top, asked))
        return
    yield asked, f"{asked} tells no switches"
    if "." in environment.get("SLURM_TOPOLOGY_ADDR_PATTERN", ""):
        # It tells each node of a job its own place alone: a step on all nodes collects them.
        source, count = "SLURM_TOPOLOGY_ADDR of all nodes", len(hosts)
        step = f"srun --nodes={count} --ntasks={count} --ntasks-per-node=1 --overlap --mpi=none --input=none"
        paths = parse_slurm_addresses(_answer(f"{step} printenv SLURM_TOPOLOGY_ADDR", environment))
        yield source, _or_why(lambda: of_paths(paths, hosts, top, source))


def _or_why(read: Callable[[], Topology]) -> Topology | str:
    try:
        return read()
    except InputError as error:
        return error.what


def _site_file(environment: Mapping[str, str]) -> Path | None:
    """Slurm's topology file, if this node can read one."""
    conf = environment.get("SLURM_CONF")
    directories = (*([Path(conf).parent] if conf else []), *map(Path, _DIRECTORIES))
    files = (directory / name for directory in directories for name in ("topology.yaml", "topology.conf"))
    return next((path for path in files if path.is_file() and os.access(path, os.R_OK)), None)


def _answer(command: str, environment: Mapping[str, str]) -> str:
    """What a command of the scheduler says; "" where there is none, or it does not answer."""
    name, *arguments = command.split()
    if (program := shutil.which(name, path=environment.get("PATH", ""))) is None:
        return ""
    whole_lines = {name: value for name, value in environment.items() if name != "SLURM_TOPO_LEN"}
    try:
        done = run_launch([program, *arguments], whole_lines, _PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _by_names(hosts: Sequence[str]) -> Iterator[tuple[str, Topology]]:
    for name in shipped_schemes():
        try:
            yield f"host names as on {name}", load_topology(name, hosts)
        except InputError:
            continue
