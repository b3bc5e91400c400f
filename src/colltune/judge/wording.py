"""A speed-up in words: the same in every table, sentence and JSON document."""

from collections.abc import Mapping

from colltune.core.interval import Interval

# Heads of the columns that `cells` fills.
COLUMNS = ("speed-up>", "interval>")
NOT_KNOWN = "not known"


def cells(speedup: Interval | None) -> tuple[str, str]:
    """Under ``COLUMNS``; empty where there is none."""
    if speedup is None:
        return "", ""
    return f"{speedup.estimate:.2f}", speedup.bounds_text() if speedup.is_bounded else NOT_KNOWN


def text(speedup: Interval) -> str:
    """``1.20 (1.05 to 1.37)``; "not known" without any bound."""
    return f"{speedup.estimate:.2f} ({speedup.bounds_text()})" if speedup.is_bounded else NOT_KNOWN


def at_least(speedup: Interval) -> str:
    """``1.30x (at least 1.22)``."""
    return f"{speedup.estimate:.2f}x (at least {speedup.low:.2f})"


def record(speedup: Interval | None) -> Mapping[str, float | None]:
    """The three fields of a JSON document; a bound that is infinite becomes null there."""
    ends = (None, None, None) if speedup is None else (speedup.estimate, speedup.low, speedup.high)
    return dict(zip(("speedup", "speedup_low", "speedup_high"), ends, strict=True))
