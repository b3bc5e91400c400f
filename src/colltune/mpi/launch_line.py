"""How many ranks and nodes a launch line asks for, as Hydra, Open MPI, Slurm and Flux spell it."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from colltune.core.errors import InputError
from colltune.mpi.detect import ask_flux
from colltune.mpi.installation import Launcher
from colltune.mpi.job import Scheduler, find_job
from colltune.mpi.launchers import is_launcher, scheduler_launcher
from colltune.mpi.program import launcher_place

# What an option counts, in the launchers of MPIs and in those of schedulers; of jsrun, -n counts resource sets.
_OF_MPIS = {"n": "ranks", "np": "ranks", "c": "ranks", "ppn": "ppn", "perhost": "ppn", "npernode": "ppn", "N": "ppn"}
_OF_SCHEDULERS = {"n": "ranks", "ntasks": "ranks", "N": "nodes", "nodes": "nodes"}
_OF_SCHEDULERS |= {"ntasks-per-node": "ppn", "tasks-per-node": "ppn"}
_OF_JSRUN = {"p": "ranks", "np": "ranks"}
# Hosts that the line names itself: how many ranks each of them takes is in a file, or in the launcher's own rules.
_HOST_FILES = frozenset(["f", "hostfile", "machinefile", "default-hostfile"])
_HOSTS = _HOST_FILES | {"H", "host", "hosts"}
_OF_TWO_WORDS = frozenset(["env", "genv", "mca", "gmca", "omca", "prtemca", "pmixmca"])
_WITHOUT_VALUE = re.compile(
    "[lvqu]|verbose|quiet|prepend-rank|label|exclusive|overlap|exact|unbuffered|(no)?oversubscribe|allow-run-as-root|"
    "tag-output|report-bindings|display-.*|use-hwthread-cpus|nolocal|by(node|slot|core)|g?envall"
)
_ATTACHED = re.compile(r"-([nN])(\d+)")


def _options(command: Sequence[str]) -> tuple[Launcher | None, list[tuple[str, str]], Sequence[str]] | None:
    """The scheduler's launcher or None for one of an MPI, its options with their values ("" where there is none), and
    the words behind them; None where there is no launcher."""
    place = launcher_place(command, lambda word: is_launcher(word) or scheduler_launcher(Path(word)) is not None)
    if place is None:
        return None
    family = scheduler_launcher(Path(command[place]))
    words = list(command[place + (2 if family is Launcher.FLUX else 1) :])  # `flux run`
    found = []
    while words and words[0].startswith("-"):
        name, equals, value = _ATTACHED.sub(r"-\1=\2", words.pop(0)).lstrip("-").partition("=")
        if not equals and not _WITHOUT_VALUE.fullmatch(name) and words and not words[0].startswith("-"):
            value = words.pop(0)
            words = words[1:] if name in _OF_TWO_WORDS else words
        found.append((name, value))
    return family, found, words


def _asked(command: Sequence[str]) -> dict[str, int] | None:
    """The ranks, nodes and ppn that ``command`` says, and hosts where it names them; None where it starts several
    programs, whose ranks are counted apart.
    """
    counts: dict[str, int] = {}
    line = _options(command)
    if line is None:
        return counts
    family, options, rest = line
    meanings = _OF_MPIS if family is None else _OF_JSRUN if family is Launcher.JSRUN else _OF_SCHEDULERS
    for name, value in options:
        if name in _HOSTS:
            counts["hosts"] = 1
        elif name == "map-by" and (per_node := re.match(r"ppr:(\d+):node\b", value)):
            counts.setdefault("ppn", int(per_node[1]))
        elif name in meanings and value.isdecimal():
            counts.setdefault(meanings[name], int(value))
    return None if ":" in rest else counts


def host_file_of(command: Sequence[str]) -> Path | None:
    """The file of hosts that a launcher of an MPI is given in ``command``; None where there is none."""
    line = _options(command)
    named = [] if line is None or line[0] is not None else [value for name, value in line[1] if name in _HOST_FILES]
    return Path(named[0]) if named and named[0] else None


def job_shape(environ: Mapping[str, str], command: Sequence[str] = ()) -> tuple[int, int, int] | None:
    """Nodes, ranks per node and ranks of ``command``, as far as it and the scheduler tell; else None."""
    asked = _asked(command)
    try:
        job = find_job(environ, flux_resources=ask_flux(environ))
    except InputError:
        return None
    if asked is None or ("hosts" in asked and "ppn" not in asked):
        return None
    alone = job.scheduler is Scheduler.NONE
    ranks, nodes, ppn = (asked.get(name, 0) for name in ("ranks", "nodes", "ppn"))
    ppn = ppn or (math.ceil(ranks / nodes) if ranks and nodes else ranks if alone else job.ppn)
    ranks = ranks or (nodes or (0 if alone else len(job.nodes))) * ppn
    return (math.ceil(ranks / ppn), min(ppn, ranks), ranks) if ranks else None
