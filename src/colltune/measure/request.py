"""What a live source asks of the agent, and how its numbers are read (docs/design/agent.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from colltune.core.choice import Choice
from colltune.core.sample import Overlap, Sample
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.measure.resolve import Settings

# Beyond the host's patience, after which ranks end themselves: nobody else would, if the host has died too.
_LIMIT_MARGIN_S = 15


@dataclass
class Request:
    """A point at the agent, or on its way there."""

    id: int
    ticket: int
    point: Point
    effort: Effort
    nodes: tuple[int, ...]
    deadline_s: float  # seconds of silence allowed
    alone: bool = False  # a suspect: nothing else is measured beside it
    tried: int = -1  # the last choice that the agent began
    heard_s: float = 0.0  # when the agent was last heard on it
    began_s: float = 0.0
    size_bytes: int = 0  # of its text
    samples: dict[Choice, Sample] = field(default_factory=dict)

    @property
    def place(self) -> tuple[tuple[int, ...], int]:
        return self.nodes, self.point.scenario.ppn

    def text(self, settings: Callable[[str, Choice], Settings], seed: int) -> str:
        """The line that the agent reads. ``settings``: see LivePlan."""
        scenario, effort = self.point.scenario, self.effort.limited(self.point.repetitions)
        words = [
            f"measure id={self.id} collective={scenario.collective} bytes={scenario.size_bytes}",
            f"ppn={scenario.ppn} nodes={_format_nodes(self.nodes)}",
            f"warm_up={effort.warm_up} fewest={effort.fewest} most={effort.most}",
            f"box_us={round(effort.box_s * 1e6)} width_ppm={round(effort.relative_width * 1e6)}",
            *([f"skew_us={max(round(self.point.skew_s * 1e6), 1)}"] if self.point.skew_s > 0.0 else []),
            f"seed={seed} limit_s={int(self.deadline_s) + _LIMIT_MARGIN_S}",
        ]
        chosen = [settings(scenario.collective, choice) for choice in self.point.choices]
        # Names are long and the same in many choices, so these give their places in the list of names.
        places = {name: place for place, name in enumerate(dict.fromkeys(n for some in chosen for n, _ in some))}
        words += ["names=" + ",".join(places)] if places else []
        words += ["choice=" + ",".join(f"{places[name]}={value}" for name, value in some) for some in chosen]
        return " ".join(words)


def _format_nodes(nodes: Sequence[int]) -> str:
    """(0, 1, 2, 5) -> "0-2,5"."""
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def read_index(text: str, point: Point) -> int:
    """The place of a choice of ``point``. Raises ValueError for what is none."""
    index = int(text)
    if not 0 <= index < len(point.choices):
        raise ValueError(f"there is no choice {index}")
    return index


def read_seconds(text: str, unit_s: float = 1e-6) -> float:
    """A time as the agent writes it, in ``unit_s``. Raises ValueError for what is no duration."""
    value = float(text) * unit_s
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{text} is not a time")
    return value


def read_overlap(fields: Mapping[str, str]) -> Overlap | None:
    """Of a non-blocking call; None where the agent says nothing of it. Raises KeyError or ValueError as it reads."""
    if "pure_us" not in fields:
        return None
    return Overlap(*(read_seconds(fields[name]) for name in ("compute_us", "pure_us", "tested_us")))
