"""Few wide segments: over which sizes and shapes one choice is made, all of a collective together.

Every claim costs time of the proof, so what is maximised is what the choices gain less a price for each claim. Over the
sizes the optimum is exact, by a shortest path whose states are the choices (Bellman 1958); shapes that decide alike
form boxes of nodes x ranks per node, and of all ways to divide boxes by straight cuts the best is taken, exactly too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from colltune.core.sample import DEFAULT, Choice, Scenario

Floats = NDArray[np.float64]
# Of the luck of being the best of many, the part in what is compared with the default, which is not of these.
_OF_DEFAULT = 0.5
# Spans of nodes whose paths are followed together: their tables fit a cache of the processor.
_AT_ONCE = 16
# First and last count of nodes, first and last of ranks per node, by their places.
_Box = tuple[int, int, int, int]
# (spans, 2): first and last, by their places.
_Spans = NDArray[np.int_]


@dataclass(frozen=True)
class Segments:
    """``worth`` (scenarios, choices): what each choice gains in a scenario, by the weight of that; below 0 it loses.

    NaN where a choice is not to be made: within its segment the default stands. Minus infinity where it breaks its rule
    as well, which costs ``price`` as a claim does. ``price``: of one more claim, by size in bytes, and ``luck``: by
    nodes and ranks per node, what the choice of a shape seems to gain and does not, being the best of many; of several
    shapes it is partly made up for.
    """

    scenarios: Sequence[Scenario]
    choices: Sequence[Choice]
    worth: Floats
    price: Mapping[int, float]
    luck: Mapping[tuple[int, int], float]

    def decide(self) -> dict[Scenario, Choice]:
        """The choice for each scenario; the default where no claim is worth its price."""
        decided: dict[Scenario, Choice] = dict.fromkeys(self.scenarios, DEFAULT)
        rows = {(s.nodes, s.ppn, s.size_bytes): row for row, s in enumerate(self.scenarios)}
        made = np.isfinite(self.worth)
        for n0, n1, p0, p1 in self._boxes():
            spans = np.array([[n0, n1]]), np.array([[p0, p1]])
            path = self._path(_over(self._sums, *spans)[0, 0], float(self._luck(*spans)[0, 0]))
            for size, column in zip(self._sizes, path, strict=True):
                for nodes in self._nodes[n0 : n1 + 1] if column >= 0 else ():
                    for ppn in self._ppns[p0 : p1 + 1]:
                        row = rows.get((nodes, ppn, size))
                        if row is not None and made[row, column]:
                            decided[self.scenarios[row]] = self.choices[column]
        return decided

    @cached_property
    def _nodes(self) -> list[int]:
        return sorted({s.nodes for s in self.scenarios})

    @cached_property
    def _ppns(self) -> list[int]:
        return sorted({s.ppn for s in self.scenarios})

    @cached_property
    def _sizes(self) -> list[int]:
        return sorted({s.size_bytes for s in self.scenarios})

    @cached_property
    def _prices(self) -> Floats:
        return np.array([self.price[size] for size in self._sizes])

    @cached_property
    def _sums(self) -> Floats:
        """(nodes + 1, ppns + 1, sizes, choices): what each choice is worth on all shapes before these."""
        lists = (self._nodes, self._ppns, self._sizes)
        nodes, ppns, sizes = ({value: place for place, value in enumerate(some)} for some in lists)
        table = np.zeros((len(nodes) + 1, len(ppns) + 1, len(sizes), len(self.choices)))
        places = np.array([(nodes[s.nodes] + 1, ppns[s.ppn] + 1, sizes[s.size_bytes]) for s in self.scenarios]).T
        breaks = -self._prices[places[2]][:, None]
        table[tuple(places)] = np.where(np.isneginf(self.worth), breaks, np.nan_to_num(self.worth, nan=0.0))
        return np.asarray(table.cumsum(axis=0).cumsum(axis=1), dtype=np.float32)

    def _luck(self, nodes: _Spans, ppns: _Spans) -> Floats:
        """(nodes, ppns): what the choice of each box seems to gain by luck."""
        return np.asarray(np.sqrt(np.maximum(_over(self._lucks, nodes, ppns), 0.0)))

    @cached_property
    def _lucks(self) -> Floats:
        """(nodes + 1, ppns + 1): the squares of what luck seems to gain on all shapes before these."""
        squares = np.zeros((len(self._nodes) + 1, len(self._ppns) + 1))
        for (nodes, ppn), luck in self.luck.items():
            squares[self._nodes.index(nodes) + 1, self._ppns.index(ppn) + 1] = luck**2
        return np.asarray(squares.cumsum(axis=0).cumsum(axis=1))

    def _boxes(self) -> Iterator[_Box]:
        """Those of the best division of all shapes."""
        if not self.choices or not self.scenarios:
            return
        counts, of_ppn = len(self._nodes), len(self._ppns)
        nodes, ppns = (np.transpose(np.triu_indices(length)) for length in (counts, of_ppn))
        value: Floats = np.zeros((counts,) * 2 + (of_ppn,) * 2)
        value[nodes[:, :1], nodes[:, 1:], ppns[:, 0], ppns[:, 1]] = np.concatenate(
            [self._values(some, ppns) for some in np.array_split(nodes, 1 + len(nodes) // _AT_ONCE)]
        )
        cuts = np.zeros(value.shape, dtype=int)  # 0: stays whole; else after which of its nodes, or of its ppns
        for height, width in product(range(counts), range(of_ppn)):
            n0, p0 = np.arange(counts - height)[:, None], np.arange(of_ppn - width)
            n1, p1 = n0 + height, p0 + width
            first, second = np.arange(height)[:, None, None], np.arange(width)[:, None, None]
            by_nodes = value[n0, n0 + first, p0, p1] + value[n0 + first + 1, n1, p0, p1]
            by_ppn = value[n0, n1, p0, p0 + second] + value[n0, n1, p0 + second + 1, p1]
            whole = value[n0, n1, p0, p1][None]
            # What gains nothing more stays whole; the sums are of 32 bits.
            cuts[n0, n1, p0, p1] = cut = np.concatenate([whole + 1e-6, by_nodes, by_ppn]).argmax(axis=0)
            best = np.take_along_axis(np.concatenate([whole, by_nodes, by_ppn]), cut[None], axis=0)
            value[n0, n1, p0, p1] = best[0]
        ahead = [(0, len(self._nodes) - 1, 0, len(self._ppns) - 1)]
        while ahead:
            a, b, c, d = box = ahead.pop()
            last = a + int(cuts[box]) - 1
            if last < a:
                yield box
            elif last < b:
                ahead += (a, last, c, d), (last + 1, b, c, d)
            else:
                last += c - b
                ahead += (a, b, c, last), (a, b, last + 1, d)

    def _values(self, nodes: _Spans, ppns: _Spans) -> Floats:
        """(nodes, ppns): what the best path through the sizes of each box is worth."""
        luck = self._luck(nodes, ppns)
        quiet, value = np.zeros(luck.shape), np.full((*luck.shape, len(self.choices)), -np.inf, dtype=np.float32)
        for place, price in enumerate(self._prices):
            top = value.max(axis=2)
            start = np.maximum(quiet - _OF_DEFAULT * luck, top - luck) - price
            np.maximum(quiet, top, out=quiet)
            np.maximum(value, start[:, :, None].astype(np.float32), out=value)
            value += _over(self._sums[:, :, place], nodes, ppns)
        return np.asarray(np.maximum(quiet, value.max(axis=2)))

    def _path(self, gains: Floats, luck: float) -> list[int]:
        """The choice at each size on the best path, -1 for the default; ``gains`` (sizes, choices)."""
        quiet, value = 0.0, np.full(gains.shape[1], -np.inf)
        steps: list[tuple[NDArray[np.bool_], int, int]] = []  # which begin a claim, after which state; before quiet
        for gain, price in zip(gains, self._prices, strict=True):
            best = int(value.argmax())
            top = float(value[best])
            after = best if top - luck > quiet - _OF_DEFAULT * luck else -1
            start = max(quiet - _OF_DEFAULT * luck, top - luck) - price
            steps.append((start > value, after, best if top > quiet else -1))
            quiet, value = max(quiet, top), np.maximum(value, start) + gain
        state = int(value.argmax()) if value.max() > quiet else -1
        path: list[int] = []
        for begins, after, before_quiet in reversed(steps):
            path.append(state)
            state = before_quiet if state < 0 else after if begins[state] else state
        return path[::-1]


def _over(sums: Floats, nodes: _Spans, ppns: _Spans) -> Floats:
    """(nodes, ppns, ...): the sum over each box, of a table that holds the sums of all before."""
    of_nodes = sums[nodes[:, 1] + 1] - sums[nodes[:, 0]]
    costs: Floats = of_nodes.take(ppns[:, 1] + 1, axis=1)
    costs -= of_nodes.take(ppns[:, 0], axis=1)
    return costs
