"""What runs of the application say of a rule: how much faster it is there, with an interval that holds at any time.

Each pair of neighbouring blocks gives log(time by default / time tuned), once for the whole blocks and once for the
calls alone. Intervals are those of ``colltune.judge.evidence``, with pairs in place of launches
(docs/design/switchback.md).

Where runs have few pairs each, the mean of a run is what counts, and runs are the launches.

What the next run does follows from the runs alone: the same runs give the same answer. A choice comes into force where,
over two runs or more, its calls are surely more than 3% faster and the time with all between them is not surely longer,
and leaves where a run switched it off.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, pstdev

from colltune.core.interval import SpeedVerdict
from colltune.core.proven import THRESHOLD
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis, grouped
from colltune.core.space import Space
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Standing, Where
from colltune.deploy.explored import CallKind
from colltune.judge.evidence import (
    ALPHA,
    FEWEST_LAUNCHES,
    LAUNCH_SPREAD,
    BetweenRuns,
    between_runs,
    interval_of,
    pooled_scale,
    scale_of_few,
)
from colltune.store.applications import ApplicationRun, application_runs

Time = Callable[[BlockTimes], float]
KindOfCalls = tuple[Where, Choice]
_OfRun = tuple[ApplicationRun, Choice, Cell]


def in_blocks(block: BlockTimes) -> float:
    """Seconds of the whole block."""
    return block.wall_s


def in_calls(block: BlockTimes) -> float:
    """Seconds of the calls in it."""
    return block.call_s


def standings(runs: Sequence[ApplicationRun], alpha: float = ALPHA) -> list[Standing]:
    """What ``runs``, the latest first, say together; those with the most calls first. Each bound misses with ``alpha``.

    All pairs of all runs are one sequence: a rule is called slower, or faster, that is so wherever it was looked at.
    """
    between = [spread_between(runs, time) for time in (in_blocks, in_calls)]
    judged = [_standing(cells, between, alpha) for cells in _by_kind(runs).values()]
    return sorted((standing for standing in judged if standing is not None), key=lambda standing: -standing.calls)


def spread_between(runs: Sequence[ApplicationRun], time: Time) -> BetweenRuns:
    """How much what ``runs`` say of the same calls differs from run to run."""
    return between_runs(
        [log_ratios(alike(cell.pairs), time) for _, _, cell in cells] for cells in _by_kind(runs).values()
    )


def _by_kind(runs: Sequence[ApplicationRun]) -> dict[KindOfCalls, list[_OfRun]]:
    """Cells of the same choice, size class and shape, of all ``runs``."""
    kinds: defaultdict[KindOfCalls, list[_OfRun]] = defaultdict(list)
    for run in runs:
        for job in run.jobs:
            for cell in job.cells:
                choice = run.record.choices[cell.choice]
                kinds[cell.where, choice].append((run, choice, cell))
    return kinds


def expected(runs: Sequence[ApplicationRun], time: Time = in_blocks) -> dict[KindOfCalls, tuple[float, float]]:
    """What ``runs`` say of log(default / tuned): the mean of all pairs, and its standard error.

    Also of a single pair, which says little: for how long the next run is to try, and not for what is sure.
    """
    kinds = {}
    for key, cells in _by_kind(runs).items():
        logs = [log for _, _, cell in cells for log in log_ratios(cell.pairs, time)]
        if logs:
            spread = max(pstdev(logs), LAUNCH_SPREAD if len(logs) < FEWEST_LAUNCHES else 0.0)
            kinds[key] = (fmean(logs), spread / math.sqrt(len(logs)))
    return kinds


def said_of(directory: Path, environment: Environment, note: Callable[[str], None]) -> list[Standing]:
    """What the runs in ``directory`` say that were of this MPI, machine and thread level; of any shape of job."""
    here = replace(environment, nodes=1, ppn=1)
    runs = application_runs(directory, note)
    return standings([run for run in runs if replace(run.record.environment, nodes=1, ppn=1) == here])


def without_slower(space: Space, judged: Iterable[Standing]) -> Space:
    """``space`` without the choices that are surely slower in the application, each at the calls where it is."""
    slower = [s for s in judged if s.collective == space.collective and s.verdict is SpeedVerdict.SLOWER]
    if not slower:
        return space

    def legal(scenario: Scenario) -> tuple[Choice, ...]:
        refused = {standing.choice for standing in slower if standing.covers(scenario)}
        return tuple(choice for choice in space.legal(scenario) if choice not in refused)

    return replace(space, legal=legal)


def _standing(cells: Sequence[_OfRun], between: Sequence[BetweenRuns], alpha: float) -> Standing | None:
    """None where there are too few pairs. ``between`` runs, of whole blocks and of calls."""
    of_runs = {
        date: some
        for date, own in grouped(cells, lambda of_run: of_run[0].date).items()
        if (some := alike([pair for _, _, cell in own for pair in cell.pairs]))
    }
    pairs = [pair for some in of_runs.values() for pair in some]
    if len(pairs) < FEWEST_LAUNCHES:
        return None
    run, choice, cell = cells[0]
    of_few = len(pairs) < FEWEST_LAUNCHES * len(of_runs)
    means = [
        (date, fmean(log_ratios(some, in_calls)))
        for date, some in of_runs.items()
        if of_few or len(some) >= FEWEST_LAUNCHES
    ]
    ends = []
    for other, time in zip(between, (in_blocks, in_calls), strict=True):
        if of_few:
            logs = [fmean(log_ratios(some, time)) for some in of_runs.values()]
            ends.append(interval_of(logs, scale_of_few(logs), alpha))
        else:
            logs, counts = log_ratios(pairs, time), [len(some) for some in of_runs.values()]
            ends.append(other.widened(interval_of(logs, pooled_scale([logs]), alpha), alpha, counts))
    return Standing(
        cell.collective,
        choice,
        cell.nodes,
        cell.ppn,
        min(cell.size_least for _, _, cell in cells),
        max(cell.size_most for _, _, cell in cells),
        run.record.bases.get(cell.collective, SizeBasis.MESSAGE),
        sum(cell.tuned_calls + cell.default_calls for _, _, cell in cells),
        len(pairs),
        sum(cell.off for _, _, cell in cells),
        ends[0].scaled(math.exp),
        ends[1].scaled(math.exp),
        tuple(means),
        run.date,
        of_few,
    )


def alike(pairs: Sequence[BlockPair]) -> tuple[BlockPair, ...]:
    """Without the pairs of the first rounds, whose blocks are shorter than a quarter of the usual ones."""
    if not pairs:
        return ()
    usual = median(pair.calls for pair in pairs)
    return tuple(pair for pair in pairs if 4 * pair.calls >= usual)


def log_ratios(pairs: Iterable[BlockPair], time: Time) -> list[float]:
    """log(default / tuned) of each pair; a clock that did not move counts as a nanosecond."""
    return [math.log(max(time(pair.by_default), 1e-9) / max(time(pair.tuned), 1e-9)) for pair in pairs]


def cost_s(cells: Sequence[Cell]) -> float:
    """What trying a choice cost, in seconds of a rank: its blocks, where they took longer in the calls or with all
    between them, and meeting and agreeing. Its gains make up for its losses."""
    pairs = [pair for cell in cells for pair in cell.pairs]
    longer = (sum(time(pair.tuned) - time(pair.by_default) for pair in pairs) for time in (in_calls, in_blocks))
    return max(0.0, *longer) + sum(cell.agree_s for cell in cells)


_FEWEST_RUNS = 2
# Of what nobody looked at, log(default / tuned): mean and deviation.
_UNKNOWN = (0.0, 0.5)


@dataclass(frozen=True)
class NextRun:
    """``in_force``: by kind, the choice, or the default where a rule of the tuning was found slower. ``tried``: one
    choice of each kind that is still open. ``confirmed``: of a predicted choice, True once it is surely faster, False
    where no run finds it faster; nothing while that is open."""

    in_force: Mapping[CallKind, Choice]
    tried: Mapping[CallKind, Choice]
    confirmed: Mapping[CallKind, bool]


def next_run(
    kinds: Iterable[CallKind],
    proven: Callable[[CallKind], Choice],
    standings: Sequence[Standing],
    expected: Mapping[KindOfCalls, tuple[float, float]],
) -> NextRun:
    """``proven``: what the tuning decides for a kind. ``standings`` and ``expected``: what runs of this program say."""
    known = {((s.collective, s.size_most.bit_length(), s.nodes, s.ppn), s.choice): s for s in standings}
    in_force: dict[CallKind, Choice] = {}
    tried: dict[CallKind, Choice] = {}
    confirmed: dict[CallKind, bool] = {}
    for kind in kinds:
        own = proven(kind)
        of_kind = {choice: known.get((kind.where, choice)) for choice in dict.fromkeys((own, *kind.choices))}
        if own != DEFAULT and not _hurts(of_kind[own]):
            in_force[kind] = own
            continue
        if own != DEFAULT:
            in_force[kind] = DEFAULT
        measured = {choice: s for choice, s in of_kind.items() if s is not None and choice != DEFAULT}
        faster = {choice: standing for choice, standing in measured.items() if _pays(standing)}
        if (standing := measured.get(kind.predicted)) is not None:
            promises = not _is_closed(standing) and standing.faster_in_calls.estimate > THRESHOLD
            if _pays(standing) or not promises:
                confirmed[kind] = promises
            elif not faster:
                faster[kind.predicted] = standing  # two findings that agree: other clusters', and of a run here
        if faster:
            in_force[kind] = max(faster, key=lambda choice: faster[choice].faster_in_calls.estimate)
        elif (choice := _tried(kind, measured, expected)) is not None:
            tried[kind] = choice
    return NextRun(in_force, tried, confirmed)


def _hurts(standing: Standing | None) -> bool:
    """Whether it is surely slower, or was switched off in a run: what a rule was before does not bring it back."""
    return standing is not None and (standing.off > 0 or standing.verdict is SpeedVerdict.SLOWER)


def _pays(standing: Standing) -> bool:
    return len(standing.launches) >= _FEWEST_RUNS and standing.faster_in_calls.low > THRESHOLD and not _hurts(standing)


def _is_closed(standing: Standing) -> bool:
    """Whether it is not to be tried again: it hurts, or is surely no more than 3% faster."""
    return _hurts(standing) or standing.faster_in_calls.high <= THRESHOLD


def _tried(
    kind: CallKind, measured: Mapping[Choice, Standing], expected: Mapping[KindOfCalls, tuple[float, float]]
) -> Choice | None:
    """What may be the fastest, by two standard errors: what nobody looked at may be, and what looked slow once is not
    given up. What was predicted comes first. None: all choices are surely no more than 3% faster."""
    open_choices = {}
    for choice in kind.choices:
        if choice not in measured or not _is_closed(measured[choice]):
            mean, error = expected.get((kind.where, choice), _UNKNOWN)
            first = choice == kind.predicted and choice not in measured
            open_choices[choice] = first, mean + 2.0 * error
    return max(open_choices, key=lambda choice: open_choices[choice], default=None)
