"""Whole campaigns on recorded tables, a cluster at a time: what the tuning delivers as deployed, its proof included."""

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from colltune.bench.contract import Event, unheard
from colltune.bench.recorded_cluster import RecordedBench, RecordedLaunch
from colltune.bench.replay import ReplaySource, TimeDrift
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Sample, grouped
from colltune.core.space import Point, Weight, weights_by_ranks
from colltune.measure.contract import Effort
from colltune.session.recorded_campaign import DRIFT_SD, LAUNCH_S, LAUNCH_SD, tune_recorded
from colltune.session.tuning.options import Listener, TuneResult
from colltune.store.grid import Grid
from colltune_study.recorded.launch_effects import NO_EFFECTS, LaunchEffects


@dataclass(frozen=True, slots=True)
class Delivery:
    """One campaign. ``harmed``: the share of the weighted scenarios that are slower by more than 3%; ``worst``: the
    greatest time over the default's. ``total_s``: on the replay's clock; ``thinking_s``: what we computed, in seconds
    of the processor; ``thinking_share``: of ``total_s``, the part of it that lay beside no measurement and was charged.
    ``rules``: those that depart from the default; ``decided``: how many of the ``scenarios`` of the table have one.
    """

    table: str
    seed: int
    budget_s: float
    captured: float
    harmed: float
    worst: float
    total_s: float
    fixed_cost_s: float
    thinking_s: float
    kept: int
    rules: int
    thinking_share: float = 0.0
    decided: int = 0
    scenarios: int = 0

    @property
    def overrun(self) -> float:
        return self.total_s / max(self.budget_s, self.fixed_cost_s)


class Thinking:
    """Our own computing since it was made, in seconds of the processor.

    ``spent_s``: all of it; ``charged_s``: without what lay beside a measurement. What the replay itself computes is in
    neither.
    """

    def __init__(self) -> None:
        self._began_s = self._since_s = time.process_time()
        self._replayed_s = self._charged_s = self._hidden_s = 0.0

    @property
    def spent_s(self) -> float:
        return time.process_time() - self._began_s - self._replayed_s

    @property
    def charged_s(self) -> float:
        return self._charged_s + max(time.process_time() - self._since_s - self._hidden_s, 0.0)

    @contextmanager
    def measuring(self) -> Iterator[list[Sample]]:
        """While the samples that it is given are replayed; what is computed next lies beside their measurement."""
        self._charged_s, began_s, samples = self.charged_s, time.process_time(), list[Sample]()
        self._since_s = math.inf  # the clock stands still
        yield samples
        self._since_s, self._hidden_s = time.process_time(), sum(sample.cost_s for sample in samples)
        self._replayed_s += self._since_s - began_s


class _ChargedLaunch(RecordedLaunch):
    thinking: Thinking

    def _measured(self, point: Point, effort: Effort) -> list[Sample]:
        with self.thinking.measuring() as samples:
            samples += super()._measured(point, effort)
        return samples


@dataclass(frozen=True)
class ChargedBench(RecordedBench):
    """Its clock is charged with our own computing, and the next point is asked for while one is measured.

    As with a real job.
    """

    launch_type: ClassVar[type[RecordedLaunch]] = _ChargedLaunch
    thinking: Thinking = field(default_factory=Thinking)

    def now_s(self) -> float:
        return self.thinking.charged_s + super().now_s()

    def launch(self, seed: int, *, on_event: Event = unheard) -> ReplaySource:
        launch = super().launch(seed, on_event=on_event)
        assert isinstance(launch, _ChargedLaunch)
        launch.ahead, launch.thinking = True, self.thinking
        return launch


def deliver_into(
    out: Path,
    bench: RecordedBench,
    budget_s: float,
    seed: int,
    listener: Listener | None = None,
    *,
    store: Path | None = None,
    weights: Callable[[int, int], Weight] = weights_by_ranks,
) -> tuple[Delivery, TuneResult]:
    """As ``tune_recorded``, with all that is told of it. Raises InputError where there is no default."""
    began_s = time.process_time()
    score, result = tune_recorded(out, bench, budget_s, seed, listener, store=store, weights=weights)
    total_s, budget = bench.now_s(), result.tuning.summary.budget
    thinking = bench.thinking if isinstance(bench, ChargedBench) else None
    delivered = Delivery(
        table=bench.machine,
        seed=seed,
        budget_s=budget_s,
        total_s=total_s,
        fixed_cost_s=budget.fixed_cost_s if budget else 0.0,
        thinking_s=time.process_time() - began_s if thinking is None else thinking.spent_s,
        thinking_share=thinking.charged_s / total_s if thinking is not None else 0.0,
        kept=sum(decision.verdict is Verdict.KEPT for decision in result.decisions),
        rules=sum(rule.choice != DEFAULT for rules in result.tuning.rule_sets.values() for rule in rules.rules),
        **asdict(score),
    )
    return delivered, result


def by_cluster(grids: Iterable[Grid]) -> dict[str, list[Grid]]:
    """The tables of one cluster, which are tuned together: those of one file."""
    return grouped(grids, lambda grid: grid.name.rpartition("/")[0] or grid.name)


def deliver(
    table: str,
    grids: Sequence[Grid],
    budget_s: float,
    seed: int,
    launch_s: float = LAUNCH_S,
    launch_sd: float = LAUNCH_SD,
    *,
    store: Path | None = None,
    charged: bool = False,
    effects: LaunchEffects = NO_EFFECTS,
    weights: Callable[[int, int], Weight] = weights_by_ranks,
) -> Delivery:
    """Tunes all sizes of ``grids``, one cluster's, with ``budget_s``. Raises InputError where there is no default.

    ``store``: that of its site, if it has one. ``charged``: our own computing takes time, where it is not hidden behind
    a measurement; equal seeds then differ a little. ``effects``: what else launches and moments do to times.
    ``weights``: of gains.
    """
    drift, of = TimeDrift(DRIFT_SD, seed), ChargedBench if charged else RecordedBench
    bench = of(grids, launch_s, launch_sd, drift, machine=table, effects=effects)
    with tempfile.TemporaryDirectory() as place:
        return deliver_into(Path(place), bench, budget_s, seed, store=store, weights=weights)[0]
