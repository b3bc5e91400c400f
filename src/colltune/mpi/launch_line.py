"""The line by which a user starts a program: the ranks and nodes it asks for, and how it binds them."""

import math
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError
from colltune.mpi.detect import ask_flux
from colltune.mpi.installation import Launcher, is_launcher, scheduler_launcher
from colltune.mpi.job import Job, Scheduler, find_job, parse_host_file
from colltune.mpi.launch import Command
from colltune.mpi.libraries import record_of
from colltune.mpi.program import forwarded, given_by_wrapper, is_interpreter, launcher_place
from colltune.mpi.same import linked_mpi

_LINE = "Write it as you start your program, for example: -- srun --cpu-bind=cores ./wrapper.sh ./app"

# What an option counts, in the launchers of MPIs and in those of schedulers; of jsrun, -n counts resource sets.
_OF_MPIS = {"n": "ranks", "np": "ranks", "c": "ranks", "ppn": "ppn", "perhost": "ppn", "npernode": "ppn", "N": "ppn"}
_OF_SCHEDULERS = {"n": "ranks", "ntasks": "ranks", "N": "nodes", "nodes": "nodes"}
_OF_SCHEDULERS |= {"ntasks-per-node": "ppn", "tasks-per-node": "ppn"}
_OF_JSRUN = {"p": "ranks", "np": "ranks"}
_OF_APRUN = {"n": "ranks", "N": "ppn"}
# Options that put ranks on cores or nodes, of any launcher.
_BINDING = frozenset(
    {"bind-to", "cc", "cpu-affinity", "cpu-bind", "cpus-per-rank", "cpus-per-task", "d", "depth", "distribution"}
    | {"hint", "j", "m", "map-by", "mem-bind", "o", "rank-by", "threads-per-core"}
)
# What a launcher of a scheduler needs to be told, as requests go to rank 0 alone: by the names of the option.
_NEEDED: Mapping[Launcher, Mapping[tuple[str, ...], str]] = {
    Launcher.SRUN: {("i", "input"): "--input=0", ("K", "kill-on-bad-exit"): "--kill-on-bad-exit=1"},
    Launcher.FLUX: {("input",): "--input=0", ("u", "unbuffered"): "--unbuffered"},
}
# Hosts that the line names itself: how many ranks each of them takes is in a file, or in the launcher's own rules.
_HOST_FILES = frozenset(["f", "hostfile", "machinefile", "default-hostfile"])
_LISTS = frozenset(["H", "host", "hosts"])
_HOSTS = _HOST_FILES | _LISTS
_OF_TWO_WORDS = frozenset(["env", "genv", "mca", "gmca", "omca", "prtemca", "pmixmca"])
_WITHOUT_VALUE = re.compile(
    "[lvquKO]|verbose|quiet|kill-on-bad-exit|overcommit|line-buffer|prepend-rank|label|exclusive|overlap|exact|unbuffered|(no)?oversubscribe|allow-run-as-root|"
    "tag-output|report-bindings|display-.*|use-hwthread-cpus|nolocal|by(node|slot|core)|g?envall"
)
_ATTACHED = re.compile(r"-([nN])(\d+)")


def _is_any_launcher(word: str) -> bool:
    return is_launcher(word) or scheduler_launcher(Path(word)) is not None


def _options(command: Sequence[str]) -> tuple[Launcher | None, list[tuple[str, str]], Sequence[str]] | None:
    """The scheduler's launcher or None for one of an MPI, its options with their values ("" where there is none), and
    the words behind them; None where there is no launcher."""
    place = launcher_place(command, _is_any_launcher)
    if place is None:
        return None
    family = scheduler_launcher(Path(command[place]))
    words = list(command[place + (2 if family is Launcher.FLUX else 1) :])  # `flux run`
    options = []
    while words and words[0].startswith("-"):
        name, equals, value = _ATTACHED.sub(r"-\1=\2", words.pop(0)).lstrip("-").partition("=")
        if not equals and not _WITHOUT_VALUE.fullmatch(name) and words and not words[0].startswith("-"):
            value = words.pop(0)
            words = words[1:] if name in _OF_TWO_WORDS else words
        options.append((name, value))
    return family, options, words


def _asked(command: Sequence[str]) -> dict[str, int] | None:
    """The ranks, nodes and ppn that ``command`` says, and hosts where it names them; None where it starts several
    programs, whose ranks are counted apart.
    """
    counts: dict[str, int] = {}
    line = _options(command)
    if line is None:
        return counts
    family, options, rest = line
    meanings = {None: _OF_MPIS, Launcher.JSRUN: _OF_JSRUN, Launcher.GENERIC: _OF_APRUN}.get(family, _OF_SCHEDULERS)
    for name, value in options:
        if name in _HOSTS:
            counts["hosts"] = 1
        elif name == "map-by" and (per_node := re.match(r"ppr:(\d+):node\b", value)):
            counts.setdefault("ppn", int(per_node[1]))
        elif name in meanings and value.isdecimal():
            counts.setdefault(meanings[name], int(value))
    return None if ":" in rest else counts


