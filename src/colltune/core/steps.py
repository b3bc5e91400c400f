"""Functions of a whole number that are constant between bounds: how sizes, ranks and ranks per node are decided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

_T = TypeVar("_T")
_U = TypeVar("_U")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Span:
    """The whole numbers from ``low`` to ``high``, both included; None is no upper bound."""

    low: int
    high: int | None

    @property
    def is_empty(self) -> bool:
        return self.high is not None and self.high < self.low

    def holds(self, number: int) -> bool:
        return self.low <= number and (self.high is None or number <= self.high)

    def meets(self, other: Span) -> bool:
        """Whether some number lies in both."""
        return (other.high is None or self.low <= other.high) and (self.high is None or other.low <= self.high)


@dataclass(frozen=True)
class Steps(Generic[_T]):
    """``pairs``: ascending upper bounds, the last one None, each with the value up to there.

    No two neighbours have the same value, so equal functions are equal objects. Make it by ``of``, ``cut`` or
    ``always``. Raises ValueError for pairs that are not so.
    """

    pairs: tuple[tuple[int | None, _T], ...]

    def __post_init__(self) -> None:
        bounds = self.bounds
        if not self.pairs or self.pairs[-1][0] is not None or len(bounds) != len(self.pairs) - 1:
            raise ValueError("the last step, and no other, has no bound")
        if any(one >= other for one, other in pairwise(bounds)):
            raise ValueError(f"bounds that do not ascend: {bounds}")
        if any(one[1] == other[1] for one, other in pairwise(self.pairs)):
            raise ValueError("two neighbouring steps have the same value")

    @classmethod
    def of(cls, pairs: Iterable[tuple[int | None, _T]]) -> Steps[_T]:
        """From (upper bound, value) in order: steps that nothing reaches are left out, equal neighbours become one."""
        kept: list[tuple[int | None, _T]] = []
        for bound, value in pairs:
            last = kept[-1][0] if kept else -1
            if last is None or (bound is not None and bound <= last):
                continue
            if kept and kept[-1][1] == value:
                kept.pop()
            kept.append((bound, value))
        return cls(tuple(kept))

    @classmethod
    def always(cls, value: _T) -> Steps[_T]:
        return cls(((None, value),))

    @classmethod
    def cut(cls, bounds: Iterable[int | None], value_of: Callable[[Span], _T], least: int = 0) -> Steps[_T]:
        """The numbers from ``least`` on, cut behind each of ``bounds``, with the value of each part."""
        ends = sorted({bound for bound in bounds if bound is not None and bound >= least})
        starts = [least, *(end + 1 for end in ends)]
        return cls.of((end, value_of(Span(start, end))) for start, end in zip(starts, (*ends, None), strict=True))

    @property
    def bounds(self) -> tuple[int, ...]:
        """The upper bounds, without the last step, which has none."""
        return tuple(bound for bound, _ in self.pairs if bound is not None)

    @property
    def last(self) -> _T:
        """The value beyond every bound."""
        return self.pairs[-1][1]

    def at(self, number: int) -> _T:
        return self.pairs[bisect_left(self.bounds, number)][1]

    def spans(self, least: int = 0) -> Iterator[tuple[Span, _T]]:
        """The steps that reach numbers from ``least`` on, each as where it holds and its value."""
        low = least
        for bound, value in self.pairs:
            if bound is None or bound >= low:
                yield Span(low, bound), value
                low = low if bound is None else bound + 1

    def map(self, value_of: Callable[[_T], _U]) -> Steps[_U]:
        return Steps.of((bound, value_of(value)) for bound, value in self.pairs)

    def combine(self, other: Steps[_U], value_of: Callable[[_T, _U], _V]) -> Steps[_V]:
        """``value_of`` the values of both, number by number."""
        return Steps.cut((*self.bounds, *other.bounds), lambda span: value_of(self.at(span.low), other.at(span.low)))

    def restrict(self, span: Span, outside: _T) -> Steps[_T]:
        """These steps inside ``span``, and ``outside`` elsewhere."""
        inside = Steps.cut((span.low - 1, span.high), lambda part: span.holds(part.low))
        return self.combine(inside, lambda value, holds: value if holds else outside)
