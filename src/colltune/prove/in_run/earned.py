"""What may be risked for calls of a kind: a share of the time in them, in all runs of the program, less what was lost.

Runs leave both: calls are counted in each, also where nothing is tried, and each pair of blocks says what it cost. So
a code that runs a hundred times for a second tries as much as one that runs for a hundred seconds
(docs/design/switchback.md).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from colltune.core.sample import Choice, grouped
from colltune.core.switchback import Cell, Where
from colltune.deploy.explored import CallKind
from colltune.prove.in_run.in_application import cost_s
from colltune.store.applications import ApplicationRun

# Meeting and agreeing takes so many calls of the fastest kind, and no less than this, as long as none was measured.
_AGREE_CALLS, _LEAST_AGREE_S = 8, 20e-6
# What comparing a rule in force with the default costs in a run, in its calls, and the share of them that it may be.
_WATCH_CALLS, _WATCH_SHARE = 50, 0.01


@dataclass(frozen=True)
class Account:
    """Of the calls of one kind on one communicator, over all runs; seconds, means over its ranks.

    ``call_s`` and ``cycle_s``: a call by default, alone and until the next. ``agree_s``: what meeting and agreeing cost
    for a pair. ``by_default_s``: all calls, if all ran by default. ``lost_s``: by trying. ``calls``: of a run.
    ``length``: calls of the latest block by what is to be tried, 0 before the first.
    """

    call_s: float
    cycle_s: float
    agree_s: float
    by_default_s: float
    lost_s: float
    calls: int
    length: int

    def runs_until(self, ratio: tuple[float, float] | None, risk: float) -> int:
        """How many runs it takes to earn a pair of blocks as short as can be, as ct_switch_first decides it."""
        excess = 1.0 if ratio is None else max(math.expm1(min(ratio[1] - ratio[0], 30.0)), 0.0)
        needed_s = (self.lost_s + 4.0 * excess * self.call_s + self.agree_s) / risk - self.by_default_s
        return max(math.ceil(needed_s / max(self.calls * self.call_s, 1e-12)), 0)

    def words(self, ratio: tuple[float, float] | None) -> tuple[int, ...]:
        """As ranks read it (``ct_switch_known``). ``ratio``: mean and error of log(default / tuned), if it is known."""
        mean, error = (0, -1) if ratio is None else (round(1e6 * min(max(end, -30.0), 30.0)) for end in ratio)
        times = self.call_s, self.cycle_s, self.agree_s, self.by_default_s, self.lost_s
        return mean, error, *(max(round(1e9 * time_s), 1) for time_s in times), self.calls, self.length


def accounts(runs: Sequence[ApplicationRun], tried: Mapping[CallKind, Choice]) -> dict[CallKind, Account]:
    """Of each kind in ``tried``, beside what is to be tried there. ``runs``: all of the program, the latest first."""
    cells: defaultdict[Where, list[tuple[Choice, Cell]]] = defaultdict(list)
    agreed: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for run in runs:
        for cell in (cell for job in run.jobs for cell in job.cells if run.record.is_candidate(cell)):
            cells[cell.where].append((run.record.choices[cell.choice], cell))
            if cell.pairs:
                agreed[cell.nodes, cell.ppn].append(cell.agree_s / len(cell.pairs))
    by_kind = {}
    for kind, choice in tried.items():
        shape = kind.nodes, kind.ppn
        fastest_s = min(other.time_s / max(other.calls, 1.0) for other in tried if (other.nodes, other.ppn) == shape)
        guess_s = max(_AGREE_CALLS * fastest_s, _LEAST_AGREE_S)
        by_kind[kind] = _account(kind, choice, cells[kind.where], fmean(agreed[shape] or [guess_s]))
    return by_kind


def _account(kind: CallKind, choice: Choice, cells: Sequence[tuple[Choice, Cell]], agree_s: float) -> Account:
    """``cells``: those of the kind, of all runs and choices."""
    pairs = [pair for _, cell in cells for pair in cell.pairs]
    call_s = median([kind.time_s / max(kind.calls, 1.0), *(pair.by_default.call_s / pair.calls for pair in pairs)])
    own = [pair for other, cell in cells if other == choice for pair in cell.pairs]
    lost_s = sum(cost_s([cell for _, cell in some]) for some in grouped(cells, lambda of: of[0]).values())
    calls = [cell.tuned_calls + cell.default_calls for _, cell in cells]
    alike = max((cell.communicators for _, cell in cells), default=kind.communicators)
    return Account(
        call_s=call_s,
        cycle_s=median(pair.by_default.wall_s / pair.calls for pair in own) if own else call_s,
        agree_s=agree_s,
        by_default_s=(kind.time_s + sum(calls) * call_s) / max(alike, 1),
        lost_s=lost_s / max(alike, 1),
        calls=round(_each(cells[0][1]) if cells else kind.calls / alike),
        length=own[0].calls + max(own[0].calls // 3, 1) if own else 0,
    )


def resting(runs: Sequence[ApplicationRun], in_force: Mapping[CallKind, Choice]) -> set[CallKind]:
    """The kinds whose choice ``in_force`` the next run does not compare with the default: its calls since it was
    compared, and those of another run, do not pay for that."""
    kinds = set()
    for kind, choice in in_force.items():
        cells = [(run, cell) for run in runs for job in run.jobs for cell in job.cells if cell.where == kind.where]
        calls = _each(cells[0][1]) if cells else kind.calls / kind.communicators
        for run, cell in cells:
            if run.record.choices[cell.choice] == choice and cell.pairs:
                break
            calls += _each(cell)
        if calls * _WATCH_SHARE < _WATCH_CALLS:
            kinds.add(kind)
    return kinds


def _each(cell: Cell) -> float:
    """Calls of a communicator."""
    return (cell.tuned_calls + cell.default_calls) / max(cell.communicators, 1)
