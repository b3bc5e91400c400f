"""How many ranks and nodes a launch line asks for, as Hydra, Open MPI, Slurm and Flux spell it. Executes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.mpi.installation import Launcher
from colltune.mpi.launchers import is_launcher, scheduler_launcher
from colltune.mpi.program import launcher_place

_OF_MPIS = dict.fromkeys(("n", "np", "c"), "ranks") | dict.fromkeys(("ppn", "perhost", "npernode", "N"), "ppn")
_OF_SCHEDULERS = {"n": "ranks", "ntasks": "ranks", "N": "nodes", "nodes": "nodes"} | dict.fromkeys(
    ("ntasks-per-node", "tasks-per-node"), "ppn"
)
# Of jsrun, -n counts resource sets.
_OF_JSRUN = {"p": "ranks", "np": "ranks"}
# Hosts that the line names itself: how many ranks each of them takes is in a file, or in the launcher's own rules.
_HOSTS = frozenset({"f", "H", "host", "hosts", "hostfile", "machinefile", "default-hostfile"})
_OF_TWO_WORDS = frozenset({"env", "genv", "mca", "gmca", "omca", "prtemca", "pmixmca"})
_WITHOUT_VALUE = frozenset(
    (
        *(
            "l",
            "v",
            "q",
            "u",
            "verbose",
            "quiet",
            "prepend-rank",
            "label",
            "exclusive",
            "overlap",
            "exact",
            "unbuffered",
        ),
        *("oversubscribe", "nooversubscribe", "allow-run-as-root", "tag-output", "report-bindings", "display-map"),
        *("display-allocation", "use-hwthread-cpus", "nolocal", "bynode", "byslot", "bycore", "genvall", "envall"),
    )
)
_ATTACHED = re.compile(r"-([nN])(\d+)")
_PER_NODE = re.compile(r"ppr:(\d+):node\b.*")


@dataclass(frozen=True, slots=True)
class LaunchCounts:
    """What a launch line says; 0 for what it does not. ``names_hosts``: whether it says which hosts, too."""

    ranks: int = 0
    nodes: int = 0
    ppn: int = 0
    names_hosts: bool = False


def read_launch_line(command: Sequence[str]) -> LaunchCounts | None:
    """The counts in ``command``; None where it starts several programs, whose ranks are counted apart."""
    place = launcher_place(command, lambda word: is_launcher(word) or scheduler_launcher(Path(word)) is not None)
    if place is None:
        return LaunchCounts()
    family = scheduler_launcher(Path(command[place]))
    meanings = _OF_MPIS if family is None else _OF_JSRUN if family is Launcher.JSRUN else _OF_SCHEDULERS
    counts: dict[str, int] = {}
    names_hosts = False
    words = list(command[place + (2 if family is Launcher.FLUX else 1) :])  # `flux run`
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if attached := _ATTACHED.fullmatch(word):
            word = f"-{attached[1]}={attached[2]}"
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and name not in _WITHOUT_VALUE and words and not words[0].startswith("-"):
            value = words.pop(0)
            words = words[1:] if name in _OF_TWO_WORDS else words
        names_hosts |= name in _HOSTS
        if (per_node := _PER_NODE.fullmatch(value)) is not None and name == "map-by":
            counts.setdefault("ppn", int(per_node[1]))
        elif name in meanings and value.isdecimal():
            counts.setdefault(meanings[name], int(value))
    return None if ":" in words else LaunchCounts(**counts, names_hosts=names_hosts)
