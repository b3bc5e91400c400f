"""How long a store of many entries takes to be read: by `colltune site status`, and by `tune` before it measures.

    python benchmarks/bench_site_store.py [--entries 10000]

Writes bench/site_store.json and prints it. Every entry is that of a job: 60 samples and 12 comparisons, of random
shapes within 32 x 32 and sizes up to 1 MiB of two collectives, by 20 choices. ``first_s``: to read them all once,
without a cache. ``index_s``: to open the index. ``status_s``: all that `site status` finds out. ``tune_s``: with the
samples of a job of 32 x 32 taken out, and the comparisons of one choice at each scenario, as `tune` does.
``tune_16_new_s``: the same where 16 jobs have added to the store since. Names with ``cpu`` are processor time, which a
loaded machine does not change; the others are wall time.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.space import shapes
from colltune.session.site import status
from colltune.site.entry import Entry, Provenance
from colltune.site.identity import Identity
from colltune.site.index import open_index
from colltune.site.store import SiteStore

HERE = Environment("mpich", "5.0.2", "ab" * 32, "a CPU, 64 cores", 32, 32, "single")
CHOICES = [DEFAULT, *(Choice("tree", (("k", k),)) for k in range(2, 21))]
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
NOW_S = 1.7e9


def entry(number: int) -> Entry:
    """That of the job with this number."""
    draw = random.Random(number)
    said = Provenance(
        "colltune tune", f"u{number % 9}", f"{number}", ("n1", "n2"), NOW_S + 60 * number, NOW_S + 60 * number + 50
    )

    def sample(choice: Choice, launch: int, group: int, scenario: Scenario) -> Sample:
        times = tuple(draw.uniform(1e-5, 2e-5) for _ in range(25))
        started_s = said.began_s + group % 50
        return Sample(scenario, choice, Status.OK, times, 1e-5, 1e-5, 1e-3, launch, group, started_s)

    def scenario() -> Scenario:
        name = draw.choice(("allreduce", "bcast"))
        return Scenario(name, draw.choice(COUNTS), draw.choice(COUNTS), 1 << draw.randint(2, 20))

    samples = [sample(draw.choice(CHOICES), 1, group, scenario()) for group in range(60)]
    looks = [
        sample(choice, launch, group, place)
        for launch in range(1, 4)
        for group in range(4)
        for place in [scenario()]
        for choice in (DEFAULT, CHOICES[1 + group])
    ]
    return Entry(HERE, said, samples, looks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=10_000)
    asked = parser.parse_args()
    key = Identity.of(HERE).key
    with tempfile.TemporaryDirectory() as place:
        store = SiteStore.made(Path(place) / "store")
        for number in range(asked.entries):
            store.add(entry(number))

        places = (
            Scenario(name, *of, 1 << size)
            for name in ("bcast", "allreduce")
            for of in shapes(32, 32)
            for size in range(21)
        )
        claimed = [(place, CHOICES[1 + number % 4]) for number, place in enumerate(places)]

        figures: dict[str, float] = {"entries": asked.entries}

        def time_of(name: str, what: Callable[[], object]) -> None:
            began_s, cpu_s = time.perf_counter(), time.process_time()
            what()
            figures[f"{name}_s"] = round(time.perf_counter() - began_s, 3)
            figures[f"{name}_cpu_s"] = round(time.process_time() - cpu_s, 3)

        def take() -> None:
            index = open_index(store, key)
            list(index.measured(("bcast", "allreduce"), shapes(32, 32)))
            list(index.compared(claimed))

        time_of("first", lambda: open_index(store, key).coverage())
        time_of("index", lambda: open_index(store, key).coverage())
        time_of("tune", take)
        time_of("status", lambda: status(store))
        for number in range(16):
            store.add(entry(asked.entries + number))
        time_of("tune_16_new", take)
        figures["index_mib"] = round(store.index_path(key).stat().st_size / 2**20, 1)
    target = Path("bench/site_store.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
