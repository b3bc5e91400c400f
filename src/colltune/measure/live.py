"""Measures on the real MPI: one launch of the agent serves the whole campaign."""

from __future__ import annotations

import math
import random
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import LaunchError, MeasurementError
from colltune.core.sample import Environment, Sample, Status
from colltune.core.space import Point
from colltune.measure.agent_process import AgentProcess, parse_fields
from colltune.measure.contract import Effort

# Requests at the agent: one that is measured, and one that it finds when it is done.
_QUEUED = 2
# Launches in a row that may end before a request is begun: one can be bad luck, as a node that goes down.
_BARREN_LAUNCHES = 2
# Beyond the host's patience, after which ranks end themselves: nobody else would, if the host has died too.
_LIMIT_MARGIN_S = 15
Settings = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LivePlan:
    """What a live source needs: how the agent is launched, and how a choice is set.

    ``settings`` gives, for a collective and a choice, the control variables with the integers to write.
    ``silence_s``: seconds without a word from the agent, beyond what the request may take, after which it counts as
    hung. ``on_event`` hears of launches and of choices that ended one.
    """

    command: Sequence[str]
    process_environment: Mapping[str, str]
    settings: Callable[[str, Choice], Settings]
    seed: int
    start_timeout_s: float = 60.0
    silence_s: float = 30.0
    clock: Callable[[], float] = time.time
    on_event: Callable[[str, Mapping[str, object]], None] = lambda _kind, _facts: None


@dataclass
class _Request:
    id: int
    point: Point
    deadline_s: float  # seconds of silence allowed
    tried: int = -1  # the last choice that the agent began


