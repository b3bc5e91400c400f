"""What a tuning was worth in a run of the application, from the pairs of blocks that the live selector measured in it.

For a cell (one choice, one class of sizes, communicators of one shape) each pair of blocks gives log(time by default /
time tuned). Intervals are those of ``judge.evidence``, with pairs in place of launches: they hold whenever the run ends
(docs/design/switchback.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean

from colltune.core.interval import Interval
from colltune.core.sample import Choice
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.judge.evidence import FEWEST_LAUNCHES, interval_of, pooled_scale
from colltune.prove.in_run.in_application import Time, alike, cost_s, in_blocks, in_calls, log_ratios, spread_between
from colltune.store.applications import ApplicationRun

# The chance that any interval of a run misses on one side; both sides together are 5%.
_MISS = 0.025
# An upper bound of a logarithm beyond this says nothing.
_MOST = 100.0
_WIDEST = math.log(_MOST)
_COUNTED = ("communicators", "off", "tuned_calls", "default_calls")
_OF_THE_CELL = ("collective", "size_least", "size_most", "ranks", "nodes", *_COUNTED)


@dataclass(frozen=True)
class CallTimes:
    """Seconds of one call on average over the ranks, by default or tuned: in it, and until the next.

    Geometric means over the pairs of blocks.
    """

    call_s: float
    between_s: float


@dataclass(frozen=True)
class CellGain:
    """``faster``: time by default over time tuned, with all between the calls; ``faster_in_calls``: in them alone.

    ``saved_s`` and ``saved_in_calls_s``: by the calls that ran tuned, of the time of the whole run. ``candidate``: the
    choice is not proven, and was tried in few calls. ``share``: of the job's ranks that make each call.
    """

    collective: str
    choice: Choice
    size_least: int
    size_most: int
    ranks: int
    nodes: int
    communicators: int
    off: int
    tuned_calls: int
    default_calls: int
    pairs: int
    by_default: CallTimes
    tuned: CallTimes
    faster: Interval
    faster_in_calls: Interval
    saved_s: Interval
    saved_in_calls_s: Interval
    candidate: bool = False
    share: float = 1.0


@dataclass(frozen=True)
class ApplicationGain:
    """A run of the application. ``saved_s`` is its time without the tuning less its time with it and no experiment.

    ``experiment_s``: what the experiment cost, by calls that ran by default and by agreeing. ``too_few``: calls that
    met a rule and could not be compared, for they had fewer than three pairs of blocks. ``complete``: it reached
    MPI_Finalize; else it was killed or is still running. ``runs``: how many were compared for what differs between
    runs, which the intervals hold if they are two or more. ``kinds_met``: of calls that met a rule, also where none
    came to a pair of blocks. ``tried``: kinds of calls in which a choice that is not proven was compared, at a cost of
    ``tried_s`` of each rank.
    """

    elapsed_s: float
    ranks: int
    share: int
    saved_s: Interval
    saved_in_calls_s: Interval
    experiment_s: float
    agree_s: float
    too_few: int
    cells: tuple[CellGain, ...]
    complete: bool = True
    runs: int = 1
    kinds_met: int = 0
    tried: int = 0
    tried_s: float = 0.0

    @property
    def untuned_s(self) -> Interval:
        """How long the run would have taken without the tuning, and without the experiment."""
        return self.saved_s.scaled(lambda saved_s: self.elapsed_s - self.agree_s + saved_s)

    @property
    def faster(self) -> Interval:
        """The time of the run without the tuning over that with it, neither with the experiment.

        A bound at which either time is none is no bound.
        """
        ran_s, by_default = self.elapsed_s - self.agree_s, sum(cell.default_calls for cell in self.cells)
        lost = by_default / max(sum(cell.tuned_calls for cell in self.cells), 1)  # by these, of what the others saved
        ratio = self.saved_s.scaled(
            lambda saved_s: min(max(ran_s + saved_s, 0.0) / max(ran_s - lost * saved_s, 1e-9), _MOST)
        )
        return ratio if ratio.high < _MOST else replace(ratio, high=math.inf)

    @property
    def is_sure(self) -> bool:
        """Whether the interval says that the tuning saved time, or that it cost time."""
        return self.saved_s.excludes(0.0)


def gain_of(
    experiment: Experiment,
    choices: Sequence[Choice],
    is_candidate: Callable[[Cell], bool] = lambda _cell: False,
    runs: Sequence[ApplicationRun] = (),
) -> ApplicationGain:
    """What ``experiment`` says. ``choices``: those of the selector's rules, by their numbers. ``is_candidate``: whether
    that of a cell is not proven. ``runs``: this run and earlier ones, whose difference widens the intervals.

    All intervals of a run hold together with 95% (each side of each cell's interval misses with 2.5% over the number of
    cells); so the sums of their ends are an interval of the sum.
    """
    cells = [replace(cell, pairs=alike(cell.pairs)) for cell in experiment.cells]
    judged = [cell for cell in cells if len(cell.pairs) >= FEWEST_LAUNCHES]
    logs = [(log_ratios(cell.pairs, in_blocks), log_ratios(cell.pairs, in_calls)) for cell in judged]
    alpha = _MISS / max(len(judged), 1)
    scales = [pooled_scale([log[side] for log in logs]) for side in (0, 1)]
    between = [spread_between(runs, time) for time in (in_blocks, in_calls)]
    gains = []
    for cell, (wall, call) in zip(judged, logs, strict=True):
        share = cell.ranks / max(experiment.ranks, 1)
        whole, inside = (
            other.widened(interval_of(some, scale, alpha), alpha)
            for other, some, scale in zip(between, (wall, call), scales, strict=True)
        )
        gains.append(_gain(cell, choices[cell.choice], whole, inside, share, experiment.elapsed_s, is_candidate(cell)))
    gains = _within_the_run(gains, experiment.elapsed_s)
    tried = [cell for cell in experiment.cells if cell.pairs and is_candidate(cell)]
    agree_s = sum(cell.agree_s * cell.ranks for cell in experiment.cells) / max(experiment.ranks, 1)
    lost_s = sum(gain.saved_s.estimate * gain.default_calls / max(gain.tuned_calls, 1) for gain in gains)
    return ApplicationGain(
        elapsed_s=experiment.elapsed_s,
        ranks=experiment.ranks,
        share=experiment.share,
        saved_s=total_saved(gains),
        saved_in_calls_s=_total([gain.saved_in_calls_s for gain in gains]),
        experiment_s=agree_s + lost_s,
        agree_s=agree_s,
        too_few=sum(cell.tuned_calls + cell.default_calls for cell in cells if len(cell.pairs) < FEWEST_LAUNCHES),
        cells=tuple(sorted(gains, key=lambda gain: -abs(gain.saved_s.estimate))),
        complete=experiment.complete,
        runs=between[0].runs,
        kinds_met=len(cells),
        tried=len(tried),
        tried_s=sum(cost_s([cell]) * cell.ranks for cell in tried) / max(experiment.ranks, 1),
    )


def _gain(
    cell: Cell, choice: Choice, wall: Interval, call: Interval, share: float, elapsed_s: float, candidate: bool
) -> CellGain:
    """``wall`` and ``call``: of the logarithms of the ratios. ``share``: of the job's ranks that make each call."""
    calls = cell.tuned_calls * share
    return CellGain(
        **{name: getattr(cell, name) for name in _OF_THE_CELL},
        choice=choice,
        pairs=len(cell.pairs),
        by_default=_times(cell, lambda pair: pair.by_default),
        tuned=_times(cell, lambda pair: pair.tuned),
        faster=wall.scaled(math.exp),
        faster_in_calls=call.scaled(math.exp),
        saved_s=_saved(wall, calls, cell, in_blocks, elapsed_s),
        saved_in_calls_s=_saved(call, calls, cell, in_calls, elapsed_s),
        candidate=candidate,
        share=share,
    )


