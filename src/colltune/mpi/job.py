"""Which job this process is in: its nodes, and how many ranks each of them takes. Runs nothing."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.hostlist import MOST_HOSTS, expand_hostlist, parse_counts
from colltune.machine.file_formats import HOST_LINE, Format, plain_text, require_format
from colltune.machine.files import read_file

_FIRST = "_HET_GROUP_0"  # how variables end that are of the first component of a Slurm job
_HOST_FILE = "Write a host or a list of hosts in each line, for example node01, node01:8 or node[01-04]:8"

_ONE_EACH = (
    "the scheduler grants each node one rank. If your program runs more, ask for them (mpiprocs of PBS, "
    "--ntasks-per-node of Slurm), give --ppn, or your own launch line behind --"
)
_CROWDED = (
    "there are more ranks than cores: times then say more about the operating system's scheduler than about MPI. "
    "Give --ppn, or tune inside a job"
)
_UNEVEN = "{} grants {} to {} ranks a node; each gets {} here. For more, name nodes that are alike by --hostfile"


class Scheduler(StrEnum):
    SLURM = "slurm"
    PBS = "pbs"
    FLUX = "flux"
    LSF = "lsf"
    HOST_FILE = "host file"
    NONE = "none"  # a laptop or a login node: this machine alone


@dataclass(frozen=True, slots=True)
class Node:
    """A node by its name, and how many ranks were granted on it."""

    name: str
    slots: int


@dataclass(frozen=True, slots=True)
class Job:
    """The nodes that may be used, in the scheduler's order. ``part``: in words, of what these are a part, if of any."""

    scheduler: Scheduler
    nodes: tuple[Node, ...]
    part: str = ""

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError(f"the {self.scheduler} job has no node")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)

    @property
    def ppn(self) -> int:
        """Ranks that every node takes."""
        return min(node.slots for node in self.nodes)

    def remarks(self, nodes: int, ppn: int, *, own_line: bool) -> list[str]:
        """What to know of running ``ppn`` ranks on each of the first ``nodes``, by the user's line or by ours."""
        slots = [node.slots for node in self.nodes[:nodes]]
        lonely = ppn == 1 and not own_line and self.scheduler in (Scheduler.PBS, Scheduler.SLURM)
        uneven = not own_line and ppn == min(slots) < max(slots)
        remarks = (
            (self.part, bool(self.part)),
            (_ONE_EACH, lonely),
            (_CROWDED, ppn > min(slots)),
            (_UNEVEN.format(self.scheduler, ppn, max(slots), ppn), uneven),
        )
        return [text for text, holds in remarks if holds]


def find_job(
    environment: Mapping[str, str], *, host_file: Path | None = None, flux_resources: str | None = None
) -> Job:
    """The job that ``environment`` describes; this machine alone where it describes none.

    ``host_file`` is the user's own list of hosts, and goes before any scheduler. ``flux_resources`` is the answer
    of ``detect.ask_flux``: Flux does not name its hosts in the environment. Raises InputError, with the variable,
    for a description that cannot be read.
    """
    if host_file is not None:
        return Job(Scheduler.HOST_FILE, _hosts_of_file(host_file, _cores_here()))
    if flux_resources is not None:
        return Job(Scheduler.FLUX, _flux_nodes(flux_resources))
    if (components := environment.get("SLURM_HET_SIZE", "1")) != "1":
        # Where srun is told nothing else, it starts programs on the first.
        first = {name[: -len(_FIRST)]: value for name, value in environment.items() if name.endswith(_FIRST)}
        part = f"the first of the {components} components of this Slurm job is meant; name other nodes by --hostfile"
        return Job(Scheduler.SLURM, _slurm_nodes(first), part)
    if "SLURM_JOB_NODELIST" in environment or "SLURM_NODELIST" in environment:
        return Job(Scheduler.SLURM, _slurm_nodes(environment))
    if "PBS_NODEFILE" in environment:
        # A node that is named once was granted one rank: a job script asks for more by mpiprocs.
        return Job(Scheduler.PBS, _hosts_of_file(Path(environment["PBS_NODEFILE"]), 1))
    if {"LSB_DJOB_HOSTFILE", "LSB_MCPU_HOSTS", "LSB_HOSTS"} & environment.keys():
        return Job(Scheduler.LSF, _lsf_nodes(environment))
    return Job(Scheduler.NONE, (Node("localhost", _cores_here()),))


def parse_host_file(text: str, source: str, alone: int) -> tuple[Node, ...]:
    """Hosts of a host file, each with its slots, in the order of their first mention.

    Understood are ``host``, ``host:8``, ``host slots=8`` and ``host 8``, where ``host`` may be a list as Slurm writes
    it (``node[01-04,07]``, each with these slots), and ``#`` comments. A host that is repeated has as many slots as
    lines; where every host stands once and without a number, each has ``alone``. ``source`` names the text in
    messages. Raises InputError for a line that cannot be read, and for more than a million hosts.
    """
    slots: dict[str, int] = {}
    numbered, count = False, 0
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        match = HOST_LINE.fullmatch(entry)
        if match is None or match["slots"] == "0":
            raise InputError(f"{source}, line {number}: cannot read {entry[:60]!r}", _HOST_FILE)
        try:
            names = expand_hostlist(match["hosts"])
        except InputError as error:
            raise InputError(f"{source}, line {number}: {error.what}", _HOST_FILE) from error
        count += len(names)
        if count > MOST_HOSTS:
            raise InputError(f"{source}, line {number}: more than {MOST_HOSTS} hosts up to here", _HOST_FILE)
        for name in names:
            numbered = numbered or match["slots"] is not None or name in slots
            slots[name] = slots.get(name, 0) + int(match["slots"] or 1)
    if not slots:
        raise InputError(f"{source} names no host", _HOST_FILE)
    return tuple(Node(name, each if numbered else alone) for name, each in slots.items())


