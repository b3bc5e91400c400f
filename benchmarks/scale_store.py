"""What a campaign on many nodes sends to its agent and leaves in its store: MPICH's broadcasts at invented times.

``request_kb_JOB``: the longest line for the agent, all choices of one call on every second node. ``journal_mb_JOB``:
the journal of as many measurements as fit into 20 minutes at 50 ms each; ``journal_read_s_JOB``: to read it again.
``journal_peak_mb_JOB``: the most memory of a process that does no more than that.
"""

from __future__ import annotations

import math
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from time import process_time

from colltune.catalog import load
from colltune.core.sample import Environment, Sample, Scenario, Status
from colltune.core.space import Point
from colltune.measure.contract import Effort
from colltune.measure.request import PointRequest
from colltune.store.journal import Journal, read_journal
from scale_decide import NAME, Invented, broadcasts

JOBS, SAMPLES, TIMES = {"2048x12": (2048, 12), "10000x12": (10_000, 12)}, 24_000, 10


def scale_store() -> dict[str, float]:
    figures: dict[str, float] = {}
    for job in JOBS:
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # for the memory of this job only
            figures |= alone.submit(stored, job).result()
    return figures


def stored(job: str) -> dict[str, float]:
    nodes, ppn = JOBS[job]
    catalogue = load("mpich", "5.0.2")
    space = broadcasts(catalogue, nodes, ppn)
    pairs = list(islice(space.pairs(), SAMPLES))
    log_times = Invented(pairs).predict(pairs).log_time
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "journal"
        with Journal.create(path, Environment("mpich", "5.0.2", "", "", nodes, ppn, "single")) as journal:
            for (scenario, choice), log_time in islice(cycle(zip(pairs, log_times, strict=True)), SAMPLES):
                times_s = tuple(math.exp(log_time) * (1.0 + n / 97.0) for n in range(TIMES))
                journal.append([Sample(scenario, choice, Status.OK, times_s, cost_s=0.05)])
        written = path.stat().st_size
        began_s = process_time()
        assert len(read_journal(path).samples) == SAMPLES
        read_s = process_time() - began_s
    call = Scenario(NAME, nodes // 2, ppn, 1 << 20)
    point = Point(call, tuple(catalogue.legal(call)))
    named = {choice: catalogue.settings(NAME, choice) for choice in point.choices}
    numbers = {choice: tuple((name, place) for place, (name, _) in enumerate(some)) for choice, some in named.items()}
    request = PointRequest(1, 1, point, Effort(), tuple(range(0, nodes, 2)), 60.0)
    text = request.text(lambda _scenario, choice: numbers[choice], 1)
    return {
        f"request_kb_{job}": round(len(text) / 1024, 1),
        f"journal_mb_{job}": round(written / 2**20, 1),
        f"journal_read_s_{job}": round(read_s, 2),
        f"journal_peak_mb_{job}": peak_mb(),
    }


def peak_mb() -> int:
    """Of this process alone: getrusage tells what the one that began it had."""
    [peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return round(int(peak.split()[1]) / 1024)
