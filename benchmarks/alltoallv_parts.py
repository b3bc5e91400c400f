"""Tunes MPI_Alltoallv for a job of 64 x 16 and its parts on the simulated cluster: what of the headroom it captures.

`bench_alltoallv.py` runs it. The whole command runs, exploration and proof, on the clock of the cluster: the times of
the simulator (make_alltoallv_table.py --shapes), with noise. What the table lacks is simulated and added to it.
"""

from __future__ import annotations

import math
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from alltoallv_lookup import find
from alltoallv_simulators import Pattern, compile_cluster, simulate_own
from colltune.alltoallv.launches import AlltoallvExploration, AlltoallvOptions
from colltune.alltoallv.lookup_table import LIBRARY, Setting, Shape, setting_of
from colltune.alltoallv.lookup_table import load_table as load_rules
from colltune.alltoallv.samples import Blocks, direct_above_bytes
from colltune.alltoallv.tune_table import tune_alltoallv
from colltune.core.sample import Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point, weight_of
from colltune.distill.decide import Decided
from colltune.measure.contract import Effort
from colltune.search.campaign import Outcome
from make_alltoallv_table import PARTS, SHAPES_TABLE, SIZES, TABLE, append, load_table

WHOLE = Shape(64, 16)
LAUNCH_S, LAUNCH_SD, CALL_SD = 5.0, 0.05, 0.05  # of a launch in seconds; of the logarithm of a time
_REQUEST_S = 1e-3
AVERAGES = tuple(size // 2 for size in sorted(SIZES))  # of blocks drawn uniformly up to a size

Key = tuple[Shape, Setting, Pattern]
Tried = tuple[Callable[[Shape], Sequence[Setting]], Callable[[Setting, Shape], Sequence[Setting]]]


@dataclass
class SimulatedPatterns:
    """A job on the simulated cluster. A choice is slower or faster throughout a launch, by chance."""

    program: Path
    known: dict[Key, float]
    nodes: int = WHOLE.nodes
    ppn: int = WHOLE.ppn
    environment: Environment = field(
        default_factory=lambda: Environment("mpich", "5.0.2", "0" * 64, "fat tree", WHOLE.nodes, WHOLE.ppn, "single")
    )
    spent_s: float = 0.0
    watch: None = None
    keep: bool = True  # what is simulated goes into the table
    _settings: dict[Shape, list[Setting]] = field(default_factory=dict)

    def now_s(self) -> float:
        return self.spent_s

    def launch(self, seed: int, number: int) -> SimulatedLaunch:
        self.spent_s += LAUNCH_S
        return SimulatedLaunch(self, seed, number)

    def settings(self, shape: Shape) -> list[Setting]:
        """What the table has for ``shape`` at every size: the library's own first."""
        if shape not in self._settings:
            patterns = [Pattern("uniform", size) for size in SIZES]
            some = [setting for where, setting, pattern in self.known if (where, pattern) == (shape, patterns[0])]
            whole = [one for one in some if all((shape, one, pattern) in self.known for pattern in patterns)]
            self._settings[shape] = whole
        return self._settings[shape]

    def times_s(self, scenario: Scenario, choices: Sequence[Choice]) -> list[float]:
        """Of calls without noise, in seconds."""
        shape, blocks = Shape(scenario.nodes, scenario.ppn), Blocks.of(scenario)
        if blocks == Blocks():
            pattern = Pattern("uniform", 2 * scenario.size_bytes)
        else:
            peers = blocks.peers_among(scenario.ranks)
            pattern = Pattern(f"{blocks.distribution}/{peers}", scenario.size_bytes)
        settings = [setting_of(choice) for choice in choices]
        missing = [setting for setting in settings if (shape, setting, pattern) not in self.known]
        asked = [(self._run(setting, scenario), pattern) for setting in missing]
        for setting, timing in zip(missing, simulate_own(self.program, shape, asked) if asked else (), strict=True):
            self.known[shape, setting, pattern] = timing.time_s
            if self.keep:
                append(SHAPES_TABLE, replace(timing, setting=setting))
        return [self.known[shape, setting, pattern] for setting in settings]

    @staticmethod
    def _run(setting: Setting, scenario: Scenario) -> Setting:
        direct = direct_above_bytes(scenario.size_bytes)
        return Setting(setting.algorithm, setting.radix, setting.batch, direct if setting.radix else 0)


@dataclass
class SimulatedLaunch:
    """A PatternLaunch of it."""

    bench: SimulatedPatterns
    seed: int
    number: int
    asked: int = 0
    disturbed: bool = False

    @property
    def environment(self) -> Environment:
        return self.bench.environment

    def set_up_s(self) -> float:
        return 0.01

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            self.asked += 1
            times_s = self.bench.times_s(point.scenario, point.choices)
            both = zip(point.choices, times_s, strict=True)
            yield point, [self._sample(point, choice, time_s, effort) for choice, time_s in both]

    def _sample(self, point: Point, choice: Choice, time_s: float, effort: Effort) -> Sample:
        limited = effort.limited(point.repetitions)
        count = max(limited.fewest, min(limited.most, int(effort.box_s / time_s)))
        pair = zlib.crc32(repr((point.scenario, choice)).encode())
        mode = np.random.default_rng([self.seed, self.number, pair])
        noise = np.random.default_rng([self.seed, self.number, pair, self.asked])
        times = time_s * np.exp(LAUNCH_SD * mode.standard_normal() + CALL_SD * noise.standard_normal(count))
        cost_s = _REQUEST_S + 2.0 * float(times.sum())  # ranks meet before each call
        self.bench.spent_s += cost_s
        return Sample(
            point.scenario,
            choice,
            Status.OK,
            tuple(times.tolist()),
            cost_s=cost_s,
            launch=self.number,
            group=self.asked,
        )

    def close(self) -> None:
        return


def bench_of(program: Path) -> SimulatedPatterns:
    known = {(t.shape, t.setting, t.pattern): t.time_s for path in (TABLE, SHAPES_TABLE) for t in load_table(path)}
    return SimulatedPatterns(program, known)


@dataclass(frozen=True)
class Score:
    """Sums over parts and sizes by the weight that `tune` gives a part; logarithms of times of uniform blocks."""

    gained: float  # log(library / tuned)
    possible: float  # log(library / fastest setting)
    slower: float  # the weight of what is slower than the library by over 2%, over all of it

    @property
    def captured(self) -> float:
        return round(self.gained / self.possible, 3)


def score(bench: SimulatedPatterns, parts: Sequence[Shape], tuned: Callable[[Shape, int], Setting]) -> Score:
    """``tuned``: the setting of a part at an average block in bytes."""
    gained = possible = slower = weights = 0.0
    for shape in parts:
        weight = weight_of(Scenario("alltoallv", shape.nodes, shape.ppn, 1), WHOLE.nodes, WHOLE.ppn)
        for average in AVERAGES:
            pattern = Pattern("uniform", 2 * average)
            times = {one: bench.known[shape, one, pattern] for one in bench.settings(shape)}
            setting = tuned(shape, average)
            tuned_s = times[Setting(setting.algorithm, setting.radix, setting.batch)]
            gained += weight * math.log(times[LIBRARY] / tuned_s)
            possible += weight * math.log(times[LIBRARY] / min(times.values()))
            slower += weight * (tuned_s > 1.02 * times[LIBRARY])
            weights += weight
    return Score(gained, possible, slower / weights)


def nothing(_setting: Setting, _shape: Shape) -> Sequence[Setting]:
    """Nothing is nearby of what the table holds: it has no other settings."""
    return ()


def captured_shapes(budget_s: float = 1200.0, seed: int = 1, most_ranks: int = 128) -> dict[str, float]:
    """Tunes parts of up to ``most_ranks`` in ``budget_s`` of the cluster's clock: the share of the headroom it brings.

    The patterns of the proof are simulated for each part: of 1,024 ranks one takes seconds.
    """
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        bench = bench_of(compile_cluster(place))
        parts = [shape for shape in PARTS if shape.ranks <= most_ranks]
        options = AlltoallvOptions(AVERAGES, budget_s, seed, parts=parts, settings=bench.settings, nearby=nothing)
        result = tune_alltoallv(bench, bench.launch, options, place)
        entries = load_rules(result.table)
        found = score(bench, parts, lambda shape, average: find(entries, shape.ranks, shape.ppn, average))
    return {
        "captured_shapes": found.captured,
        "captured_shapes_parts": float(len(parts)),
        "captured_shapes_most_ranks": float(most_ranks),
        "captured_shapes_rules": float(sum(map(len, result.rules.values()))),
        "captured_shapes_harmed": round(found.slower, 4),
        "captured_shapes_clock_s": round(bench.now_s(), 1),
    }


def explored(
    bench: SimulatedPatterns, parts: Sequence[Shape], tried: Tried, budget_s: float, seed: int
) -> tuple[Outcome, Decided]:
    """By a launch of ``bench``; ``tried``: the settings, and what is nearby of one."""
    settings, nearby = tried
    options = AlltoallvOptions(AVERAGES, budget_s, seed, settings=settings, nearby=nearby)
    launch = bench.launch(seed, 0)
    return AlltoallvExploration(launch, lambda _samples: None, options, parts, budget_s, clock=bench.now_s).run()


def explored_shapes(budget_s: float = 400.0, seed: int = 1) -> dict[str, float]:
    """The same of all parts of 64 x 16, up to 1,024 ranks, before the proof: by what is decided to be put to it."""
    bench = bench_of(Path())  # nothing of this has to be simulated
    outcome, decided = explored(bench, PARTS, (bench.settings, nothing), budget_s, seed)
    choices = {(Shape(s.nodes, s.ppn), s.size_bytes): setting_of(choice) for s, choice in decided.choices.items()}
    found = score(bench, PARTS, lambda shape, average: choices.get((shape, average), LIBRARY))
    pairs = sum(len(bench.settings(shape)) for shape in PARTS) * len(AVERAGES)
    return {
        "explored_shapes": found.captured,
        "explored_shapes_parts": float(len(PARTS)),
        "explored_shapes_harmed": round(found.slower, 4),
        "explored_shapes_measured": round(len(outcome.samples) / pairs, 3),
        "explored_shapes_clock_s": round(bench.now_s(), 1),
    }
