"""Proves settings of the non-uniform all-to-all, for all patterns of blocks that the library cannot tell apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from colltune.alltoallv.cells import patterns
from colltune.alltoallv.setting import Shape
from colltune.alltoallv.source import Blocks
from colltune.alltoallv.table import FILLS
from colltune.core.choice import Choice
from colltune.core.proven import ProvenDecision, Verdict
from colltune.core.sample import Sample
from colltune.core.scenario import Scenario
from colltune.core.stop import INTERRUPTIONS, StopRequest
from colltune.measure.contract import Source
from colltune.prove.fresh_launches import Confirmation
from colltune.prove.gate import THRESHOLD
from colltune.prove.time_plan import FEWEST_PROOF_LAUNCHES, PROOF_LAUNCHES

# On patterns other than the one that it was chosen on, a setting must be proven not to be slower.
HOLDS = 0.98
_LAUNCH_SHARE = 0.3  # of the time for one proof, what launches may take before there are fewer of them
_SHARE = 0.45  # of the time that is left: for the usual pattern of a class; the rest for what looks like it


@dataclass
class PatternProof:
    """Judges choices by average block in bytes, the greatest promise first, until ``deadline_s`` (of ``clock``).

    ``launch_s``: what a launch takes. Where launches take too much of the time there are fewer of them.
    ``results``: all that was judged; the collective of a scenario names its pattern. ``stop`` cuts it off.
    """

    shape: Shape
    open_source: Callable[[], Source]
    record: Callable[[Sequence[Sample]], None]
    deadline_s: float
    launch_s: float = 0.0
    clock: Callable[[], float] = time.monotonic
    stop: StopRequest = field(default_factory=StopRequest)
    results: list[ProvenDecision] = field(default_factory=list)

    def run(self, chosen: Mapping[int, Choice]) -> dict[int, dict[int, Choice]]:
        """By class of fill, the densest first, what was kept of ``chosen``; of a class what the one before kept.

        Where it is cut off, only the classes that were judged by then.
        """
        kept: dict[int, dict[int, Choice]] = {}
        candidates = dict(chosen)
        for fill in reversed(range(len(FILLS))):
            alike = [Blocks(*pattern) for pattern in patterns(fill, self.shape.ranks)]
            if not alike or not candidates:
                continue
            try:
                with self.stop.cuts():
                    candidates = self._keep(alike[:1], candidates, THRESHOLD, _SHARE)
                    candidates = self._keep(alike[1:], candidates, HOLDS, 1.0 - _SHARE)
            except INTERRUPTIONS:
                break
            if candidates:
                kept[fill] = candidates
        return kept

    def _keep(
        self, alike: Sequence[Blocks], candidates: Mapping[int, Choice], threshold: float, share: float
    ) -> dict[int, Choice]:
        """Those of ``candidates`` that pass on every one of the patterns."""
        points = {self._scenario(blocks, size): choice for size, choice in candidates.items() for blocks in alike}
        if not points:
            return dict(candidates)
        left_s = max(self.deadline_s - self.clock(), 0.0)
        few = PROOF_LAUNCHES * self.launch_s > _LAUNCH_SHARE * share * left_s
        gate = Confirmation(
            open_source=self.open_source,
            record=self.record,
            threshold=threshold,
            launches=FEWEST_PROOF_LAUNCHES if few else PROOF_LAUNCHES,
            launch_s=self.launch_s,
            clock=self.clock,
        )
        found = gate.run(points, self.clock() + share * left_s)
        self.results += found
        refused = {result.scenario.size_bytes for result in found if result.verdict is not Verdict.KEPT}
        return {size: choice for size, choice in candidates.items() if size not in refused}

    def _scenario(self, blocks: Blocks, size_bytes: int) -> Scenario:
        return Scenario(blocks.collective, self.shape.nodes, self.shape.ppn, size_bytes)
