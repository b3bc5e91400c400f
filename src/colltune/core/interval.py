"""An estimate between its bounds, how many times as fast a choice is for one, and the verdicts on such estimates."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import geometric_mean

_VAGUE = 2.0  # set by hand


class SpeedVerdict(StrEnum):
    """What measurements say of a speed-up, from the best to the worst. Whoever compares uses the first four.

    HOLDS and CHANGED are of what an earlier measurement said, measured again: nothing speaks against it, or another
    figure surely came out.
    """

    FASTER = "faster"
    SAME = "same"
    HOLDS = "holds"
    OPEN = "open"
    CHANGED = "changed"
    SLOWER = "slower"
    UNMEASURED = "not measured"
    GONE = "does not run here"


# Those that a comparison may come to.
COMPARED = (SpeedVerdict.FASTER, SpeedVerdict.SAME, SpeedVerdict.OPEN, SpeedVerdict.SLOWER)


@dataclass(frozen=True, slots=True)
class Interval:
    """``low`` and ``high`` are infinite where too little was measured for a bound; the lower one of a ratio may be 0.

    A speed-up is the default's time over that of a choice: above 1 the choice is faster.
    """

    estimate: float
    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        return f"{self.estimate:.2f}"

    @classmethod
    def mean(cls, speedups: Iterable["Interval"]) -> "Interval":
        """Geometric means of estimates and of bounds, of one speed-up at least."""
        columns = zip(*((speedup.estimate, speedup.low, speedup.high) for speedup in speedups), strict=True)
        return cls(*(geometric_mean(column) if min(column) > 0.0 else 0.0 for column in columns))

    def scaled(self, by: Callable[[float], float]) -> "Interval":
        """Through an increasing function; an infinite bound stays infinite."""
        return Interval(by(self.estimate), *(end if math.isinf(end) else by(end) for end in (self.low, self.high)))

    @property
    def is_telling(self) -> bool:
        """Of a speed-up: whether it is not half and double at once. Otherwise it is not printed."""
        return self.low > 1.0 / _VAGUE or self.high < _VAGUE

    def bounds_text(self, form: Callable[[float], str] = "{:.2f}".format) -> str:
        """``1.05 to 1.37``, or ``less to 1.37`` where nothing bounds it below."""
        low, high = (
            "less" if self.low in (-math.inf, 0.0) else form(self.low),
            form(self.high) if self.high < math.inf else "more",
        )
        return f"{low} to {high}"

    def excludes(self, value: float) -> bool:
        """Whether it is surely above ``value``, or surely below."""
        return self.low > value or self.high < value
