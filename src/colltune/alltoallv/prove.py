"""Proves settings of the non-uniform all-to-all, for all patterns of blocks that the library cannot tell apart.

The audit of all collectives (colltune.prove.audit.audit), twice: first whether a setting is faster with the usual
pattern of each class of fill, then whether it is not slower with the patterns that look the same. A region of both is
of one pattern: parts of the job and sizes that are neighbours and decide alike.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from colltune.alltoallv.lookup_table import FILLS, FORWARDING, Shape, alike, exists, usual
from colltune.alltoallv.samples import Blocks
from colltune.core.errors import LaunchError
from colltune.core.proven import THRESHOLD, Decision, Verdict
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario
from colltune.core.space import weight_of
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.distill.decide import Decided
from colltune.measure.contract import Source
from colltune.prove.audit.audit import EFFORT, Audit
from colltune.prove.audit.claims import ProofTime, claims_of

# On patterns other than the one that it was chosen on, a setting must be proven not to be slower.
HOLDS = 0.98
_SHARE = 0.45  # of the time: for the usual patterns; the rest for what looks like them
# What the calls of a class count over those of the next denser one: what gains most is mostly dense.
_SPARSER = 0.5
# The least log speed-up that a claim is expected to have: it has to be looked at to know.
_LEAST_GAIN = 0.03

Cell = tuple[Scenario, int]  # a plain scenario of alltoallv, and a class of FILLS
Kept = dict[int, dict[Scenario, Choice]]  # by class of fill


@dataclass
class PatternProof:
    """Judges what is decided for the parts of the job ``whole`` until ``deadline_s`` (of ``clock``).

    ``launch_s``: what a launch takes. ``overhead``: what measuring takes over the calls that are timed. ``results``:
    all that was judged; the collective of a scenario names its pattern. ``recorded``: cells of which matrices of the
    application are known: they are proven on these alone, faster with the first and not slower with the others.
    ``fills``: the classes of FILLS that are of use. ``stop`` cuts it off.
    """

    whole: Shape
    open_source: Callable[[], Source]
    record: Callable[[Sequence[Sample]], None]
    deadline_s: float
    launch_s: float = 0.0
    overhead: float = 1.0
    seed: int = 1
    recorded: Mapping[Cell, Sequence[Scenario]] = field(default_factory=dict)
    fills: Sequence[int] = tuple(range(len(FILLS)))
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)
    results: list[Decision] = field(default_factory=list)
    launches: int = field(default=0, init=False)
    _choices: dict[Cell, Choice] = field(default_factory=dict, init=False)

    def run(self, decided: Decided) -> Kept:
        """What was proven of the choices of ``decided``, for plain scenarios. Nothing where it is cut off."""
        self._choices = {
            (scenario, fill): choice
            for scenario, choice in decided.choices.items()
            for fill in self.fills
            if not Blocks.of(scenario).is_recorded
        } | {cell: decided.choices.get(some[0], DEFAULT) for cell, some in self.recorded.items()}
        self._choices = {cell: choice for cell, choice in self._choices.items() if choice != DEFAULT}
        gains = {
            (scenario, fill): decided.gains[self.recorded[scenario, fill][0]]
            if (scenario, fill) in self.recorded
            else _expected(choice, decided.gains[scenario], fill)
            for (scenario, fill), choice in self._choices.items()
        }
        try:
            with self.stop.cuts():
                middle_s = self.clock() + _SHARE * max(self.deadline_s - self.clock(), 0.0)
                first = [(usual(fill), fill) for fill in self.fills]
                gains = self._keep(first, gains, decided, THRESHOLD, middle_s)
                likes = [(pattern, fill) for fill in self.fills for pattern in alike(fill)]
                gains = self._keep(likes, gains, decided, HOLDS, self.deadline_s)
        except INTERRUPTIONS:
            return {}
        kept: Kept = {}
        if self.stop.made:
            return kept
        for scenario, fill in gains:
            kept.setdefault(fill, {})[scenario] = self._choices[scenario, fill]
        return kept

    def _keep(
        self,
        patterns: Iterable[tuple[tuple[str, str], int]],
        gains: Mapping[Cell, float],
        decided: Decided,
        threshold: float,
        deadline_s: float,
    ) -> dict[Cell, float]:
        """Those of ``gains`` that pass with every one of ``patterns`` of their class, with what they gained there.

        A class that a part's ranks cannot have is not kept, for nothing was compared in it.
        """
        asked: dict[Scenario, Cell] = {}
        drawn = gains.keys() - self.recorded.keys()
        for pattern, fill in patterns:
            name = Blocks(*pattern).collective
            for plain, of in drawn:
                if of == fill and exists(pattern, fill, plain.ranks):
                    asked[replace(plain, collective=name)] = (plain, fill)
        for cell in gains.keys() & self.recorded.keys():
            known = self.recorded[cell]
            asked |= dict.fromkeys(known[:1] if threshold > 1.0 else known[1:], cell)
        possible = {cell for cell in drawn if exists(usual(cell[1]), cell[1], cell[0].ranks)} | self.recorded.keys()
        audited = self._audited(asked, gains, decided, threshold, deadline_s)
        # A scenario that was cut out of a region is judged with what is left of it too: it counts if it was kept once.
        faster = (decision for decision in audited if decision.verdict is Verdict.KEPT)
        kept = {decision.scenario: math.log(decision.speedup.estimate) for decision in faster}
        passed = {cell: kept[scenario] for scenario, cell in asked.items() if scenario in kept}
        refused = {cell for scenario, cell in asked.items() if scenario not in kept}
        return {cell: passed.get(cell, gains[cell]) for cell in gains if cell in possible - refused}

    def _audited(
        self,
        asked: Mapping[Scenario, Cell],
        gains: Mapping[Cell, float],
        decided: Decided,
        threshold: float,
        deadline_s: float,
    ) -> Sequence[Decision]:
        choices = {scenario: self._choices[cell] for scenario, cell in asked.items()}
        expected = {scenario: max(gains[cell], _LEAST_GAIN) for scenario, cell in asked.items()}
        weights = {
            scenario: weight_of(plain, self.whole.nodes, self.whole.ppn) * _SPARSER ** (len(FILLS) - 1 - fill)
            for scenario, (plain, fill) in asked.items()
        }
        costs_s = {
            scenario: self.overhead
            * EFFORT.comparison_cost_s(decided.default_s.get(scenario, decided.default_s[plain]), expected[scenario])
            for scenario, (plain, _) in asked.items()
        }
        time = ProofTime(deadline_s - self.clock(), costs_s, self.launch_s)
        claims = claims_of(choices, expected, weights, time)
        if not claims:
            return []
        before = self.launches

        def record(samples: Sequence[Sample]) -> None:
            self.record([replace(sample, launch=before + sample.launch) for sample in samples])

        audit = Audit(
            claims=claims,
            open_source=self._opened,
            record=record,
            baseline=lambda _scenario: DEFAULT,
            cost_s=costs_s.__getitem__,
            total_weight=sum(weights.values()),
            threshold=threshold,
            launch_s=self.launch_s,
            seed=self.seed,
            clock=self.clock,
        )
        try:
            return audit.run(deadline_s)
        except LaunchError:
            return audit.results()  # the launch that ended is known by its choice, and what was proven by then stays so
        finally:
            self.results += audit.results()

    def _opened(self) -> Source:
        self.launches += 1
        return self.open_source()


def _expected(choice: Choice, gain: float, fill: int) -> float:
    """The log speed-up to be expected in a class: the library sends fewer messages there, forwarding as many."""
    return gain + math.log(FILLS[fill]) if choice.algorithm in FORWARDING else gain
