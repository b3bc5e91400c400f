"""Many tasks one by one or in several processes, until a time."""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Result = TypeVar("Result")


class OfSeed(Protocol):
    @property
    def seed(self) -> int: ...


Seeded = TypeVar("Seeded", bound=OfSeed)
SeedTask = TypeVar("SeedTask", bound=tuple[int, *tuple[Any, ...]])


def run_seeds(
    make_worker: Callable[[], Callable[[SeedTask], Seeded | None]],
    tasks: Sequence[SeedTask],
    jobs: int,
    deadline_s: float,
    progress: Callable[[int, int, Seeded], None],
    keep: Callable[[Sequence[Seeded]], None],
) -> tuple[list[Seeded], bool]:
    """What the tasks, of which each begins with its seed, gave; and whether time ran out or somebody interrupted.

    ``progress`` is told of each (number, all, result); ``keep`` is given all so far once a seed is complete, and at the
    end what there is. The rest as in ``run_all``.
    """
    found: list[Seeded] = []
    left = Counter(task[0] for task in tasks)
    cut = False
    try:
        for one in run_all(make_worker, tasks, jobs, deadline_s):
            if one is None:
                cut = True
                continue
            found.append(one)
            progress(len(found), len(tasks), one)
            left[one.seed] -= 1
            if left[one.seed] == 0:
                keep(found)
    except KeyboardInterrupt:
        cut = True
    if found:
        keep(found)
    return found, cut


def run_all(
    make_worker: Callable[[], Callable[[Task], Result | None]], tasks: Sequence[Task], jobs: int, deadline_s: float
) -> Iterator[Result | None]:
    """What the tasks give, in the order in which they end; the last is None where the time ran out before all ended.

    ``make_worker`` makes in each of ``jobs`` processes what does a task; it must be picklable where there are several.
    A worker returns None for a task that it did not end by ``deadline_s``, on the monotonic clock.
    """
    if jobs == 1:
        yield from _one_by_one(make_worker(), tasks, deadline_s)
    else:
        yield from _side_by_side(make_worker, tasks, jobs, deadline_s)


def _one_by_one(
    worker: Callable[[Task], Result | None], tasks: Sequence[Task], deadline_s: float
) -> Iterator[Result | None]:
    for task in tasks:
        # Threads of numerical libraries would only get in each other's way.
        with threadpool_limits(1):
            result = worker(task) if time.monotonic() < deadline_s else None
        yield result
        if result is None:
            return


def _side_by_side(
    make_worker: Callable[[], Callable[[Task], Result | None]], tasks: Sequence[Task], jobs: int, deadline_s: float
) -> Iterator[Result | None]:
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (make_worker,))
    following, running = iter(tasks), set[Future[Result | None]]()
    try:
        while True:
            while len(running) < 2 * jobs and time.monotonic() < deadline_s:
                task = next(following, None)
                if task is None:
                    break
                running.add(pool.submit(_in_worker, task))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
        if next(following, None) is not None:
            yield None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: Callable[[Any], Any] | None = None  # of this process


def _begin(make_worker: Callable[[], Callable[[Any], Any]]) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    _worker = make_worker()


def _in_worker(task: Any) -> Any:
    assert _worker is not None, "made when the process began"
    with threadpool_limits(1):
        return _worker(task)