@dataclass(frozen=True)
class LaunchLine:
    """The user's own command line up to the program: ``words``, of which that at ``place`` is the launcher, and those
    from ``wrappers`` on are what it starts the program by. ``options``: of the launcher, with their values.
    """

    words: tuple[str, ...]
    place: int
    wrappers: int
    options: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return shlex.join(self.words)

    @property
    def launcher(self) -> str:
        return self.words[self.place]

    @property
    def binding(self) -> tuple[str, ...]:
        """What puts ranks on cores: options of the launcher, and the programs around the program."""
        given = [(n.replace("_", "-"), value) for n, value in self.options]
        options = sorted(f"{'-' if len(n) == 1 else '--'}{n}={value}" for n, value in given if n in _BINDING)
        return (*options, *self.words[self.wrappers :])

    def command(self, program: Sequence[str], mpi: str, variables: Mapping[str, str]) -> Command:
        """``program`` in the place of the user's, with ``variables`` set for its ranks. ``mpi``: its library."""
        family = scheduler_launcher(Path(self.launcher))
        first = self.place + (2 if family is Launcher.FLUX else 1)
        needs = {} if family is None else _NEEDED.get(family, {})
        own = {name for name, _ in self.options}
        added = [word for names, word in needs.items() if not own & set(names)]
        added += forwarded(self.launcher, mpi, variables)
        argv = (*self.words[:first], *added, *self.words[first:], *program)
        return Command(argv, {**record_of(mpi).as_root, **variables})


def parse_launch_line(command: Sequence[str], environ: Mapping[str, str]) -> LaunchLine:
    """``command`` up to its program: the first word that loads an MPI, or an interpreter; without one all of it.

    Raises InputError where it names no launcher, and where a word behind it is no program.
    """
    line = _options(command)
    if line is None:
        shown = shlex.join(command)[:60]
        raise InputError(f"the launch line {shown!r} begins with no launcher that is known", _LINE)
    _, options, rest = line
    if ":" in rest:
        raise InputError("the launch line starts several programs", "Give the part of the one to tune for")
    wrappers = len(command) - len(rest)
    environ = {**environ, **given_by_wrapper(command)}
    end = next((at for at, word in enumerate(rest) if is_interpreter(word)), len(rest))
    loads = linked_mpi(rest[:end], environ)
    if loads is not None:
        end = list(rest).index(loads[0])
    elif rest and shutil.which(rest[0], path=environ.get("PATH")) is None:
        raise InputError(f"the launch line starts {rest[0]!r}, which is no program here", _LINE)
    place = launcher_place(command, _is_any_launcher)
    assert place is not None
    return LaunchLine(tuple(command[: wrappers + end]), place, wrappers, tuple(options))


def job_of_line(line: LaunchLine, environ: Mapping[str, str]) -> tuple[Job, int, int]:
    """The job that ``line`` starts programs on, and the nodes and ranks per node that it asks for.

    Raises InputError where these cannot be told, and where nodes have not the same number of ranks.
    """
    shape = job_shape(environ, line.words)
    if shape is None or shape[0] * shape[1] != shape[2]:
        raise InputError(
            f"the launch line does not say how many ranks all nodes get alike: {line}",
            "Give it the number of ranks, and of ranks per node",
        )
    nodes, ppn, _ranks = shape
    hosts = next((value for name, value in line.options if name in _LISTS), "")
    if hosts:
        named = parse_host_file(hosts.replace(",", "\n"), "the launch line", ppn)
        return Job(Scheduler.HOST_FILE, named), nodes, ppn
    job = find_job(environ, host_file=host_file_of(line.words), flux_resources=ask_flux(environ))
    return job, nodes, ppn


def other_binding(tuned_under: str, command: Sequence[str], environ: Mapping[str, str]) -> str:
    """In words, how ``command`` binds its ranks otherwise than the line that was tuned under; "" where it does not.

    ``tuned_under``: the text of a LaunchLine, "" where the tuning had none.
    """
    if not tuned_under:
        return ""
    try:
        before, here = (parse_launch_line(words, environ) for words in (shlex.split(tuned_under), command))
    except (InputError, ValueError):
        return ""
    if before.binding == here.binding:
        return ""
    then, now = (" ".join(line.binding) or "nothing" for line in (before, here))
    return f"tuned with {then} around the program, and this line has {now}: times may differ"


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
