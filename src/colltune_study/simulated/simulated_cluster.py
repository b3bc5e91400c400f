"""What the commands need on a cluster that exists only in a simulation: the counterpart of ``workbench``."""

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from colltune.bench.contract import Event, WithoutMpi, unheard
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario
from colltune.core.space import Space, message_sizes, shapes
from colltune.core.topology import Topology
from colltune.core.units import format_count
from colltune.machine.compile import Compilation, build_source, cache_directory
from colltune.machine.process import run_launch
from colltune.schedule.topology_files import load_topology
from colltune.store.tuning import Tuning
from colltune_study.simulated.drawn import Noise
from colltune_study.simulated.simulated_catalogue import SimulatedCatalogue, load_simulated
from colltune_study.simulated.smpi import EXACT, PROOF_SHAPES, STEADY, STEPS, Simulator, SmpiSource, fits
from colltune_study.simulated.smpi_cluster import SimulatedCluster, parse_cluster
from colltune_study.simulated.smpi_process import Simgrid, SimulatedCall

NATIVE = Path(__file__).parent / "native"  # the program that SimGrid's SMPI runs
_INSTALL = "Install SimGrid (Debian and Ubuntu: apt-get install libsimgrid-dev), or put its smpirun on PATH"


@dataclass
class Clock:
    """The time of whoever waits longer: the user for the simulator, or the owner of the machine that is simulated."""

    begin_s: float = field(default_factory=time.monotonic)
    launches: list[SmpiSource] = field(default_factory=list)

    def now_s(self) -> float:
        """Seconds."""
        return max(time.monotonic() - self.begin_s, sum(launch.now_s for launch in self.launches))


