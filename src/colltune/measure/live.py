"""Measures on the real MPI: one launch of the agent serves the whole campaign."""

import math
import random
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from colltune.core.disturbance import Load
from colltune.core.errors import LaunchError, MeasurementError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.agent_process import AgentProcess, parse_fields
from colltune.measure.contract import Answer, Effort, TimeIsUpError
from colltune.measure.request import (
    AgentEndedError,
    PointRequest,
    Settings,
    read_index,
    read_load,
    read_sample,
    read_seconds,
)
from colltune.measure.watch import Watch, unjudged

# Requests at the agent: one that is measured, and one that it finds when it is done.
_QUEUED = 2
# Launches in a row that may end before a request is begun: one can be bad luck, as a node that goes down.
_BARREN_LAUNCHES = 2
# Bytes at the agent that it may not have read yet. Beyond 64 KiB MPICH's launcher ends the job: "process reading stdin
# too slowly".
UNREAD_BYTES = 1 << 15


@dataclass(frozen=True)
class LivePlan:
    """What a live source needs: how the agent is launched, and how a choice is set.

    ``settings`` gives, for a scenario and a choice, the control variables with the integers to write; ``named`` what
    the agent calls its collective.
    ``silence_s``: seconds without a word from the agent, beyond what the request may take, after which it counts as
    hung. ``on_event`` hears of launches and choices that ended one. ``watch`` judges what others disturbed. ``beside``:
    by nodes and ranks per node, how many communicators on the same nodes make each call at once; 1 where it says none.
    ``place``: a directory with what the job reads, which is removed at its end.
    """

    command: Sequence[str]
    process_environment: Mapping[str, str]
    settings: Callable[[Scenario, Choice], Settings]
    seed: int
    start_timeout_s: float = 60.0
    silence_s: float = 30.0
    clock: Callable[[], float] = time.time
    on_event: Callable[[str, Mapping[str, object]], None] = lambda _kind, _facts: None
    watch: Watch = field(default_factory=unjudged)
    beside: Mapping[tuple[int, int], int] = field(default_factory=dict)
    place: Path | None = None
    named: Callable[[Scenario], str] = lambda scenario: scenario.collective


