"""Sizes, durations and counts as people write them."""

import math
import re

from colltune.core.errors import InputError

_SIZE_FACTOR = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    # Message sizes are powers of two by custom, so `64k` means 65,536 bytes as in OSU's benchmarks.
    for _suffix in (_letter, _letter + "b", _letter + "ib"):
        _SIZE_FACTOR[_suffix] = 1024**_power
_DURATION_FACTOR_S = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "m": 60.0, "min": 60.0, "h": 3600.0}
_NUMBER_AND_UNIT = re.compile(r"\s*(\d{1,18}(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*")


def parse_size(text: str | int) -> int:
    """``"64KiB"`` -> 65536 bytes; kB, KB and KiB all mean 1,024. A number is bytes.

    Raises InputError for anything that is not a whole number of bytes >= 0.
    """
    text = str(text)
    match = _NUMBER_AND_UNIT.fullmatch(text)
    factor = _SIZE_FACTOR.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise InputError(f"cannot read the size {text!r}", "Write for example 64KiB, 1MiB or 4096")
    size = float(match.group(1)) * factor
    if size != int(size):
        raise InputError(f"the size {text!r} is not a whole number of bytes", "Write for example 64KiB or 4096")
    return int(size)


def format_size(size_bytes: int) -> str:
    """The shortest exact form: 65536 -> ``"64 KiB"``, 1000 -> ``"1000 B"``."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size_bytes and size_bytes % 1024**power == 0:
            return f"{size_bytes // 1024**power} {unit}"
    return f"{size_bytes} B"


def format_size_range(least_bytes: int, most_bytes: int) -> str:
    """``"1 KiB to 2 KiB"``, or one size."""
    least, most = format_size(least_bytes), format_size(most_bytes)
    return least if least == most else f"{least} to {most}"


def require_sizes(smallest_bytes: int, largest_bytes: int) -> None:
    """Raises InputError where no message has a size from ``smallest_bytes`` to ``largest_bytes``."""
    if largest_bytes < smallest_bytes:
        raise InputError(
            f"--min-size {format_size(smallest_bytes)} is above --max-size {format_size(largest_bytes)}",
            "Give a --max-size that is at least --min-size",
        )


def parse_duration(text: str | float) -> float:
    """``"5m"`` -> 300.0 seconds; ``"1h30m"``, ``"90"`` and a number (both seconds) work too.

    Raises InputError for anything else, and for a duration that is not above zero.
    """
    if isinstance(text, int | float):
        text = f"{float(text):f}"
    total_s, position = 0.0, 0
    while position < len(text):
        match = _NUMBER_AND_UNIT.match(text, position)
        if match is None or match.group(2).lower() not in _DURATION_FACTOR_S:
            raise InputError(f"cannot read the duration {text!r}", "Write for example 90s, 5m or 1h30m")
        total_s += float(match.group(1)) * _DURATION_FACTOR_S[match.group(2).lower()]
        position = match.end()
    if total_s <= 0.0:
        raise InputError(f"the duration {text!r} is not above zero", "Write for example 90s, 5m or 1h30m")
    return total_s


def format_budget(duration_s: float) -> str:
    """A duration as ``parse_duration`` reads it, rounded up: ``"40s"``, ``"12m"``, ``"1h30m"``."""
    if duration_s <= 120.0:
        return f"{max(math.ceil(duration_s / 10.0), 1) * 10}s"
    hours, minutes = divmod(math.ceil(duration_s / 60.0), 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes or not hours else "")


def format_duration(duration_s: float) -> str:
    """A duration with two or three significant figures: ``"12.3 us"``, ``"4.5 s"``, ``"3 min 20 s"``."""
    if duration_s < 0.0:
        return "-" + format_duration(-duration_s)
    if duration_s < 1e-3:
        return f"{duration_s * 1e6:.3g} us"
    if duration_s < 1.0:
        return f"{duration_s * 1e3:.3g} ms"
    if duration_s < 60.0:
        return f"{duration_s:.3g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_times(default_s: float, tuned_s: float) -> str:
    """Two times with their own ratio: ``"18.8 us -> 5.62 us, 3.35x"``; a ratio beside times is nothing else."""
    ratio = default_s / max(tuned_s, 1e-12)
    faster = f"{ratio:.2f}" if 0.1 <= ratio < 100.0 else f"{ratio:.2g}"  # two figures where more would be noise
    return f"{format_duration(default_s)} -> {format_duration(tuned_s)}, {faster}x"


def format_factor(factor: float) -> str:
    """How far values are apart, one over the other, 1 or more: ``"35%"``, ``"a factor of 2.4"``, of 10 at most."""
    if factor > 10.0:
        return "more than a factor of 10"
    return f"{factor - 1.0:.0%}" if factor < 1.995 else f"a factor of {factor:.2g}"


def format_count(count: int, noun: str, plural: str = "") -> str:
    """``"1 decision"``, ``"2 decisions"``; ``plural`` where it is not the noun with an s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
