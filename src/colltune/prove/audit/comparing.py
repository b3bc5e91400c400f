"""What is compared of claims: one comparison of each, at once where there is room; and what others compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from colltune.bench.parallel import Lanes, conduct
from colltune.core.proven import Verdict
from colltune.core.sample import Choice, OtherViews, Sample, Scenario
from colltune.core.space import Point
from colltune.core.switchback import Standing
from colltune.measure.contract import Effort, Source
from colltune.prove.audit.case import Case
from colltune.schedule.contract import Task
from colltune.site.index_rows import PairedRatio


def compare(
    source: Source | Lanes,
    cases: Sequence[Case],
    offer: Callable[[Case], Task | None],
    effort: Effort,
    take: Callable[[Point, Sequence[Sample]], None],
    clock: Callable[[], float],
) -> None:
    """Compares each of ``cases`` at what ``offer`` says just before; ``take`` hears of each answer as it comes.

    By a source they are compared one at a time, on the first nodes of the job; by lanes, at once where there is room.
    """
    if not isinstance(source, Lanes):
        points = (task.point for case in cases if (task := offer(case)) is not None)
        for point, samples in source.measure(points, effort):
            take(point, samples)
        return
    waiting = dict(enumerate(cases))
    offered: dict[Point, int] = {}

    def tasks(count: int) -> list[Task]:
        offered.clear()
        tasks: list[Task] = []
        for number, case in list(waiting.items()):
            if len(tasks) == count:
                break
            task = offer(case)
            if task is None:
                del waiting[number]
            elif task.point not in offered:
                offered[task.point] = number
                tasks.append(task)
        return tasks

    def begin(point: Point) -> Point:
        del waiting[offered[point]]
        return point

    conduct(source, effort, tasks, begin, take, clock)


@dataclass
class Elsewhere:
    """``before``, ``applications``: as in Audit. The numbers of these launches are below 0."""

    before: Mapping[tuple[Scenario, Choice], Sequence[PairedRatio]]
    applications: Sequence[Standing]
    baseline: Callable[[Scenario], Choice]
    _numbers: dict[str, int] = field(default_factory=dict, init=False)

    def remember(self, case: Case) -> None:
        """Gives ``case`` what other jobs compared in its scenarios, those that could form all of them.

        The launches of a smaller job lie in one corner of the region: they say nothing of its mean.
        """
        nodes, ppn = (max(getattr(scenario, of) for scenario in case.claim.scenarios) for of in ("nodes", "ppn"))
        for scenario in case.claim.scenarios:
            for ratio in self.before.get((scenario, case.claim.choice), ()):
                reaches = ratio.shape[0] >= nodes and ratio.shape[1] >= ppn
                if reaches and ratio.baseline == self.baseline(scenario):
                    case.take(scenario, self._number(ratio.launch), ratio.value, ratio.others)

    def hear_application(self, case: Case) -> None:
        """Whatever it says, for or against: to pick would make chance look like evidence."""
        for standing in self.applications:
            if standing.of_few or standing.choice != case.claim.choice or case.verdict is not Verdict.OPEN:
                continue
            covered = next((scenario for scenario in case.claim.scenarios if standing.covers(scenario)), None)
            if covered is None:
                continue
            for date, value in standing.launches:
                number = self._number(f"application {date}")
                case.applications.add(number)
                case.take(covered, number, value, OtherViews())

    def _number(self, launch: str) -> int:
        return self._numbers.setdefault(launch, -1 - len(self._numbers))
