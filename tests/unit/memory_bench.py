"""A bench whose launches are drawn from a known truth and known noise: a tuning from end to end in a second."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mpich_trees import default_trees

from colltune.bench.backends.mpich import MpichBackend
from colltune.bench.contract import Event, Program, WithoutMpi, unheard
from colltune.bench.recorded_cluster import RecordedBench
from colltune.bench.workbench import Workbench
from colltune.catalog import Catalogue
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, Status
from colltune.emit.mpich.defaults import DefaultTrees
from colltune.emit.mpich.outcome import equivalent_of_default, trees_of
from colltune.emit.mpich.tree import Call
from colltune.measure.request import Settings
from colltune_study.simulated.drawn import QUIET, Noise, SimulatedSource

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "in memory", 2, 4, "single")
Truth = Callable[[Scenario, Choice], float | Status]

# Stands for native/conformance: its cases pass, or the first fails, or does not end, under files where the environment
# says so. There are many, so that the time that this takes on a busy machine is little for each, and the whole check
# fits any budget.
_CONFORMANCE = """
import os, time
fault = os.environ.get("FAULT")
print("case 0 bcast", flush=True)
if fault == "slow":
    time.sleep(3600)
if fault:
    print(f"FAIL 0 {fault} | wrong")
print(f"done cases=100000 failures={1 if fault else 0}")
raise SystemExit(1 if fault else 0)
"""


def decided_by(trees: DefaultTrees, scenario: Scenario, catalogue: Catalogue) -> Choice:
    """What MPICH's files make of ``scenario``: the default where they leave it to the library's own trees."""
    files, own = (equivalent_of_default(some, Call.of(scenario), catalogue) for some in (trees, default_trees()))
    return DEFAULT if files is None or files == own else files


@dataclass
class MemoryBench(WithoutMpi):
    """A Bench on which no library loads files. ``truth``: seconds of a choice, the default among them.

    ``algorithms``: what there is beside the default. ``launch_s``: what a launch takes, on the clock.
    """

    truth: Truth
    noise: Noise = QUIET
    algorithms: Collection[str] = ("nb", "scatter_ring_allgather")
    launch_s: float = 0.5
    nodes: int = ENVIRONMENT.nodes
    ppn: int = ENVIRONMENT.ppn
    environment: Environment = ENVIRONMENT
    launches: list[SimulatedSource] = field(default_factory=list)
    backend: MpichBackend = field(default_factory=lambda: MpichBackend("5.0.2", default_trees()))

    headline, start_text, parts_disturb = "a bench in memory", "beginning", True
    catalogue, space, inner_calls = Workbench.catalogue, Workbench.space, Workbench.inner_calls
    topology, tuning = RecordedBench.topology, RecordedBench.tuning

    def legal(self, scenario: Scenario) -> tuple[Choice, ...]:
        known = self.catalogue.legal(scenario)
        return tuple(choice for choice in known if choice == DEFAULT or choice.algorithm in self.algorithms)

    def baseline(self, scenario: Scenario) -> Choice:
        return DEFAULT

    def now_s(self) -> float:
        return sum(launch.launches * self.launch_s + launch.now_s for launch in self.launches)

    def launch(self, seed: int, *, on_event: Event = unheard) -> SimulatedSource:
        return self._launched(seed, self.truth)

    def _launched(self, seed: int, truth: Truth) -> SimulatedSource:
        number = len(self.launches) + 1
        self.launches.append(SimulatedSource(self.environment, truth, seed, number, self.noise, self.now_s))
        return self.launches[-1]


@dataclass
class MemoryLibrary(MemoryBench):
    """The same with a library, which loads MPICH's files: in a launch under these they decide, and are searched.

    ``search_s``: what each call takes longer under a file. ``fault``: a collective that is wrong under it, or
    "slow" for a check that takes an hour.
    """

    search_s: float = 0.0
    fault: str | None = None

    thread_level = "single"
    library, emitter, touched_by_default = Workbench.library, Workbench.emitter, Workbench.touched_by_default
    expressible, tuning = Workbench.expressible, Workbench.tuning

    def launch(
        self, seed: int, variables: Mapping[str, str] | None = None, *, on_event: Event = unheard
    ) -> SimulatedSource:
        if not variables:
            return self._launched(seed, self.truth)
        paths = [Path(value) for value in variables.values()]
        files = {path.name: path.read_bytes() for path in paths if path.is_file()}
        assert files, variables
        trees = trees_of(files)

        def under_files(scenario: Scenario, choice: Choice) -> float | Status:
            assert choice == DEFAULT
            time_s = self.truth(scenario, decided_by(trees, scenario, self.catalogue))
            return time_s if isinstance(time_s, Status) else time_s + self.search_s

        return self._launched(seed, under_files)

    def program(self, name: str, arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> Program:
        assert name == "conformance"
        faulty = {"FAULT": self.fault} if variables and self.fault else {}
        return Program([sys.executable, "-I", "-S", "-c", _CONFORMANCE, *arguments], {**(variables or {}), **faulty})

    def settings(self, collective: str, choice: Choice) -> Settings:
        return ((f"{collective}_algorithm", ["default", *self.algorithms].index(choice.algorithm)),)