def _saved(log: Interval, calls: float, cell: Cell, time: Time, elapsed_s: float) -> Interval:
    """Seconds that ``calls`` tuned calls saved, from the interval ``log`` of the logarithm of the ratio.

    What disturbs a block may add to it by default and tuned alike, or multiply. In the first case seconds are the ratio
    times the geometric mean of the tuned blocks, as the ratio is one; in the second times the arithmetic one. The
    estimate goes by the first: one block in which the node did other things is not to count for seconds. The interval
    holds both.
    """
    each_s = [max(time(pair.tuned), 1e-9) / pair.calls for pair in cell.pairs]
    usual_s = min(calls * geometric_mean(each_s), elapsed_s)
    mean_s = min(calls * fmean(each_s), elapsed_s)
    low, high = log.low, log.high if log.high <= _WIDEST else math.inf
    low, high = (
        end if math.isinf(end) else pick(time_s * math.expm1(end) for time_s in (usual_s, mean_s))
        for end, pick in ((low, min), (high, max))
    )
    return Interval(usual_s * math.expm1(log.estimate), low, high)


def _within_the_run(gains: Sequence[CellGain], elapsed_s: float) -> list[CellGain]:
    """``gains`` with seconds that all calls of the run together can have saved.

    What lies between the calls of one cell holds calls of others, so the blocks of all cells may add up to more than
    the run; their sums count by the part of it that they are then.
    """
    calls_s = sum(gain.tuned_calls * gain.share * gain.tuned.call_s for gain in gains)
    whole_s = calls_s + sum(gain.tuned_calls * gain.share * gain.tuned.between_s for gain in gains)
    whole, calls = (min(1.0, elapsed_s / max(spent_s, 1e-12)) for spent_s in (whole_s, calls_s))
    return [
        replace(
            gain,
            saved_s=gain.saved_s.scaled(lambda saved_s: saved_s * whole),
            saved_in_calls_s=gain.saved_in_calls_s.scaled(lambda saved_s: saved_s * calls),
        )
        for gain in gains
    ]


def _times(cell: Cell, side: Callable[[BlockPair], BlockTimes]) -> CallTimes:
    """Means over pairs as the ratios have them, geometric ones: the quotient of two such times is the speed-up."""
    call_s, wall_s = (
        geometric_mean(max(time(side(pair)), 1e-9) / max(pair.calls, 1) for pair in cell.pairs)
        for time in (in_calls, in_blocks)
    )
    return CallTimes(call_s, wall_s - call_s)


def total_saved(cells: Sequence[CellGain]) -> Interval:
    """Seconds that the calls of ``cells`` saved together, with all between them."""
    return _total([cell.saved_s for cell in cells])


def _total(parts: Sequence[Interval]) -> Interval:
    """The sum. Without a bound where one of them has none, or there are none."""
    if not parts:
        return Interval(0.0)
    return Interval(*map(sum, zip(*((part.estimate, part.low, part.high) for part in parts), strict=True)))
