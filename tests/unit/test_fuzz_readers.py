"""Every reader of what others wrote, on thousands of files that are nearly right: an error of ours, or an answer.

``make test`` reads 15 of each, and with many examples 60; the slow suite takes an hour, or COLLTUNE_FUZZ_S seconds.
"""

import os
import re
import resource
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutation import of_arrays
from readers import READERS, Reader

from colltune.core.errors import ColltuneError

SOURCES = [Path(__file__).parents[2] / "src" / package for package in ("colltune", "colltune_study")]
MOST_S, MOST_BYTES = 20.0, 3 << 30


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_BYTES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def one(reader: Reader, random: Random) -> None:
    """Reads one changed file."""
    data = reader.mutation(random.choice(reader.seeds()), random)
    if random.random() < 0.3 and reader.mutation is not of_arrays:
        data = reader.mutation(data, random)
    began_s = time.process_time()
    try:
        reader.read(data)
    except (ColltuneError, *reader.also):
        pass
    assert time.process_time() - began_s < MOST_S, f"{reader.name} took {time.process_time() - began_s:.0f} s"


@pytest.mark.parametrize("name", READERS)
def test_the_files_to_begin_from_are_read(name: str) -> None:
    for seed in READERS[name].seeds():
        READERS[name].read(seed)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_any_file(name: str) -> None:
    @settings(
        max_examples=min(settings.default.max_examples // 2, 60), suppress_health_check=list(HealthCheck), database=None
    )
    @given(st.randoms(use_true_random=False))
    def check(random: Random) -> None:
        one(READERS[name], random)

    check()


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_readers_take_any_file_for_an_hour() -> None:
    """Prints what it read; a failure says which seed finds it again in its reader."""
    ends_s = time.monotonic() + float(os.environ.get("COLLTUNE_FUZZ_S", "3600"))
    first = int(os.environ.get("COLLTUNE_FUZZ_SEED", "0"))
    inputs, faults = 0, Counter[str]()
    spent_s = dict.fromkeys(READERS, 0.0)
    while time.monotonic() < ends_s:
        # Whoever had the least time: a reader of a large file must not keep the others waiting.
        reader = READERS[min(spent_s, key=spent_s.__getitem__)]
        began_s = time.monotonic()
        seed = first + inputs
        try:
            one(reader, Random(seed))
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{reader.name}: {type(error).__name__} at {last.filename}:{last.lineno}"
            if not faults[place]:
                print(f"seed {seed}, {place}: {str(error)[:100]}")
            faults[place] += 1
        spent_s[reader.name] += time.monotonic() - began_s
        inputs += 1
    print(f"{inputs} inputs to {len(READERS)} readers: {faults.total()} uncaught exceptions at {len(faults)} places")
    assert not faults


# They open what is ours, or what the kernel and the MPI at hand wrote.
OURS = {
    "machine.files": "the function that opens",
    "machine.compile": "sources of the package",
    "machine.process": "/proc",
    "measure.watch": "/proc",
    "catalog.read": "a file of the package",
    "simulated.simulated_catalogue": "a file of the package",
    "simulated.simulated_cluster": "sources of the package",
    "core.extras": "a file of the package",
    "training.recorded_algorithms": "a file of the package",
    "store.grid": "a file of the package",
    "site.modules": "files of the package",
    "site.index_rows": "a file of the package",
    "report.charts": "files of the package",
    "prove.replay.conformance": "how far our own program came, in our own folder",
}
OPENS = re.compile(
    r"\b(?:read_file|read_text|read_bytes|parse_json|json\.loads?|tomllib\.loads?|np\.load|csv\.(?:Dict)?[rR]eader)\("
)


def test_every_module_that_reads_has_a_reader_here() -> None:
    known = {name for reader in READERS.values() for name in reader.modules}
    paths = [(path, path.relative_to(source).with_suffix("")) for source in SOURCES for path in source.rglob("*.py")]
    files = {".".join(place.parts): path for path, place in paths}
    for module, path in sorted(files.items()):
        if OPENS.search(path.read_text()) and module not in OURS:
            assert module in known, f"{module} reads a file, and tests/unit/readers.py has no reader of it"
    assert known <= files.keys()