class LiveSource:
    """A Source on a running MPI job, and one that measures on disjoint nodes at once.

    ``until_s`` (of time.monotonic): what is not answered by then is given up, and its job ended, so that one point that
    takes far longer than it was expected to does not take all the time there is.
    """

    def __init__(self, plan: LivePlan, environment: Environment) -> None:
        self._plan = plan
        self._environment = environment
        self._random = random.Random(plan.seed)
        self._agent: AgentProcess | None = None
        self._next_id = self._next_ticket = 0
        self._barren = 0
        self._ended: set[tuple[str, Choice]] = set()  # choices that ended a job of this source
        self._held: deque[PointRequest] = deque()  # to be sent, in this order
        self._flying: dict[int, PointRequest] = {}  # at the agent, in the order of sending
        self._ready: deque[tuple[int, Point, list[Sample]]] = deque()
        self.until_s = math.inf
        self._resume_s = 0.0  # nothing is sent before: others have the processors
        self.disturbed = False
        self.launches = 0
        self.inside_s = 0.0  # first ranks' time inside calls of the collectives: trials, warm-up and timed ones

    @property
    def environment(self) -> Environment:
        return self._environment

    def close(self) -> None:
        """Ends the job: in good order, unless it is at work on something, which is not waited for."""
        if self._flying:
            self.kill()
        elif self._agent is not None:
            self._agent.close()
            self.disturbed = self._plan.watch.is_disturbed_launch(self._agent.last_lines)
            self._agent = None
        if self._plan.place is not None:
            shutil.rmtree(self._plan.place, ignore_errors=True)

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
        begun: dict[int, Point] = {}
        while True:
            while len(begun) < _QUEUED and (upcoming := next(following, None)) is not None:
                begun[self.begin(upcoming, effort)] = upcoming
            if not begun:
                return
            try:
                answer = self.next_answer()
            except TimeIsUpError:
                return
            if answer.last:
                del begun[answer.ticket]
            if answer.point.choices:
                yield answer.point, answer.samples

    def begin(self, point: Point, effort: Effort, nodes: Sequence[int] | None = None) -> int:
        """Asks for ``point`` on ``nodes`` (positions in the job; the first ones by default). Returns its ticket.

        Points are measured in the order in which they were begun; those on disjoint nodes run at once.
        """
        ticket = self._next_ticket = self._next_ticket + 1
        place = tuple(range(point.scenario.nodes)) if nodes is None else tuple(nodes)
        self._held.append(self._request(ticket, point, effort, place))
        self._send_held()
        return ticket

    def next_answer(self) -> Answer:
        """Waits for the next samples of what was begun.

        Raises LaunchError where nothing can be measured at all, and TimeIsUpError after ``until_s``.
        """
        while not self._ready:
            if time.monotonic() >= self.until_s:
                for request in self._running():  # a busy machine is what keeps one from its end
                    self._plan.watch.is_disturbed(request.load, time.monotonic() - request.began_s)
                self._held.clear()
                self._flying.clear()
                self.kill()
                raise TimeIsUpError
            self._send_held()
            if self._ready:
                break
            if not self._flying and not self._held:
                raise ValueError("nothing was begun")
            if not self._flying:
                time.sleep(max(min(self._resume_s, self.until_s) - time.monotonic(), 0.0))
                continue
            try:
                self._listen()
            except AgentEndedError as end:
                self._recover(end)
        ticket, point, samples = self._ready.popleft()
        left = any(request.ticket == ticket for request in (*self._held, *self._flying.values()))
        left = left or any(other == ticket for other, _, _ in self._ready)
        return Answer(ticket, point, samples, last=not left)

    def _request(
        self, ticket: int, point: Point, effort: Effort, nodes: tuple[int, ...], *, alone: bool = False
    ) -> PointRequest:
        deadline_s = self._plan.silence_s + 5.0 * effort.box_s * len(point.choices)
        beside = self._plan.beside.get((point.scenario.nodes, point.scenario.ppn), 1)
        return PointRequest(0, ticket, point, effort, nodes, deadline_s, alone, beside)

    def _send_held(self) -> None:
        while self._held and time.monotonic() >= self._resume_s and self._may_send(self._held[0]):
            request = self._held.popleft()
            request.point = self._trusted(request.point)
            if not request.point.choices:
                self._ready.append((request.ticket, request.point, []))
                continue
            self.start()
            assert self._agent is not None
            request.id, request.heard_s, request.began_s = self._next_id + 1, time.monotonic(), time.monotonic()
            text = request.text(
                self._plan.settings, self._random.getrandbits(31), self._plan.named(request.point.scenario)
            )
            request.size_bytes = len(text) + 1
            if self._unread and request.size_bytes + sum(r.size_bytes for r in self._unread) > UNREAD_BYTES:
                self._held.appendleft(request)
                return
            self._next_id += 1
            if request.size_bytes > UNREAD_BYTES:
                self._decline(request, f"a request of {request.size_bytes} B; launchers pass on {UNREAD_BYTES} B")
                continue
            self._flying[request.id] = request
            self._agent.send(text)

    @property
    def _unread(self) -> list[PointRequest]:
        """The requests that the agent may not have read yet."""
        return [request for request in self._flying.values() if request.tried < 0]

    def _may_send(self, request: PointRequest) -> bool:
        """Whether all those are answered that share a node with it, but for one that orders itself before it.

        So does one on the very same ranks, and one that rank 0 leads where it leads this one too.
        """
        if self._flying and (request.alone or any(other.alone for other in self._flying.values())):
            return False
        nodes = set(request.nodes)
        sharing = [other for other in self._flying.values() if not nodes.isdisjoint(other.nodes)]
        ordered = all(other.place == request.place or other.nodes[0] == request.nodes[0] == 0 for other in sharing)
        return len(sharing) < _QUEUED and ordered

    def _running(self) -> list[PointRequest]:
        """The requests that the agent is at: those that share no node with an earlier one."""
        running: list[PointRequest] = []
        taken: set[int] = set()
        for request in self._flying.values():
            if taken.isdisjoint(request.nodes):
                running.append(request)
            taken.update(request.nodes)
        return running

    def _trusted(self, point: Point) -> Point:
        """``point`` without the choices that ended the job: one may have been planned before its fault was known.

        The default stays: it is what all others are compared with, and what an application runs in any case.
        """
        ended = {choice for collective, choice in self._ended if collective == point.scenario.collective}
        return replace(point, choices=tuple(c for c in point.choices if c == DEFAULT or c not in ended))

    def _listen(self) -> None:
        """One line of the agent. Raises AgentEndedError if it ends, or falls silent on a request."""
        assert self._agent is not None
        overdue = min(self._running(), key=lambda request: request.heard_s + request.deadline_s)
        silent_s = overdue.heard_s + overdue.deadline_s
        try:
            line = self._agent.read(max(0.0, min(silent_s, self.until_s) - time.monotonic()))
        except TimeoutError:
            if self.until_s < silent_s:
                return
            detail = f"silent for {overdue.deadline_s:.0f} s"
            raise AgentEndedError(Status.HUNG, detail, overdue) from None
        if line is None:
            raise AgentEndedError(Status.CRASHED, self._agent.stderr_text(), None)
        fields = parse_fields(line)
        request = self._flying.get(int(fields["id"])) if fields.get("id", "").isdecimal() else None
        if fields[""] == "error" and (request is not None or fields.get("id") == "-1"):
            self._refused(request, line.split(" ", 2)[-1])
        if request is None or fields[""] == "error":
            return
        try:
            self._hear(request, fields)
        except (KeyError, ValueError) as error:
            raise MeasurementError(
                f"cannot read the agent's answer on {request.point.scenario}: {line[:200]!r}: {error!r}",
                "This is a fault of colltune; please report it",
            ) from error

    def _hear(self, request: PointRequest, fields: Mapping[str, str]) -> None:
        request.heard_s = time.monotonic()
        if fields[""] == "trying":
            request.tried = read_index(fields["choice"], request.point)
            self._barren = 0
        elif fields[""] == "result":
            began_s = self._plan.clock() - (time.monotonic() - request.began_s)
            sample = read_sample(request, fields, self.launches, began_s)
            request.samples[sample.choice] = sample
        elif fields[""] == "alive":
            request.load = read_load(fields)
        elif fields[""] == "done":
            self.inside_s += read_seconds(fields["inside_us"])
            load = read_load(fields)
            samples = [replace(request.samples[choice], load=load) for choice in request.point.choices]
            self._done(request, samples, load, time.monotonic() - request.began_s)

    def _done(self, request: PointRequest, samples: list[Sample], load: Load, wall_s: float) -> None:
        """Hands on what was measured; where others had the processors, measures it again, or says so."""
        if not self._plan.watch.is_disturbed(load, wall_s):
            self._answered(request, samples)
        elif (pause_s := self._plan.watch.pause_s(request.disturbed + 1)) is not None:
            self._resume_s = time.monotonic() + pause_s
            self._landed(request)
            again = self._again(request, request.point, alone=request.alone)
            self._held.appendleft(replace(again, disturbed=request.disturbed + 1))
        else:
            lost = [replace(s, status=Status.DISTURBED) if s.status is Status.OK else s for s in samples]
            self._answered(request, lost)

    def _answered(self, request: PointRequest, samples: list[Sample]) -> None:
        self._landed(request)
        self._ready.append((request.ticket, request.point, samples))

    def _landed(self, request: PointRequest) -> None:
        self._flying.pop(request.id, None)
        for follower in self._running():
            if not set(follower.nodes).isdisjoint(request.nodes):
                follower.heard_s = follower.began_s = time.monotonic()

    def _refused(self, request: PointRequest | None, why: str) -> None:
        """The agent refused ``request``, or one that it could not tell the number of."""
        suspects = [request] if request is not None else self._unread
        if len(suspects) == 1:
            self._decline(suspects[0], why)
        elif suspects:
            # Each is asked for alone, so that the next refusal is known to be its own.
            lost = list(self._flying.values())
            self._flying.clear()
            self.kill()
            again = [self._again(other, other.point, alone=other.alone or other in suspects) for other in lost]
            self._held.extendleft(reversed(again))

    def _decline(self, request: PointRequest, why: str) -> None:
        """``request`` is not measured; that costs its point and nothing else."""
        self._barren = 0
        self._plan.on_event("refused", {"scenario": str(request.point.scenario), "detail": why})
        self._answered(request, self._untimed(request, request.point.choices, Status.UNMEASURED, why))

    def _untimed(self, request: PointRequest, choices: Iterable[Choice], status: Status, why: str) -> list[Sample]:
        """Samples of ``choices`` that have no time, and why."""
        made = partial(Sample, launch=self.launches, group=request.id, started_s=self._plan.clock(), detail=why[:400])
        return [made(request.point.scenario, choice, status) for choice in choices]

    def _recover(self, end: AgentEndedError) -> None:
        """After the job's end: who did it, and what is measured again, before all else.

        Of one request the choice that was begun last is to blame, unless all were begun: then each is measured alone,
        so that the one to blame is known by its own end. Where several requests ran at once, each is measured
        alone, also one of which nothing was heard: that goes through rank 0, and may be late.
        """
        running = self._running()
        lost = list(self._flying.values())
        self._flying.clear()
        self.kill()
        suspects = running if end.request is None else [end.request]
        if all(request.tried < 0 for request in suspects):
            self._nothing_begun(suspects[0], end)
        again: list[PointRequest] = []
        for request in lost:
            if suspects == [request] and request.tried >= 0:
                again += self._blame(request, end)
            else:
                alone = request.alone or (len(suspects) > 1 and request in suspects)
                again.append(self._again(request, request.point, alone=alone))
        self._held.extendleft(reversed(again))

    def _nothing_begun(self, request: PointRequest, end: AgentEndedError) -> None:
        self._barren += 1
        scenario = request.point.scenario
        if self._barren >= _BARREN_LAUNCHES and request.alone:
            # The job ran without it. What began is said by way of rank 0, and the job's end may overtake that.
            request.tried, self._barren = len(request.point.choices) - 1, 0
        elif self._barren >= _BARREN_LAUNCHES:
            raise LaunchError(
                f"{self._barren} MPI jobs ended before they began to measure {scenario}: {end.detail}",
                "Look at the job's own messages above; `colltune doctor` shows what was found",
            )
        else:
            self._plan.on_event("lost", {"scenario": str(scenario), "detail": end.detail})

    def _blame(self, request: PointRequest, end: AgentEndedError) -> list[PointRequest]:
        """What is still to be measured of the request that ended the job."""
        point = request.point
        choices = point.choices
        if request.tried == len(choices) - 1 and len(choices) > 1:
            self._plan.on_event("lost", {"scenario": str(point.scenario), "detail": end.detail})
            return [self._again(request, replace(point, choices=(choice,)), alone=True) for choice in choices]
        culprit = choices[request.tried]
        self._ended.add((point.scenario.collective, culprit))
        self._plan.on_event(
            "quarantine", {"scenario": str(point.scenario), "choice": str(culprit), "status": end.status.value}
        )
        failed = self._untimed(request, [culprit], end.status, end.detail)
        self._ready.append((request.ticket, point, failed))
        rest = tuple(choice for choice in choices if choice != culprit)
        return [self._again(request, replace(point, choices=rest), alone=request.alone)] if rest else []

    def _again(self, request: PointRequest, point: Point, *, alone: bool) -> PointRequest:
        return self._request(request.ticket, point, request.effort, request.nodes, alone=alone)
