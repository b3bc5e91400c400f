"""How long a store of many entries takes to be read: by `colltune site status`, and by `tune` before it measures.

    python benchmarks/bench_site_store.py [--entries 10000] [--keep DIRECTORY]

Writes bench/site_store.json and prints it. Every entry is that of a job: 60 samples and 12 comparisons, in parts of one
of six shapes up to 32 x 32, of sizes up to 1 MiB of two collectives, by 20 choices, on some of 512 nodes; each
twentieth hands over a tuning of 200 decisions. The machine's minutes are the store's: one entry each. ``first_s``: to
read them all once, without a cache. ``tune_s``: all that a tuning of both collectives in a job of 32 x 32 reads: the
index, the newest sample of each pair, the last tuning, and the comparisons of one choice at each of its
scenarios. ``tune_16_new_s``: the same where 16 jobs have added to the store since. ``status_s``: all that `site status`
finds out; ``command_s``: `colltune site status` as a process. Names with ``cpu`` are processor time, which a loaded
machine changes less; the others are wall time. ``--keep``: make the store there, or use the one that is there.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.core.space import shapes
from colltune.session.site.state import status
from colltune.site.entry import Entry, Identity, Provenance, name_of, pack
from colltune.site.index import open_index, without_collections
from colltune.site.knowledge import recall
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, Tuning, save_tuning
from harness import options_of, write_figures

HERE = Environment("mpich", "5.0.2", "ab" * 32, "a CPU, 64 cores", 32, 32, "single")
SHAPES = ((32, 32), (16, 32), (8, 32), (4, 32), (2, 32), (1, 32))
NODES = 512
COLLECTIVES = ("allreduce", "bcast")
CHOICES = [DEFAULT, *(Choice("tree", (("k", k),)) for k in range(2, 21))]
# So many entries before one that hands over a tuning.
TUNED_EVERY = 20


def entry(number: int, began_s: float) -> Entry:
    """That of the job with this number, which began at ``began_s``."""
    draw = random.Random(number)
    here = replace(HERE, nodes=(shape := draw.choice(SHAPES))[0], ppn=shape[1])
    hosts = tuple(f"n{node:03}" for node in draw.sample(range(NODES), here.nodes))
    said = Provenance("colltune tune", f"u{number % 9}", f"{number}", hosts, began_s, began_s + 50)

    def sample(choice: Choice, launch: int, group: int, scenario: Scenario) -> Sample:
        times = tuple(draw.uniform(1e-5, 2e-5) for _ in range(25))
        started_s = said.began_s + group % 50
        return Sample(scenario, choice, Status.OK, times, 1e-5, 1e-5, 1e-3, launch, group, started_s)

    def scenario() -> Scenario:
        part = draw.choice(shapes(*shape))
        return Scenario(draw.choice(COLLECTIVES), *part, 1 << draw.randint(2, 20))

    samples = [sample(draw.choice(CHOICES), 1, group, scenario()) for group in range(60)]
    looks = [
        sample(choice, launch, group, place)
        for launch in range(1, 4)
        for group in range(4)
        for place in [scenario()]
        for choice in (DEFAULT, CHOICES[1 + group])
    ]
    files = {} if number % TUNED_EVERY else tuning_of(*shape)
    return Entry(here, said, samples, looks, files)


@cache
def tuning_of(nodes: int, ppn: int) -> dict[str, bytes]:
    """The files of a tuning of the shape."""
    places = [Scenario("bcast", *part, 1 << size) for part in shapes(nodes, ppn) for size in range(2, 21)]
    decisions = [Decision(place, CHOICES[1], Verdict.KEPT, (1.2,) * 9, "faster") for place in places[:200]]
    rules = {name: RuleSet.always(name, SizeBasis.MESSAGE) for name in COLLECTIVES}
    here = replace(HERE, nodes=nodes, ppn=ppn)
    with tempfile.TemporaryDirectory() as place:
        save_tuning(Path(place), Tuning(here, rules, {}, {}, Summary(decisions=tuple(decisions))))
        return {MANIFEST: (Path(place) / MANIFEST).read_bytes()}


def tune_reads(store: SiteStore) -> object:
    """What a tuning of a job of 32 x 32 takes out of the store, in the order of `SiteMemory`, and keeps to its end."""
    with without_collections():
        known, index = recall(store, HERE, COLLECTIVES, shapes(32, 32))
    places = (Scenario(name, *of, 1 << size) for name in COLLECTIVES for of in shapes(32, 32) for size in range(2, 21))
    compared = index.compared((place, CHOICES[1 + number % 4]) for number, place in enumerate(places))
    return known, index, compared


def run_status(store: SiteStore) -> None:
    command = [sys.executable, "-m", "colltune", "site", "status", "--store", str(store.directory)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def place_of(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
    else:
        with tempfile.TemporaryDirectory() as place:
            yield Path(place) / "store"


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    key = Identity.of(HERE).key
    figures: dict[str, float] = {"entries": asked.entries}

    def time_of(name: str, what: Callable[[], object]) -> None:
        began_s, cpu_s = time.perf_counter(), _processor_s()
        _kept = what()  # until the time is taken: a tuning does not let go of what it reads either
        figures[f"{name}_s"] = round(time.perf_counter() - began_s, 3)
        figures[f"{name}_cpu_s"] = round(_processor_s() - cpu_s, 3)

    with place_of(asked.keep) as place:
        store = SiteStore.made(place)
        began_s = time.time() - 60.0 * asked.entries
        for number in range(len(store.names().get(key, ())), asked.entries):
            _put(store, entry(number, began_s + 60.0 * number))
        store.index_path(key).unlink(missing_ok=True)
        time_of("first", lambda: open_index(store, key))
        time_of("index", lambda: open_index(store, key))
        time_of("tune", lambda: tune_reads(store))
        time_of("status", lambda: status(store))
        time_of("command", lambda: run_status(store))
        for number in range(16):
            _put(store, entry(-1 - number, time.time()))
        time_of("tune_16_new", lambda: tune_reads(store))
        figures["index_mib"] = round(store.index_path(key).stat().st_size / 2**20, 1)
    write_figures("site_store", figures)


def _put(store: SiteStore, one: Entry) -> None:
    """As the store does, but without a flush of each entry to the disk, which is not what is timed."""
    data = pack(one)
    store.place(one.identity.key, name_of(data)).write_bytes(data)


def _processor_s() -> float:
    """Of this process and of those that it waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    main()
