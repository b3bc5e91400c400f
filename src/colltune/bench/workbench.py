"""What every command that runs MPI needs: the MPI, the job, the catalogue, the agent, and how they are started."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from colltune.bench.backends import Backend, open_backend
from colltune.bench.contract import Event, LibraryBench, Program, unheard
from colltune.catalog import Catalogue
from colltune.core.errors import EnvironmentMismatchError, InputError, LaunchError
from colltune.core.inner_calls import InnerCall, SharedCall, shared_calls
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis
from colltune.core.space import Space, shapes, tuned_sizes
from colltune.core.topology import Topology
from colltune.core.units import format_count
from colltune.emit.contract import Emitter, variables_for
from colltune.machine.compile import AGENT, cache_directory, scratch_directory
from colltune.machine.conditions import read_conditions
from colltune.machine.process import run_launch
from colltune.machine.record import RunningMachine
from colltune.measure.launched import LaunchedPlan, LaunchedSource
from colltune.measure.live import LivePlan, LiveSource
from colltune.measure.request import Settings, resolve_settings
from colltune.measure.watch import Watch, our_process
from colltune.mpi.detect import ask_flux, describe_machine, find_mpi
from colltune.mpi.installation import Installation
from colltune.mpi.job import Job, find_job
from colltune.mpi.launch import Command, LaunchRequest, launch
from colltune.mpi.launch_line import LaunchLine, job_of_line, parse_launch_line
from colltune.mpi.programs import program_for
from colltune.schedule.topology_files import load_topology
from colltune.schedule.topology_sources import find_topology
from colltune.site.entry import fabric_here
from colltune.store.tuning import Tuning, write_files

THREAD_LEVELS = ("single", "funneled", "serialized", "multiple")
_PATIENCE_S = 120.0


@dataclass(frozen=True)
class MachineOptions:
    """What the user may say about where to run; None is whatever is found."""

    mpiexec: str | None = None
    host_file: Path | None = None
    nodes: int | None = None
    ppn: int | None = None
    thread_level: str = "single"
    launch_line: str | None = None  # the user's own line up to the program, which says the ranks


@dataclass(frozen=True)
class Workbench:
    """An MPI ready to be measured: a LibraryBench.

    ``names_choices``: its launches take choices by name, for which some libraries need a switch in the environment.
    ``beside``: as of ``LivePlan``. ``line``: by which the user starts programs, in place of one made for the job.
    """

    start_text: ClassVar[str] = "starting the MPI job"
    parts_disturb: ClassVar[bool] = True
    installation: Installation
    job: Job
    nodes: int
    ppn: int
    thread_level: str
    backend: Backend
    agent: Path
    environment: Environment
    process_environment: Mapping[str, str]
    watch: Watch = field(default_factory=Watch)
    names_choices: bool = True
    beside: Mapping[tuple[int, int], int] = field(default_factory=dict)
    line: LaunchLine | None = None
    _settings: dict[tuple[str, Choice], Settings | None] = field(default_factory=dict)
    _legal: dict[Scenario, tuple[Choice, ...]] = field(default_factory=dict)
    _topologies: dict[tuple[str, ...], Topology] = field(default_factory=dict)

    @property
    def by_launches(self) -> bool:
        return not self.backend.steered

    @property
    def catalogue(self) -> Catalogue:
        return self.backend.catalogue

    @property
    def library(self) -> LibraryBench:
        return self

    def now_s(self) -> float:
        """time.monotonic."""
        return time.monotonic()

    @property
    def emitter(self) -> Emitter:
        return self.backend.emitter

    def expressible(self, rule_set: RuleSet, jobs: Collection[tuple[int, int]] = ()) -> RuleSet:
        """What this library's file can say of rules that were made from all shapes of this job, and of ``jobs``."""
        looked_at = {shape for job in {(self.nodes, self.ppn), *jobs} for shape in shapes(*job)}
        return self.backend.expressible(rule_set, sorted(looked_at))

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """``rule_sets`` in this library's files, and the variables by which it reads those that there are."""
        folder, files = self.emitter.name, self.emitter.emit(list(rule_sets.values()))
        variables = variables_for(self.emitter, Path(f"{{directory}}/{folder}"), files)
        named = {f"{folder}/{name}": data for name, data in files.items()}
        return Tuning(self.environment, rule_sets, named, variables)

    def inner_calls(self, collective: str, choice: Choice) -> Sequence[InnerCall]:
        """The calls below ``choice``, which the library's file cannot decide for it alone."""
        return self.backend.inner_calls(collective, choice)

    def touched_by_default(self, scenario: Scenario) -> Mapping[SharedCall, Choice]:
        """What runs below the library's own choice."""
        equivalent = self.backend.default_equivalent(scenario, self.thread_level)
        return {} if equivalent is None else shared_calls(self.inner_calls, scenario, equivalent)

    @property
    def headline(self) -> str:
        ranks = format_count(self.ppn, "rank")
        shape = f"{self.nodes} nodes x {ranks}" if self.nodes > 1 else f"{ranks} on this machine"
        return f"{self.installation.library} {self.installation.version}, {shape}"

    @property
    def warnings(self) -> list[str]:
        remarks = self.job.remarks(self.nodes, self.ppn, own_line=self.line is not None)
        return [text for text in (self.catalogue.warning, *remarks) if text]

    def settings(self, collective: str, choice: Choice) -> Settings | None:
        """The control variables of a choice with their integers; None where this library does not know them."""
        if not self.backend.steered:
            return () if choice == DEFAULT else None
        if (collective, choice) not in self._settings:
            # The library is asked once for all: it takes a process, whose work a measurement would see as another's.
            asked = {(name, choice) for name in self.catalogue.entries for choice in self.catalogue.choices(name)}
            named = {key: self.catalogue.settings(*key) for key in {*asked, (collective, choice)} - {*self._settings}}
            self._settings.update(resolve_settings(self.agent, named, self.process_environment))
        return self._settings[collective, choice]

    def legal(self, scenario: Scenario) -> tuple[Choice, ...]:
        """The choices that may be measured in ``scenario``."""
        if scenario not in self._legal:
            self._legal[scenario] = tuple(
                choice
                for choice in self.catalogue.legal(scenario, self.thread_level)
                if choice == DEFAULT or self._can_be_chosen(scenario, choice)
            )
        return self._legal[scenario]

    def _can_be_chosen(self, scenario: Scenario, choice: Choice) -> bool:
        """Of a library that is measured by launches also: whether it is another one than the default."""
        if self.backend.steered:
            return self.settings(scenario.collective, choice) is not None
        return choice != self.backend.default_equivalent(scenario, self.thread_level)

    def baseline(self, scenario: Scenario) -> Choice:
        """What a candidate is compared with: the default, in the form of the candidate that is the same, if one is."""
        equivalent = self.backend.default_equivalent(scenario, self.thread_level)
        return equivalent if equivalent is not None and equivalent in self.legal(scenario) else DEFAULT

    def space(self, collective: str, smallest: int, largest: int) -> Space:
        """The scenarios of ``collective`` that this job can form, for sizes between two bounds in bytes."""
        sizes = tuned_sizes(collective, smallest, largest)
        grid = (Scenario(collective, n, p, size) for n, p in shapes(self.nodes, self.ppn) for size in sizes)
        return Space(collective, tuple(grid), self.legal)

    def command(
        self, program: Sequence[str], variables: Mapping[str, str] | None = None, nodes: int = 0, ppn: int = 0
    ) -> Command:
        """How to start ``program`` on the whole job, or on its first ``nodes`` with ``ppn`` ranks each."""
        if self.line is not None:
            return self.line.command(program, str(self.installation.library), variables or {})
        request = LaunchRequest(program, nodes or self.nodes, ppn or self.ppn, environment=dict(variables or {}))
        return launch(self.installation, self.job, request)

    def program(self, name: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> Program:
        """The program ``name`` of native/, compiled for this MPI, to run on the whole job under ``variables``."""
        built = program_for(self.installation, (name,), cache_directory(self.process_environment))
        command = self.command([str(built), *arguments], variables)
        return Program(command.argv, {**self.process_environment, **command.environment, **(variables or {})})

    def topology(self, named: str | None, note: Callable[[str], None]) -> Topology:
        """Of the job's nodes; ``note`` hears once where it is from.

        Raises InputError where the user ``named`` one that does not fit.
        """
        hosts = self.job.names[: self.nodes]
        given = None if named is None else load_topology(named, hosts)
        if not self.backend.steered:  # what is measured in a launch has the job for itself
            return Topology.serial(hosts)
        if given is not None:
            return given
        if hosts not in self._topologies:
            topology, text = find_topology(hosts, self.process_environment, str(self.job.scheduler))
            self._topologies[hosts] = topology
            if text:
                note(text)
        return self._topologies[hosts]

    def launch(
        self, seed: int, variables: Mapping[str, str] | None = None, *, on_event: Event = unheard
    ) -> LiveSource | LaunchedSource:
        """A source of samples on a fresh launch, with ``variables`` set for every rank; on several where it has to."""
        if self.backend.steered or variables:
            return self._live(seed, variables, on_event)

        def under(rules: Mapping[str, RuleSet]) -> LiveSource:
            if not rules:
                return self._live(seed, {}, on_event)
            files = self.emitter.emit(list(rules.values()))
            place = scratch_directory(self.agent.parent, "launch")
            write_files(place, files, durable=False)
            return self._live(seed, variables_for(self.emitter, place, files), on_event, place)

        def basis(name: str) -> SizeBasis:
            return self.catalogue.collective(name).basis

        def together(scenario: Scenario) -> Hashable:
            name, whole = scenario.collective, basis(scenario.collective)
            if not self.backend.tells_ranks(name):
                return name, scenario.basis_bytes(whole)
            return (name, scenario.nodes, scenario.ppn) if whole is SizeBasis.NONE else scenario

        plan = LaunchedPlan(under, self.backend.expressible, basis, together, on_event)
        return LaunchedSource(plan, self.environment, seed)

    def _live(
        self, seed: int, variables: Mapping[str, str] | None, on_event: Event, place: Path | None = None
    ) -> LiveSource:
        """``place``: of files that are removed when it is closed."""
        command = self.command(self._agent_program, variables)

        def settings(scenario: Scenario, choice: Choice) -> Settings:
            named = self.settings(scenario.collective, choice)
            if named is None:
                raise InputError(
                    f"this MPI does not know {scenario.collective} {choice}", "Tune again: the MPI has changed"
                )
            return named

        plan = LivePlan(
            command=command.argv,
            process_environment={
                **self.process_environment,
                **(self.backend.agent_variables if self.names_choices else {}),
                **command.environment,
                **our_process(),
            },
            settings=settings,
            seed=seed,
            on_event=on_event,
            watch=self.watch,
            beside=self.beside,
            place=place,
        )
        return LiveSource(plan, self.environment)

    def without(self, names: Collection[str]) -> Workbench:
        """The same for what the library decides by itself, where the environment does not have ``names``."""
        left = {name: value for name, value in self.process_environment.items() if name not in names}
        return replace(self, process_environment=left, names_choices=False)

    @property
    def _agent_program(self) -> list[str]:
        return [str(self.agent), "--thread-level", self.thread_level]

    def output_under(self, variables: Mapping[str, str]) -> str:
        """What a launch on the whole job writes under ``variables``, from its start to its end. Raises LaunchError."""
        command = self.command(self._agent_program, variables)
        environment = {**self.process_environment, **command.environment}
        try:
            done = run_launch(command.argv, environment, _PATIENCE_S, "quit\n")
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LaunchError(f"a launch of the agent does not end: {error}", "Try this command by hand") from error
        return done.stdout + done.stderr


def open_workbench(options: MachineOptions, environ: Mapping[str, str], most_nodes: int | None = None) -> Workbench:
    """Finds MPI, job and agent, on ``most_nodes`` at most where the options name no number of nodes.

    Raises InputError, with what to do, where something is missing.
    """
    if options.thread_level not in THREAD_LEVELS:
        raise InputError(f"there is no thread level {options.thread_level!r}", f"Use {', '.join(THREAD_LEVELS)}")
    line = None if options.launch_line is None else parse_launch_line(shlex.split(options.launch_line), environ)
    installation = find_mpi(options.mpiexec or (None if line is None else line.launcher), environ)
    backend = open_backend(installation)
    if line is None:
        job = find_job(environ, host_file=options.host_file, flux_resources=ask_flux(environ))
    else:
        job, nodes, ppn = job_of_line(line, environ)
        options = replace(options, nodes=nodes, ppn=ppn)
    nodes, ppn = _shape(options, job, most_nodes)
    bench = Workbench(
        installation=installation,
        job=job,
        nodes=nodes,
        ppn=ppn,
        line=line,
        thread_level=options.thread_level,
        backend=backend,
        agent=program_for(installation, (AGENT,), cache_directory(environ)),
        environment=Environment(
            mpi=str(installation.library),
            mpi_version=installation.version,
            mpi_build=installation.build,
            machine=describe_machine(),
            nodes=nodes,
            ppn=ppn,
            thread_level=options.thread_level,
            facts={
                "scheduler": str(job.scheduler),
                "launcher": str(installation.launcher),
                "mpiexec": str(installation.mpiexec),
                "mpicc": str(installation.mpicc),
                "libmpi": str(installation.libmpi),
                **({} if line is None else {"launch line": str(line)}),
                **read_conditions(RunningMachine()),
                # `colltune site add` may add what is measured here, and must know what it speaks of.
                "fabric": fabric_here(environ),
            },
        ),
        # A selection file that is in force would be measured in the place of the library's own choice.
        process_environment=backend.clean(environ),
        watch=Watch.of(environ, job.names[:nodes]),
    )
    return replace(bench, backend=backend.in_job(bench.output_under, bench.agent.parent))


def open_tuned_workbench(options: MachineOptions, tuned: Environment, environ: Mapping[str, str]) -> Workbench:
    """The workbench on which a tuning of the environment ``tuned`` can be looked at.

    Where the options leave it open, MPI, nodes, ppn and thread level are those of the tuning. Raises
    EnvironmentMismatchError where the MPI is another one: its file would not be safe here.
    """
    if tuned.launch_line and options.launch_line is None:
        raise InputError(
            f"this was tuned under a launch line of its own: {tuned.launch_line}",
            "Give it again behind --, if it is yours: what a tuning names is not run",
        )
    options = replace(options, ppn=options.ppn or tuned.ppn, thread_level=tuned.thread_level)
    bench = open_workbench(options, environ, tuned.nodes)
    require_tuned(bench, tuned)
    return bench


def require_tuned(bench: Workbench, tuned: Environment) -> None:
    """Raises EnvironmentMismatchError where the MPI of ``bench`` is not the one of the environment ``tuned``."""
    here, named = bench.environment, tuned.mpiexec
    if (here.mpi, here.mpi_version, here.mpi_build) != (tuned.mpi, tuned.mpi_version, tuned.mpi_build):
        # For a reader: what a tuning names is not run.
        launcher = f" ({named})" if named and named.isprintable() else ""
        raise EnvironmentMismatchError(
            f"tuned with {tuned.mpi} {tuned.mpi_version} (build {tuned.mpi_build[:12]}), and here is "
            f"{here.mpi} {here.mpi_version} (build {here.mpi_build[:12]})",
            f"Point --mpiexec at the MPI that was tuned{launcher}, or tune this one",
        )


def _shape(options: MachineOptions, job: Job, most_nodes: int | None) -> tuple[int, int]:
    here = len(job.nodes)
    nodes, ppn = options.nodes or min(most_nodes or here, here), options.ppn or job.ppn
    if nodes > len(job.nodes):
        raise InputError(f"--nodes {nodes}: the job has {len(job.nodes)}", "Ask for fewer nodes")
    if nodes * ppn < 2:
        raise InputError(
            f"this is a job of {nodes} node with {ppn} rank: a collective needs two ranks at least",
            "Give --ppn 2 or more",
        )
    return nodes, ppn