@dataclass(frozen=True)
class Simulation(WithoutMpi):
    """A simulated cluster, ready to be measured: a Bench.

    The simulator gives the same time for the same call always. So that the proof has something to do,
    repetitions and launches of a tuning carry noise (``STEADY``).
    """

    start_text: ClassVar[str] = "checking the simulator's algorithms"
    cluster: SimulatedCluster
    catalogue: SimulatedCatalogue
    simulator: Simulator
    environment: Environment
    _legal: dict[Scenario, tuple[Choice, ...]] = field(default_factory=dict)
    _clock: Clock = field(default_factory=Clock)

    @property
    def nodes(self) -> int:
        return self.cluster.nodes

    @property
    def ppn(self) -> int:
        return self.cluster.ppn

    @property
    def headline(self) -> str:
        shape = f"{format_count(self.nodes, 'node')} x {format_count(self.ppn, 'rank')}"
        return f"{self.cluster.text}, simulated by {self.environment.facts['simulator']}: {shape}"

    def now_s(self) -> float:
        return self._clock.now_s()

    def legal(self, scenario: Scenario) -> tuple[Choice, ...]:
        """The default and the candidates that were right wherever they were checked."""
        if scenario not in self._legal:
            found = self.catalogue.legal(scenario) if fits(scenario) and scenario.nodes > 1 else ()
            self._legal[scenario] = tuple(c for c in found if self._is_right(scenario, c))
        return self._legal[scenario]

    def _is_right(self, scenario: Scenario, choice: Choice) -> bool:
        return all(
            self.simulator.verdict(self.algorithm(scenario, choice), *shape).right
            for shape in PROOF_SHAPES
            if choice != DEFAULT and self._fits(scenario, choice, shape)
        )

    def _fits(self, scenario: Scenario, choice: Choice, shape: tuple[int, int]) -> bool:
        """Whether the catalogue lets ``choice`` be run on the shape at all, for a message of the size there is."""
        return choice.algorithm in {
            c.algorithm for c in self.catalogue.legal(Scenario(scenario.collective, *shape, 1 << 20))
        }

    def algorithm(self, scenario: Scenario, choice: Choice) -> SimulatedCall:
        """What the simulated program is asked to run."""
        resolved = self.catalogue.resolve(scenario, choice)
        values = {name: int(value) for name, value in resolved.parameters}
        return SimulatedCall(scenario.collective, resolved.algorithm, values.get("k", 2), values.get("segment", 0))

    def baseline(self, scenario: Scenario) -> Choice:
        """What a candidate is compared with: the candidate that the default is."""
        return self.catalogue.default(scenario)

    def space(self, collective: str, smallest: int, largest: int) -> Space:
        """The scenarios on several nodes, for sizes between two bounds in bytes.

        Without the default, which is one of the other choices: it need not be measured twice.
        """
        sizes = message_sizes(collective, smallest, largest)
        every = (Scenario(collective, n, p, size) for n, p in shapes(self.nodes, self.ppn) for size in sizes if n > 1)

        def candidates(scenario: Scenario) -> tuple[Choice, ...]:
            return tuple(choice for choice in self.legal(scenario) if choice != DEFAULT)

        return Space(collective, self.space_over(collective, list(every)).scenarios, candidates)

    def space_over(self, collective: str, scenarios: Sequence[Scenario]) -> Space:
        """The space of those of ``scenarios`` that can be simulated."""
        return Space(collective, tuple(s for s in scenarios if s.nodes > 1 and fits(s)), self.legal)

    def source(self, seed: int, launch: int = 1, noise: Noise = EXACT) -> SmpiSource:
        """A source of samples; ``launch`` numbers the simulated launches of the job."""
        return SmpiSource(self.environment, self.simulator, self.algorithm, seed, launch, noise)

    def launch(self, seed: int, *, on_event: Event = unheard) -> SmpiSource:
        """The next launch, on the clock."""
        number = 1 + len(self._clock.launches)
        launch = SmpiSource(self.environment, self.simulator, self.algorithm, seed, number, STEADY, self.now_s)
        on_event("launch", {"number": number})
        self._clock.launches.append(launch)
        return launch

    def topology(self, named: str | None, note: Callable[[str], None]) -> Topology:
        """Of the simulated network, unless the user ``named`` another one."""
        del note
        topology = self.cluster.topology()
        return topology if named is None else load_topology(named, topology.hosts)

    def tuning(self, rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """``rule_sets`` alone: no file, for nothing would load it."""
        return Tuning(self.environment, rule_sets, {}, {})

    def close(self) -> None:
        self.simulator.close()


def open_simulation(text: str, environ: Mapping[str, str], steps: int = STEPS) -> Simulation:
    """The cluster that ``text`` describes; ``steps``: see Simulator.

    Raises InputError for a text that describes none, and where there is no SimGrid.
    """
    cluster = parse_cluster(text)
    simgrid = find_simgrid(environ)
    cache = cache_directory(environ)
    # Other algorithms, or another simulator, make other times.
    digest = hashlib.sha256(f"{simgrid.version}".encode())
    for path in sorted(NATIVE.iterdir()):
        digest.update(path.read_bytes())
    mark = digest.hexdigest()[:16]
    catalogue = load_simulated()
    environment = Environment(
        mpi="simulated",
        mpi_version=catalogue.version,
        mpi_build=mark,
        machine=cluster.text,
        nodes=cluster.nodes,
        ppn=cluster.ppn,
        thread_level="single",
        facts={"simulator": "SimGrid {}.{}".format(*simgrid.version)},
    )
    memory = cache / "simulated" / f"{mark}-{cluster.kind}.jsonl"
    return Simulation(cluster, catalogue, Simulator(simgrid, cluster, memory, steps=steps), environment)


def find_simgrid(environ: Mapping[str, str]) -> Simgrid:
    """SimGrid's SMPI on PATH, with our program compiled for it. Raises InputError where it is missing."""
    found = [shutil.which(name, path=environ.get("PATH")) for name in ("smpirun", "smpicxx")]
    if None in found:
        missing = ("smpirun", "smpicxx")[found.index(None)]
        raise InputError(f"a simulated cluster needs SimGrid's SMPI, and there is no {missing} on PATH", _INSTALL)
    smpirun, smpicxx = map(Path, filter(None, found))
    try:
        said = run_launch([str(smpirun), "--version"], environ, 60.0).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{smpirun} cannot be run: {error}", _INSTALL) from error
    match = re.search(r"(\d+)\.(\d+)", said)
    if match is None:
        raise InputError(f"{smpirun} does not say its version: {said.strip()[:100]!r}", _INSTALL)
    program = build_cpp(smpicxx, NATIVE, cache_directory(environ))
    return Simgrid(smpirun, (int(match[1]), int(match[2])), program)


def build_cpp(compiler: Path, directory: Path, cache: Path) -> Path:
    """The program made from the C++ in ``directory``; compiled if it is not yet there. Raises as ``build``."""
    return build_source(compiler, Compilation.within(compiler, [directory], [directory], ".cpp"), directory.name, cache)
