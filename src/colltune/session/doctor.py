"""What is here: the MPI, its launcher, the job, and what can be tuned in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from colltune.bench.backends import obstacles_of
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.heap import page_faults_of
from colltune.core.sample import ALLTOALLV, COLLECTIVES, DEFAULT, TUNABLE, Choice, Environment, Scenario, format_choices
from colltune.core.space import Point
from colltune.core.units import format_count
from colltune.machine.conditions import CONDITIONS, advice
from colltune.measure.contract import Effort, Source
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation
from colltune.mpi.job import Job
from colltune.mpi.programs import describe_programs
from colltune.session.own_settings import settings_line

_SIZE = 1 << 16  # bytes of the message for which the legal algorithms are listed
# What a first screen tells of what was found.
_FIRST = frozenset({"MPI", "launcher", "job", "machine"})
# Calls that are made to see whether they pay for page faults.
_LARGE, _EFFORT = (1 << 16, 1 << 18, 1 << 20), Effort(box_s=0.002, fewest=5, most=20)


@dataclass(frozen=True)
class Diagnosis:
    """What `colltune doctor` finds.

    ``environment``: what a tuning made here holds for: MPI, machine, nodes x ranks per node, thread level.
    ``in_force``: which part of the library takes which collective, where there are several. ``warnings``: what may
    keep a tuning from deciding. ``ranks`` and ``hosts``: of a test launch. ``choices``: the algorithms that may be
    measured on the whole job at 64 KiB, by collective; none where ``nothing_to_tune`` says why.
    ``disturbance``: by other programs, now. ``obstacles``: those of the warnings that keep the files from deciding.
    """

    installation: Installation
    job: Job
    environment: Environment
    warnings: tuple[str, ...]
    in_force: tuple[str, ...]
    ranks: int
    hosts: str
    choices: Mapping[str, tuple[Choice, ...]] = field(default_factory=dict)
    nothing_to_tune: Mapping[str, str] = field(default_factory=dict)
    disturbance: Disturbance = field(default_factory=Disturbance)
    obstacles: tuple[str, ...] = ()

    @property
    def missing(self) -> str:
        """What keeps a tuning from being made or from deciding; "" where it can begin."""
        if self.obstacles:
            return self.obstacles[0]
        if not self.choices:
            return "there is no collective that can be tuned"
        return "other programs use the processors of the ranks: end them, or wait" if self.disturbance.is_busy else ""


def diagnose(
    machine: MachineOptions, environ: Mapping[str, str], say: Callable[[str, str, bool], None] = lambda *_: None
) -> Diagnosis:
    """Looks for an MPI and a job, starts the agent on all of it once, and lists what can be tuned.

    ``say`` hears each label and text as soon as it is known, so that a launch which fails hides nothing, and whether it
    belongs on a first screen. Raises InputError where something is missing, and LaunchError where the job cannot start.
    """
    try:
        bench = open_workbench(machine, environ)
    except InputError:  # what can be said without a compiler
        here = find_mpi(machine.mpiexec, environ, compiles=False)
        for name, text in _of_mpi(here):
            say(name, text, True)
        raise
    for name, text in _found(bench):
        say(name, text, name in _FIRST)
    warnings = [*bench.warnings, *advice(bench.environment.facts)]
    for text in warnings:
        say("warning", text, True)
    components, outranking = bench.backend.components(bench.output_under)
    for text in components:
        say("in force", text, False)
    own = settings_line(environ, bench.catalogue.entries if bench.environment.mpi == "mpich" else (), {})
    known = obstacles_of(bench.environment.mpi, environ)
    obstacles = tuple(dict.fromkeys(filter(None, [*known, *outranking, own])))
    for text in obstacles:
        say("warning", text, True)
    choices, nothing = _choices(bench)
    ranks, hosts = _launched(bench, say)
    for collective in (name for name in TUNABLE if name in bench.catalogue.entries):
        way = "" if bench.catalogue.collective(collective).in_file else " (by colltune run --via live)"
        say(collective, f"{nothing.get(collective) or format_choices(choices[collective])}{way}", False)
    say(ALLTOALLV, f"algorithms of colltune's own, by: colltune tune {ALLTOALLV}", False)
    say("can be tuned", ", ".join([*choices, ALLTOALLV]), True)
    return Diagnosis(
        bench.installation,
        bench.job,
        bench.environment,
        (*warnings, *obstacles),
        tuple(components),
        ranks,
        hosts,
        choices,
        nothing,
        bench.watch.tally.total(names=bench.watch.nodes),
        obstacles,
    )


def _choices(bench: Workbench) -> tuple[dict[str, tuple[Choice, ...]], dict[str, str]]:
    """By collective the algorithms that may be measured, or why there is nothing to tune."""
    choices: dict[str, tuple[Choice, ...]] = {}
    nothing: dict[str, str] = {}
    for collective in (name for name in TUNABLE if name in bench.catalogue.entries):
        if reason := bench.catalogue.collective(collective).nothing_to_tune:
            nothing[collective] = reason
        else:
            size = 0 if collective == "barrier" else _SIZE
            choices[collective] = bench.legal(Scenario(collective, bench.nodes, bench.ppn, size))
    return choices, nothing


def _launched(bench: Workbench, say: Callable[[str, str, bool], None]) -> tuple[int, str]:
    """The ranks and the nodes of a test launch of the agent. Raises LaunchError."""
    ready = bench.launch(seed=1)
    try:
        started = ready.start()
        bench.watch.patience_s = 0.0
        faults = _page_faults(bench, ready)
    finally:
        ready.close()
    ranks, hosts = int(started["ranks"]), str(started["nodes"])
    say("test launch", f"{format_count(ranks, 'rank')} on {hosts}", True)
    say("others", bench.watch.tally.total(names=bench.watch.nodes).sentence or "no other program disturbed it", True)
    if faults:
        say("page faults", faults, False)
    return ranks, hosts


def _page_faults(bench: Workbench, source: Source) -> str:
    """Which of the library's own calls pay for page faults, on all ranks of the job."""
    names = [name for name in TUNABLE if name in COLLECTIVES and name in bench.catalogue.entries and name != "barrier"]
    scenarios = [Scenario(name, bench.nodes, bench.ppn, size) for name in names for size in _LARGE]
    points = [Point(scenario, (DEFAULT,)) for scenario in scenarios]
    return page_faults_of([sample for _, samples in source.measure(points, _EFFORT) for sample in samples])


def _found(bench: Workbench) -> list[tuple[str, str]]:
    installation, facts = bench.installation, bench.environment.facts
    nodes = bench.job.nodes
    job = f"{nodes[0].name}: {format_count(bench.ppn, 'rank')} on {format_count(nodes[0].slots, 'core')}"
    if len(nodes) > 1:
        job = f"{bench.job.scheduler}: {bench.nodes} nodes x {bench.ppn} ranks"
    return [
        *_of_mpi(installation),
        ("programs", describe_programs(installation)),
        ("agent", f"{bench.agent}"),
        ("job", job),
        ("thread level", bench.thread_level),
        ("machine", bench.environment.machine),
        *((condition.name, facts[condition.name]) for condition in CONDITIONS if condition.name in facts),
    ]


def _of_mpi(mpi: Installation) -> list[tuple[str, str]]:
    return [("MPI", f"{mpi.library} {mpi.version}, {mpi.libmpi}"), ("launcher", f"{mpi.mpiexec} ({mpi.launcher})")]
