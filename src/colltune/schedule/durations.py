"""The expected time of a measurement, learned from earlier measurements."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import Sample
from colltune.core.scenario import PER_BLOCK, Scenario

Floats = NDArray[np.float64]
# The line is fitted anew once there are so many times more samples.
_GROWTH = 1.2
# Samples of one kind below which there is no line.
_FEWEST = 3
_LEAST_S = 1e-6
# How much each column is doubted: what rounds or bytes explain as well is not put down to messages or relaying.
_DOUBT = 1e-3 * np.array([0.0, 1.0, 10.0, 1.0, 10.0])
# Columns: a constant, rounds of a tree, messages of a linear algorithm, bytes that move, bytes that each rank sends on.
_MESSAGES, _BYTES, _RELAYED = 2, 3, 4
_OF_BYTES = (_BYTES, _RELAYED)
# F statistic from which the part of the bytes is believed: a line through noise on a few bytes would say anything of a
# megabyte.
_CLEAR = 10.0


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
        # What was said of a scenario, as long as nothing changes that it follows from.
        self._expected: dict[Scenario, float] = {}
        self._feared: dict[Scenario, float] = {}

    def tell(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            if sample.cost_s > 0.0:
                self._seen[_kind(sample.scenario)].append((sample.scenario, sample.cost_s))
                several = sample.scenario.nodes > 1
                moved = (float(_row(sample.scenario)[_BYTES]), sample.cost_s)
                before = self._widest.get(several), self._most_ranks.get(several)
                self._widest[several] = max(moved, self._widest.get(several, moved))
                self._most_ranks[several] = max(sample.scenario.ranks, self._most_ranks.get(several, 0))
                if before != (self._widest[several], self._most_ranks[several]):
                    self._feared = {}
        for kind, seen in self._seen.items():
            if len(seen) >= max(_FEWEST, self._fitted.get(kind, 0) * _GROWTH):
                self._lines[kind] = _line(seen)
                self._fitted[kind] = len(seen)
                self.version += 1
                self._expected, self._feared = {}, {}

    def expect_s(self, scenario: Scenario) -> float:
        """Expected seconds of one choice in ``scenario``. Uses other collectives where its own was not measured."""
        if scenario not in self._expected:
            self._expected[scenario] = self._expect_s(scenario)
        return self._expected[scenario]

    def _expect_s(self, scenario: Scenario) -> float:
        row, line = _row(scenario), self._lines.get(_kind(scenario))
        several = scenario.nodes > 1
        if line is not None:
            # Where only small messages were measured, what bytes cost is known from the other collectives.
            borrowed_s = 0.0 if _tells_of_bytes(line) else self._for_bytes_s(row, several)
            return max(float(row @ line) + borrowed_s, _LEAST_S)
        akin = [other for kind, other in self._lines.items() if kind[1] == several] or list(self._lines.values())
        return max([float(row @ other) for other in akin] + [_LEAST_S]) if akin else self._first_s

    def fear_s(self, scenario: Scenario) -> float:
        """As ``expect_s``, but where nothing tells what bytes cost, all that was seen is put down to them.

        On more ranks than were measured, all of it is taken to grow with these.
        """
        if scenario not in self._feared:
            self._feared[scenario] = self._fear_s(scenario)
        return self._feared[scenario]

    def _fear_s(self, scenario: Scenario) -> float:
        several, row = scenario.nodes > 1, _row(scenario)
        expected_s, widest = self.expect_s(scenario), self._widest.get(several)
        if widest is None:
            return expected_s
        expected_s *= max(1.0, scenario.ranks / self._most_ranks[several])
        if self._for_bytes_s(row, several) > 0.0 or row[_BYTES] == 0.0:
            return expected_s
        return max(expected_s, widest[1] * float(row[_BYTES]) / max(widest[0], 1.0))

    def _for_bytes_s(self, row: Floats, several: bool) -> float:
        """What the bytes cost on one node, or on ``several``, by the collectives that tell; 0 where none does."""
        parts = [
            float(line[_BYTES:] @ row[_BYTES:])
            for kind, line in self._lines.items()
            if kind[1] == several and _tells_of_bytes(line)
        ]
        return float(median(parts)) if parts else 0.0

    @property
    def known(self) -> bool:
        """Whether there is any measurement to learn from."""
        return bool(self._lines)


def _kind(scenario: Scenario) -> tuple[str, bool]:
    return scenario.collective, scenario.nodes > 1


def _solve(rows: Floats, used: Sequence[int]) -> tuple[Floats, float]:
    """Coefficients of the columns ``used`` that come nearest to ones, and the sum of the squared errors."""
    # Rows more, of which each asks that the part of a column be nothing.
    doubt = np.diag(_DOUBT)[1:, used]
    table = np.vstack([rows[:, used], doubt])
    solved = np.linalg.lstsq(table, np.concatenate([np.ones(len(rows)), np.zeros(len(doubt))]), rcond=None)[0]
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
