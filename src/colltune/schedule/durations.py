"""The expected time of a measurement, learned from earlier measurements."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import PER_BLOCK, Sample, Scenario

Floats = NDArray[np.float64]
# The line is fitted anew once there are so many times more samples.
_GROWTH = 1.2
# Samples of one kind below which there is no line.
_FEWEST = 3
_LEAST_S = 1e-6
# The penalty of each column: what rounds or bytes explain as well is not put down to messages or relaying.
_PENALTY = 1e-3 * np.array([0.0, 1.0, 10.0, 1.0, 10.0])
# Columns: a constant, rounds of a tree, messages of a linear algorithm, bytes that move, bytes that each rank sends on.
_MESSAGES, _BYTES, _RELAYED = 2, 3, 4
_OF_BYTES = (_BYTES, _RELAYED)
# F statistic from which the part of the bytes counts: a line through noise on a few bytes would say anything of a
# megabyte.
_CLEAR = 10.0


@dataclass(frozen=True)
class ScenarioRows:
    """Scenarios of one collective as ``rows`` (n, 5) of what time depends on; ``several`` (n,): on several nodes."""

    collective: str
    rows: Floats
    several: NDArray[np.bool_]

    @classmethod
    def of(cls, scenarios: Sequence[Scenario]) -> "ScenarioRows":
        rows = np.array([_row(scenario) for scenario in scenarios]).reshape(-1, 5)
        name = scenarios[0].collective if scenarios else ""
        return cls(name, rows, np.array([scenario.nodes > 1 for scenario in scenarios], dtype=bool))


class Durations:
    """Expected seconds per choice: a constant, parts per round and per message, and parts per byte that moves.

    The constant is for what ranks do before and after; a tree has as many rounds as the ranks have doublings, and a
    linear algorithm a message for each rank. One line per collective, and one each for one node and for several: what
    crosses the network takes longer. Until there are measurements everything takes ``first_s``. Coefficients are not
    negative, and relative errors count.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._seen: defaultdict[tuple[str, bool], list[tuple[Scenario, float]]] = defaultdict(list)
        self._lines: dict[tuple[str, bool], Floats] = {}
        self._fitted: dict[tuple[str, bool], int] = {}
        # On one node, and on several: the most bytes that were moved, and what that took; and the most ranks.
        self._widest: dict[bool, tuple[float, float]] = {}
        self._most_ranks: dict[bool, int] = {}
        self.version = 0  # changes when expectations do

    def tell(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            if sample.cost_s > 0.0:
                several = sample.scenario.nodes > 1
                self._seen[sample.scenario.collective, several].append((sample.scenario, sample.cost_s))
                moved = (float(_row(sample.scenario)[_BYTES]), sample.cost_s)
                before = self._widest.get(several), self._most_ranks.get(several)
                self._widest[several] = max(moved, self._widest.get(several, moved))
                self._most_ranks[several] = max(sample.scenario.ranks, self._most_ranks.get(several, 0))
                self.version += before != (self._widest[several], self._most_ranks[several])
        for kind, seen in self._seen.items():
            if len(seen) >= max(_FEWEST, self._fitted.get(kind, 0) * _GROWTH):
                self._lines[kind] = _line(seen)
                self._fitted[kind] = len(seen)
                self.version += 1

    def expected_s(self, calls: ScenarioRows) -> Floats:
        """(n,): expected seconds of one choice in each of ``calls``. Uses other collectives where its own was not
        measured.
        """
        seconds = np.full(len(calls.rows), self._first_s)
        for several in (False, True):
            rows = calls.rows[mine := calls.several == several]
            line = self._lines.get((calls.collective, several))
            if line is not None:
                # Where only small messages were measured, what bytes cost is known from the other collectives.
                borrowed_s = 0.0 if _tells_of_bytes(line) else self._for_bytes_s(rows, several)
                seconds[mine] = np.maximum(rows @ line + borrowed_s, _LEAST_S)
            elif self._lines:
                akin = [other for kind, other in self._lines.items() if kind[1] == several] or [*self._lines.values()]
                seconds[mine] = np.maximum((rows @ np.stack(akin, axis=1)).max(axis=1), _LEAST_S)
        return seconds

    def worst_cases_s(self, calls: ScenarioRows) -> Floats:
        """As ``expected_s``, but where nothing tells what bytes cost, all that was seen is put down to them.

        On more ranks than were measured, all of it is taken to grow with these.
        """
        seconds = self.expected_s(calls)
        for several, (most_bytes, took_s) in self._widest.items():
            rows = calls.rows[mine := calls.several == several]
            bytes_ = rows[:, _BYTES]
            expected_s = seconds[mine] * np.maximum(1.0, rows[:, _MESSAGES] / self._most_ranks[several])
            unknown = (self._for_bytes_s(rows, several) <= 0.0) & (bytes_ > 0.0)
            seconds[mine] = np.maximum(expected_s, np.where(unknown, took_s * bytes_ / max(most_bytes, 1.0), 0.0))
        return seconds

    def _for_bytes_s(self, rows: Floats, several: bool) -> Floats:
        """(n,): what the bytes cost on one node, or on ``several``, by the collectives that tell; 0 where none does."""
        lines = [line for kind, line in self._lines.items() if kind[1] == several and _tells_of_bytes(line)]
        if not lines:
            return np.zeros(len(rows))
        return np.asarray(np.median(rows[:, _BYTES:] @ np.stack(lines, axis=1)[_BYTES:], axis=1))

    @property
    def known(self) -> bool:
        """Whether there is any measurement to learn from."""
        return bool(self._lines)


def _solve(rows: Floats, used: Sequence[int]) -> tuple[Floats, float]:
    """Coefficients of the columns ``used`` that come nearest to ones, and the sum of the squared errors."""
    # Rows more, of which each asks that the part of a column be nothing.
    penalty = np.diag(_PENALTY)[1:, used]
    table = np.vstack([rows[:, used], penalty])
    solved = np.linalg.lstsq(table, np.concatenate([np.ones(len(rows)), np.zeros(len(penalty))]), rcond=None)[0]
    return solved, float(np.square(rows[:, used] @ solved - 1.0).sum())


def _tells_of_bytes(line: Floats) -> bool:
    return bool(line[_BYTES:].max() > 0.0)


def _row(scenario: Scenario) -> Floats:
    rounds, ranks = math.log2(scenario.ranks), float(scenario.ranks)
    if scenario.collective in PER_BLOCK:
        moved = scenario.size_bytes * ranks
        return np.array([1.0, rounds, ranks, moved, moved * rounds])  # blocks of others are handed on in each round
    return np.array([1.0, rounds, ranks, float(scenario.size_bytes), scenario.size_bytes * ranks])


def _line(seen: Sequence[tuple[Scenario, float]]) -> Floats:
    """Least squares of the relative errors with coefficients of at least 0: negative ones are removed one by one.

    What may be due to the constant as well as to size or ranks is taken to be due to the constant.
    """
    costs = np.array([cost_s for _, cost_s in seen])
    rows = np.stack([_row(scenario) for scenario, _ in seen]) / costs[:, None]
    scale = np.abs(rows).max(axis=0)
    used = [column for column in range(rows.shape[1]) if scale[column] > 0.0]
    rows = rows / np.where(scale > 0.0, scale, 1.0)
    if _BYTES in used:
        without = [column for column in used if column not in _OF_BYTES]
        error, error_without = _solve(rows, used)[1], _solve(rows, without)[1]
        if (error_without - error) * max(len(costs) - len(used), 1) < _CLEAR * error:
            used = without
    while True:
        solved, _ = _solve(rows, used)
        if len(used) == 1 or solved.min() >= 0.0:
            break
        del used[int(solved.argmin())]
    line = np.zeros(rows.shape[1])
    line[used] = np.maximum(solved, 0.0) / scale[used]
    return line