def _hosts_of_file(path: Path, alone: int) -> tuple[Node, ...]:
    try:
        data = read_file(path, link=True)
    except OSError as error:
        raise InputError(f"cannot read the host file {path}: {error.strerror}", _HOST_FILE) from error
    require_format(path, data, (Format.HOSTS,), "list of hosts", _HOST_FILE)
    return parse_host_file(plain_text(data), str(path), alone)


def _slurm_nodes(environment: Mapping[str, str]) -> tuple[Node, ...]:
    names = expand_hostlist(environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST", ""))
    counts = _slurm_counts(environment, len(names))
    if len(counts) != len(names):
        raise InputError(
            f"Slurm names {len(names)} nodes but {len(counts)} counts of tasks "
            f"(SLURM_TASKS_PER_NODE={environment.get('SLURM_TASKS_PER_NODE', '')})",
            "Run colltune from the job script itself, not within a step of fewer nodes",
        )
    return tuple(Node(name, count) for name, count in zip(names, counts, strict=True))


def _slurm_counts(environment: Mapping[str, str], nodes: int) -> list[int]:
    """Tasks per node: what the job asked for, else its cores."""
    if "SLURM_TASKS_PER_NODE" in environment:
        return parse_counts(environment["SLURM_TASKS_PER_NODE"])
    if "SLURM_NTASKS_PER_NODE" in environment:
        return [_count(environment, "SLURM_NTASKS_PER_NODE")] * nodes
    for name in ("SLURM_NTASKS", "SLURM_NPROCS"):
        if name in environment:
            # Slurm fills nodes in turn, so the first ones have one task more where it does not come out even.
            each, more = divmod(_count(environment, name), nodes)
            return [max(1, each + (index < more)) for index in range(nodes)]
    if "SLURM_JOB_CPUS_PER_NODE" in environment:
        cores = _count(environment, "SLURM_CPUS_PER_TASK") if "SLURM_CPUS_PER_TASK" in environment else 1
        return [max(1, count // cores) for count in parse_counts(environment["SLURM_JOB_CPUS_PER_NODE"])]
    return [1] * nodes


def _lsf_nodes(environment: Mapping[str, str]) -> tuple[Node, ...]:
    file = Path(environment.get("LSB_DJOB_HOSTFILE", ""))
    # In a container the file may be out of sight, and the variables tell the same.
    if file.is_file() or not {"LSB_MCPU_HOSTS", "LSB_HOSTS"} & environment.keys():
        nodes = _hosts_of_file(file, 1)
    elif "LSB_MCPU_HOSTS" in environment:
        words = environment["LSB_MCPU_HOSTS"].split()  # a name and a count in turn
        nodes = parse_host_file(
            "\n".join(map(" ".join, zip(words[::2], [*words[1::2], ""], strict=False))), "LSB_MCPU_HOSTS", 1
        )
    else:
        nodes = parse_host_file("\n".join(environment["LSB_HOSTS"].split()), "LSB_HOSTS", 1)
    first, rest = nodes[0], nodes[1:]
    # Some sites give the job one slot on a node that only runs its script: it is none of the nodes to tune.
    if rest and first.slots == 1 and min(node.slots for node in rest) > 1:
        return rest
    return nodes


def _flux_nodes(resources: str) -> tuple[Node, ...]:
    """Nodes of lines ``<host list> <resources>``, hosts by rank: ``n[1-3] rank[0-1]/core[0-7],gpu0 rank2/core0``."""
    nodes: list[Node] = []
    for line in filter(str.strip, resources.splitlines()):
        hosts, *held = line.split()
        slots: dict[str, int] = {}
        for ranks, _, children in (item.partition("/") for item in held):
            cores = sum(child.startswith("core") for child in expand_hostlist(children))
            slots |= dict.fromkeys(expand_hostlist(ranks), max(1, cores))
        names = expand_hostlist(hosts)
        if len(names) != len(slots) or not all(re.fullmatch(r"rank[0-9]{1,9}", rank, re.ASCII) for rank in slots):
            raise InputError(
                f"cannot read Flux's resources {line[:60]!r}", "Check `flux resource list`, or give a host file"
            )
        in_order = sorted(slots, key=lambda rank: int(rank.removeprefix("rank")))
        nodes += [Node(name, slots[rank]) for name, rank in zip(names, in_order, strict=True)]
    return tuple(nodes)


def _count(environment: Mapping[str, str], name: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", environment[name], re.ASCII):
        raise InputError(f"{name}={environment[name]!r} is not a count")
    return int(environment[name])


def _cores_here() -> int:
    """Cores that this process may run on: fewer than the machine has where a container or taskset says so."""
    return len(os.sched_getaffinity(0))
