"""The numbers of a sample as the index keeps them, and the sample made of them again, by the ten thousand at once."""

import struct
from collections.abc import Callable
from functools import cache
from math import nan
from typing import Any, cast

from colltune.core.sample import Choice, Overlap, Sample, Scenario, Status

# The numbers of a sample before those of its repetitions: its times by other conventions in seconds (not a number:
# not taken), cost, start, launch, group, overlap, page faults, and the times in other states of memory.
_BEFORE_TIMES = 13
_STATUSES = {one.value: one for one in Status}


class _Open:
    """A sample while its fields are set.

    A frozen dataclass sets each of them by a call of ``object.__setattr__``, which takes six times as long. Slots of
    the same names lie in the same places, so Python lets the object become a ``Sample``.
    """

    __slots__ = Sample.__slots__


def pack_numbers(sample: Sample) -> bytes:
    """All of ``sample`` but its scenario, choice, status and detail: 64-bit floats, without loss."""
    others = (nan if one is None else one for one in (sample.back_to_back_s, sample.osu_mean_s, sample.skewed_s))
    count = _BEFORE_TIMES + len(sample.times_s)
    overlap = (nan, nan, nan) if sample.overlap is None else sample.overlap
    of = (sample.cost_s, sample.started_s, sample.launch, sample.group, *overlap, sample.faults)
    memory = (nan if one is None else one for one in (sample.kept_s, sample.untouched_s))
    return struct.pack(f"<{count}d", *others, *of, *memory, *sample.times_s)


def unpack_sample(scenario: Scenario, choice: Choice, status: str, numbers: bytes, detail: str) -> Sample:
    """The sample whose numbers were packed. Raises struct.error and KeyError for what was never packed."""
    values = _doubles(len(numbers) // 8)(numbers)
    made: Any = _Open()
    made.scenario, made.choice, made.status, made.detail = scenario, choice, _STATUSES[status], detail
    back_to_back_s, osu_mean_s, skewed_s, made.cost_s, made.started_s, launch, group, compute_s = values[:8]
    made.launch, made.group, made.times_s = int(launch), int(group), values[_BEFORE_TIMES:]
    # What is not a number is equal to nothing, itself included.
    made.back_to_back_s = back_to_back_s if back_to_back_s == back_to_back_s else None
    made.osu_mean_s = osu_mean_s if osu_mean_s == osu_mean_s else None
    made.skewed_s = skewed_s if skewed_s == skewed_s else None
    made.faults, kept_s, untouched_s = values[10:13]
    made.kept_s = kept_s if kept_s == kept_s else None
    made.untouched_s = untouched_s if untouched_s == untouched_s else None
    made.load = None  # what was disturbed is not in an index
    made.overlap = Overlap(*values[7:10]) if compute_s == compute_s else None
    made.__class__ = Sample
    return cast(Sample, made)


@cache
def _doubles(count: int) -> Callable[[bytes], tuple[float, ...]]:
    return struct.Struct(f"<{count}d").unpack
