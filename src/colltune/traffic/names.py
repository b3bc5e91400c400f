"""Which schedule an algorithm's name stands for: the first pattern that matches the whole name decides."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from colltune.core.sample import Value
from colltune.traffic.rounds import Schedule

Parameters = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class ScheduleSetting:
    """Where a schedule is made for; ``parameters`` are the choice's."""

    nodes: int
    ppn: int
    size_bytes: int
    parameters: Parameters = ()

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    def number(self, name: str, default: int) -> int:
        """A parameter that is a number."""
        return int(dict(self.parameters).get(name, default))


Plan = Callable[[ScheduleSetting], Schedule | None]


@dataclass(frozen=True, slots=True, eq=False)
class Planner:
    """``sized``: the schedule depends on the size, and is made anew for each."""

    plan: Plan
    sized: bool = False

    def __call__(self, setting: ScheduleSetting) -> Schedule | None:
        return self.plan(setting)


def first_match(
    tables: Iterable[Mapping[str, Sequence[tuple[str, Planner]]]], collective: str, algorithm: str
) -> Planner | None:
    """What the first pattern of ``tables`` that matches the whole name stands for; None where there is none."""
    for table in tables:
        for pattern, planner in table.get(collective, ()):
            if (match := re.fullmatch(pattern, algorithm)) is not None:
                text = match.groupdict()
                return replace(planner, plan=partial(planner.plan, **text)) if text else planner
    return None