class LiveSource:
    """A Source on a running MPI job."""

    def __init__(self, plan: LivePlan, environment: Environment) -> None:
        self._plan = plan
        self._environment = environment
        self._random = random.Random(plan.seed)
        self._agent: AgentProcess | None = None
        self._next_id = 0
        self._barren = 0
        self._ended: set[tuple[str, Choice]] = set()  # choices that ended a job of this source
        self.launches = 0
        self.inside_s = 0.0  # first rank's time inside calls of the collectives: trials, warm-up and timed ones

    @property
    def environment(self) -> Environment:
        return self._environment

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    def kill(self) -> None:
        """Ends the job without waiting for what it is doing."""
        if self._agent is not None:
            self._agent.kill()
            self._agent = None

    def start(self) -> Mapping[str, str]:
        """Launches the agent unless it runs; what it says of itself: ranks, nodes, thread level."""
        if self._agent is None:
            plan = self._plan
            self._agent = AgentProcess(plan.command, plan.process_environment, plan.start_timeout_s)
            self.launches += 1
            plan.on_event("launch", {"number": self.launches, "command": list(plan.command)})
        return self._agent.ready

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        following = iter(points)
        again: deque[Point] = deque()  # to be measured once more, after a job that ended early
        pending: deque[_Request] = deque()
        upcoming: Point | None = None
        while True:
            while upcoming is not None or len(pending) < _QUEUED:
                if upcoming is None:
                    upcoming = again.popleft() if again else next(following, None)
                if upcoming is None or not self._may_send(pending, upcoming):
                    break
                trusted = self._trusted(upcoming)
                if trusted.choices:
                    pending.append(self._send(trusted, effort))
                upcoming = None
            if not pending:
                return
            request = pending[0]
            try:
                samples = self._answers(request)
            except _AgentEndedError as end:
                samples, retried = self._recover(request, end)
                again.extendleft(reversed([*retried, *(other.point for other in list(pending)[1:])]))
                pending.clear()
            else:
                pending.popleft()
            yield request.point, samples

    @staticmethod
    def _may_send(pending: Sequence[_Request], point: Point) -> bool:
        """One request waits at the agent while another is measured, if both take the same ranks (see dispatch.c)."""
        if not pending:
            return True
        running, following = pending[0].point.scenario, point.scenario
        return len(pending) < _QUEUED and (running.nodes, running.ppn) == (following.nodes, following.ppn)

    def _trusted(self, point: Point) -> Point:
        """``point`` without the choices that ended the job: one may have been planned before its fault was known.

        The default stays: it is what all others are compared with, and what an application runs in any case.
        """
        ended = {choice for collective, choice in self._ended if collective == point.scenario.collective}
        return Point(point.scenario, tuple(c for c in point.choices if c == DEFAULT or c not in ended))

    def _send(self, point: Point, effort: Effort) -> _Request:
        self.start()
        assert self._agent is not None
        self._next_id += 1
        request = _Request(self._next_id, point, self._plan.silence_s + 5.0 * effort.box_s * len(point.choices))
        self._agent.send(self._format_request(request, effort))
        return request

    def _format_request(self, request: _Request, effort: Effort) -> str:
        scenario = request.point.scenario
        words = [
            f"measure id={request.id} collective={scenario.collective} bytes={scenario.size_bytes}",
            f"ppn={scenario.ppn} nodes=0-{scenario.nodes - 1}",
            f"warm_up={effort.warm_up} fewest={effort.fewest} most={effort.most}",
            f"box_us={round(effort.box_s * 1e6)} width_ppm={round(effort.relative_width * 1e6)}",
            f"seed={self._random.getrandbits(31)} limit_s={int(request.deadline_s) + _LIMIT_MARGIN_S}",
        ]
        for choice in request.point.choices:
            settings = self._plan.settings(scenario.collective, choice)
            words.append("choice=" + ",".join(f"{name}={value}" for name, value in settings))
        return " ".join(words)

    def _answers(self, request: _Request) -> list[Sample]:
        """The samples of one request. Raises _AgentEndedError if the agent ends or falls silent first."""
        assert self._agent is not None
        samples: dict[Choice, Sample] = {}
        started_s = self._plan.clock()
        while True:
            try:
                line = self._agent.read(request.deadline_s)
            except TimeoutError:
                raise _AgentEndedError(Status.HUNG, f"silent for {request.deadline_s:.0f} s") from None
            if line is None:
                raise _AgentEndedError(Status.CRASHED, self._agent.stderr_text())
            fields = parse_fields(line)
            if fields[""] != "error" and fields.get("id") != str(request.id):
                continue
            try:
                if fields[""] == "error":
                    raise ValueError("the agent refused the request")
                if fields[""] == "trying":
                    request.tried = _index(fields["choice"], request.point)
                    self._barren = 0
                elif fields[""] == "result":
                    sample = self._sample(request, fields, started_s)
                    samples[sample.choice] = sample
                elif fields[""] == "done":
                    self.inside_s += _seconds(fields["inside_us"])
                    return [samples[choice] for choice in request.point.choices]
            except (KeyError, ValueError) as error:
                raise MeasurementError(
                    f"cannot read the agent's answer on {request.point.scenario}: {line[:200]!r}: {error!r}",
                    "This is a fault of colltune; please report it",
                ) from error

    def _sample(self, request: _Request, fields: Mapping[str, str], started_s: float) -> Sample:
        """Raises KeyError or ValueError for what the agent does not say."""
        status = Status(fields["status"])
        times_s = tuple(_seconds(text, 1e-9) for text in fields.get("times_ns", "").split(",") if text)
        if (status is Status.OK) != bool(times_s):
            raise ValueError(f"{len(times_s)} times with the status {status}")
        return Sample(
            scenario=request.point.scenario,
            choice=request.point.choices[_index(fields["choice"], request.point)],
            status=status,
            times_s=times_s,
            back_to_back_s=_seconds(fields["b2b_us"]) if "b2b_us" in fields else None,
            osu_mean_s=_seconds(fields["osu_us"]) if "osu_us" in fields else None,
            cost_s=_seconds(fields["cost_us"]),
            launch=self.launches,
            group=request.id,
            started_s=started_s,
            detail=fields.get("detail", ""),
        )

    def _recover(self, request: _Request, end: _AgentEndedError) -> tuple[list[Sample], list[Point]]:
        """After the job's end: who did it, and what is measured again.

        The choice that was begun last is to blame, unless all were begun: then each is measured alone, so that the
        one to blame is known by its own end.
        """
        self.kill()
        point = request.point
        choices = point.choices
        if request.tried < 0:
            self._barren += 1
            if self._barren >= _BARREN_LAUNCHES:
                raise LaunchError(
                    f"{self._barren} MPI jobs ended before they began to measure {point.scenario}: {end.detail}",
                    "Look at the job's own messages above; `colltune doctor` shows what was found",
                )
            self._plan.on_event("lost", {"scenario": str(point.scenario), "detail": end.detail})
            return [], [point]
        if request.tried == len(choices) - 1 and len(choices) > 1:
            again = [Point(point.scenario, (choice,)) for choice in choices]
            self._plan.on_event("lost", {"scenario": str(point.scenario), "detail": end.detail})
            return [], again
        culprit = choices[request.tried]
        self._ended.add((point.scenario.collective, culprit))
        self._plan.on_event(
            "quarantine", {"scenario": str(point.scenario), "choice": str(culprit), "status": end.status.value}
        )
        failed = Sample(
            point.scenario,
            culprit,
            end.status,
            launch=self.launches,
            group=request.id,
            started_s=self._plan.clock(),
            detail=end.detail[:400],
        )
        rest = tuple(choice for choice in choices if choice != culprit)
        return [failed], [replace(point, choices=rest)] if rest else []


class _AgentEndedError(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def _index(text: str, point: Point) -> int:
    index = int(text)
    if not 0 <= index < len(point.choices):
        raise ValueError(f"there is no choice {index}")
    return index


def _seconds(text: str, unit_s: float = 1e-6) -> float:
    """A time as the agent writes it, in ``unit_s``. Raises ValueError for what is no duration."""
    value = float(text) * unit_s
    if not 0.0 <= value < math.inf:
        raise ValueError(f"{text} is not a time")
    return value


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
        run = subprocess.run(
            [str(agent), "--resolve", *texts],
            capture_output=True,
            text=True,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
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
    return text.removeprefix("-").isdigit()
