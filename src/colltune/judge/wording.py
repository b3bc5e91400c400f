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
    return f"{speedup.estimate:.2f}", speedup.bounds_text() if speedup.is_telling else NOT_KNOWN


def text(speedup: Interval) -> str:
    """``1.20 (1.05 to 1.37)``; "not known" where it may be half and double."""
    return f"{speedup.estimate:.2f} ({speedup.bounds_text()})" if speedup.is_telling else NOT_KNOWN


def at_least(speedup: Interval) -> str:
    """``1.30x (at least 1.22)``."""
    return f"{speedup.estimate:.2f}x (at least {speedup.low:.2f})"


def sentence(name: str, speedup: Interval, how: str) -> str:
    """``how``: of what kind its bounds are. A speed-up that may be half and double is not said."""
    neither = "neither surely faster nor surely slower"
    if not speedup.is_telling:
        return f"{name} is {neither}: the {how} holds half and double"
    word = "slower" if speedup.high < 1.0 else "faster" if speedup.low > 1.0 else neither
    return f"{name} is {word}: {speedup.estimate:.2f} times as fast ({speedup.bounds_text()}, {how})"


def record(speedup: Interval | None) -> Mapping[str, float | None]:
    """The three fields of a JSON document; a bound that is infinite becomes null there."""
    ends = (None, None, None) if speedup is None else (speedup.estimate, speedup.low, speedup.high)
    return dict(zip(("speedup", "speedup_low", "speedup_high"), ends, strict=True))
