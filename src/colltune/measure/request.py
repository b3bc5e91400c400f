"""What a live source asks of the agent, and how its numbers are read (docs/design/agent.md).

Control variables by name and value become the integers that this library means by them.
"""

import math
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from colltune.core.disturbance import Load
from colltune.core.errors import LaunchError
from colltune.core.sample import Choice, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.machine.process import run_launch
from colltune.measure.contract import Effort

# Beyond the host's patience, after which ranks end themselves: nobody else would, if the host has died too.
_LIMIT_MARGIN_S = 15
_PATIENCE_S = 60.0
Settings = tuple[tuple[str, int], ...]


@dataclass
class PointRequest:
    """A point at the agent, or on its way there."""

    id: int
    ticket: int
    point: Point
    effort: Effort
    nodes: tuple[int, ...]
    deadline_s: float  # seconds of silence allowed
    alone: bool = False  # a suspect: nothing else is measured beside it
    beside: int = 1  # communicators that make each call at once
    tried: int = -1  # the last choice that the agent began
    heard_s: float = 0.0  # when the agent was last heard on it
    began_s: float = 0.0
    size_bytes: int = 0  # of its text
    load: Load | None = None  # what else runs meanwhile, as far as the agent said in its midst
    disturbed: int = 0  # how often it was measured while others had the processors
    samples: dict[Choice, Sample] = field(default_factory=dict)

    @property
    def place(self) -> tuple[tuple[int, ...], int]:
        return self.nodes, self.point.scenario.ppn

    def text(self, settings: Callable[[Scenario, Choice], Settings], seed: int, named: str = "") -> str:
        """The line that the agent reads. ``settings`` and ``named``: see LivePlan."""
        scenario, effort = self.point.scenario, self.effort.limited(self.point.repetitions)
        words = [
            f"measure id={self.id} collective={named or scenario.collective} bytes={scenario.size_bytes}",
            f"ppn={scenario.ppn} beside={self.beside} nodes={_format_nodes(self.nodes)}",
            f"warm_up={effort.warm_up} fewest={effort.fewest} most={effort.most}",
            f"box_us={round(effort.box_s * 1e6)} width_ppm={round(effort.relative_width * 1e6)}",
            *([f"skew_us={max(round(self.point.skew_s * 1e6), 1)}"] if self.point.skew_s > 0.0 else []),
            f"seed={seed} limit_s={int(self.deadline_s) + _LIMIT_MARGIN_S}",
        ]
        chosen = [settings(scenario, choice) for choice in self.point.choices]
        # Names are long and the same in many choices, so these give their places in the list of names.
        places = {name: place for place, name in enumerate(dict.fromkeys(n for some in chosen for n, _ in some))}
        words += ["names=" + ",".join(places)] if places else []
        words += ["choice=" + ",".join(f"{places[name]}={value}" for name, value in some) for some in chosen]
        return " ".join(words)


def _format_nodes(nodes: Sequence[int]) -> str:
    """(0, 1, 2, 5) -> "0-2,5"."""
    runs = ([node for _, node in run] for _, run in groupby(enumerate(nodes), lambda place: place[1] - place[0]))
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


class AgentEndedError(Exception):
    """``request``: the one that is known to have done it, or None."""

    def __init__(self, status: Status, detail: str, request: PointRequest | None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.request = request


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


def read_load(fields: Mapping[str, str]) -> Load:
    """What else ran during a request; what the agent does not tell is None. Raises ValueError for what is no share."""
    given = {name: fields[name].partition("@") for name in Load._fields if name in fields}
    share = {name: read_seconds(text, 1.0) for name, (text, _, _) in given.items()}
    switches = int(share["switches"]) if "switches" in share else None
    waited, others, stolen, throttled, pressure = map(share.get, Load._fields[:5])
    load = Load(waited, others, stolen, throttled, pressure, switches)
    return load._replace(node=int(given[load.causes[0]][2])) if load.causes else load


def read_sample(request: PointRequest, fields: Mapping[str, str], launch: int, started_s: float) -> Sample:
    """A result of ``request``. Raises KeyError or ValueError for what the agent does not say."""
    status = Status(fields["status"])
    times_s = tuple(read_seconds(text, 1e-9) for text in fields.get("times_ns", "").split(",") if text)
    if (status is Status.OK) != bool(times_s):
        raise ValueError(f"{len(times_s)} times with the status {status}")
    return Sample(
        scenario=request.point.scenario,
        choice=request.point.choices[read_index(fields["choice"], request.point)],
        status=status,
        times_s=times_s,
        back_to_back_s=read_seconds(fields["b2b_us"]) if "b2b_us" in fields else None,
        osu_mean_s=read_seconds(fields["osu_us"]) if "osu_us" in fields else None,
        skewed_s=read_seconds(fields["skewed_us"]) if "skewed_us" in fields else None,
        faults=float(fields.get("faults", 0.0)),
        kept_s=read_seconds(fields["kept_us"]) if "kept_us" in fields else None,
        untouched_s=read_seconds(fields["untouched_us"]) if "untouched_us" in fields else None,
        cost_s=read_seconds(fields["cost_us"]),
        launch=launch,
        group=request.id,
        started_s=started_s,
        detail=fields.get("detail", ""),
    )


def resolve_settings(
    agent: Path, named: Mapping[tuple[str, Choice], Sequence[tuple[str, str]]], environment: Mapping[str, str]
) -> dict[tuple[str, Choice], Settings | None]:
    """Control variables with values by name -> with the integers that this library means by them.

    The library itself is asked, by way of the environment that it reads. None: the library does not know one of the
    names, so the choice cannot be measured. Raises LaunchError where the agent cannot be run at all.
    """
    texts = sorted({f"{name}={value}" for pairs in named.values() for name, value in pairs if not _is_integer(value)})
    known: dict[str, int] = {}
    try:
        run = run_launch([str(agent), "--resolve", *texts], environment, _PATIENCE_S)
        run.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(
            f"the agent {agent} cannot be run: {error}", "Remove it, so that it is compiled anew"
        ) from error
    for line in run.stdout.splitlines():
        text, _, value = line.rpartition(" ")
        if _is_integer(value):
            known[text] = int(value)

    def integers(pairs: Sequence[tuple[str, str]]) -> Settings | None:
        values = [(n, int(v) if _is_integer(v) else known.get(f"{n}={v}")) for n, v in pairs]
        return None if any(value is None for _, value in values) else tuple((n, v) for n, v in values if v is not None)

    return {key: integers(pairs) for key, pairs in named.items()}


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
