"""One comparison of each of several claims: one after the other, or on disjoint parts of the job at once."""

from collections.abc import Callable, Sequence

from colltune.bench.parallel import Lanes, conduct
from colltune.core.sample import Sample
from colltune.core.space import Point
from colltune.measure.contract import Effort, Source
from colltune.prove.audit.case import Case
from colltune.schedule.contract import Task


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
        found: list[Task] = []
        for number, case in list(waiting.items()):
            if len(found) == count:
                break
            task = offer(case)
            if task is None:
                del waiting[number]
            elif task.point not in offered:
                offered[task.point] = number
                found.append(task)
        return found

    def begin(point: Point) -> Point:
        del waiting[offered[point]]
        return point

    conduct(source, effort, tasks, begin, take, clock)
