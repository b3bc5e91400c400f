"""The readers in C on any bytes, with AddressSanitizer and UndefinedBehaviorSanitizer (tests/native/fuzz_readers.c).

They begin from real files: rules of recorded tunings and of every choice of a catalogue, requests as they are sent.
``make test`` reads some thousands of each; the slow suite takes an hour, or COLLTUNE_FUZZ_S seconds.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from mutation import of_lines
from readers_of_libraries import LIVE, TABLE

from colltune.catalog import Catalogue, load
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.core.space import Point
from colltune.emit.live_rules import LIVE_FILE, MOST_CHOICES, LiveEmitter, format_rules, live_basis
from colltune.machine.compile import COMMON, ENTRY, LIBRARY_PARTS, TIMING_PARTS, source_directory
from colltune.measure.contract import Effort
from colltune.measure.request import PointRequest
from colltune.mpi.installation import Installation
from commands import run_to_end

NATIVE = Path(__file__).parents[1] / "native"
READERS = ("rules", "select", "table", "request", "lines", "blocks")
FLAGS = ("-std=c11", "-g1", "-O0", "-Wall", "-Wextra", "-Werror", "-pthread", "-fno-sanitize-recover=all")
# An input of an agent comes in pieces of 64 KiB.
LONGEST = {"lines": 300_000}


@dataclass(frozen=True)
class Fuzzer:
    program: Path
    guided: bool  # by what the inputs reach: it keeps those that reach something new

    def run(self, reader: str, place: Path, *, runs: int = 0, seconds: int = 0, seed: int = 1) -> tuple[int, int]:
        """How many inputs it was given, until ``runs`` or ``seconds``, and took; fails with what the sanitizers say."""
        if self.guided:
            seeds, reached = place / "seeds", place / "reached"
            for folder in (seeds, reached):
                folder.mkdir(parents=True, exist_ok=True)
            for number, text in enumerate(seeds_of(reader)):
                (seeds / f"{number:03}").write_bytes(text)
            bound = f"-runs={runs}" if runs else f"-max_total_time={seconds}"
            options = [bound, f"-seed={seed}", f"-artifact_prefix={place}/", f"-max_len={longest(reader)}"]
            return self._read(reader, *options, str(reached), str(seeds))
        random, given, taken, ends_s = Random(seed), 0, 0, time.monotonic() + seconds
        place.mkdir(exist_ok=True)
        while given < runs or time.monotonic() < ends_s:
            changed_inputs(reader, place / "inputs", random)
            done = self._read(reader, str(place / "inputs"))
            given, taken = given + done[0], taken + done[1]
        return given, taken

    def _read(self, reader: str, *arguments: str) -> tuple[int, int]:
        options = {"ASAN_OPTIONS": "handle_abort=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        with subprocess.Popen(
            [str(self.program), f"--reader={reader}", *arguments], env={**os.environ, **options}, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            _, said = process.communicate()
        assert process.returncode == 0, said[-6000:]
        done, taken = re.search(r"Done (\d+) runs in", said), re.search(r"(\d+) taken", said)
        assert all((done, taken)), said[-2000:]
        return int(done[1]), int(taken[1])


def longest(reader: str) -> int:
    return LONGEST.get(reader, 16384)


def changed_inputs(reader: str, path: Path, random: Random) -> None:
    """A thousand, each behind its length; the files to begin from come first."""
    seeds = list(seeds_of(reader))
    changed = (of_lines(random.choice(seeds), random) for _ in range(1000 - len(seeds)))
    with path.open("wb") as file:
        for data in (one[: longest(reader)] for one in (*seeds, *changed)):
            file.write(len(data).to_bytes(4, sys.byteorder) + data)


def seeds_of(reader: str) -> Iterator[bytes]:
    match reader:
        case "rules" | "select":
            yield from (path.read_bytes() for path in LIVE)
            for catalogue in (load("mpich", "5.0.2"), load("openmpi", "5.0.11")):
                yield from (every_choice(catalogue, name) for name in catalogue.entries if catalogue.choices(name)[1:])
            yield format_rules([f"choice {number} - -" for number in range(MOST_CHOICES)])
            yield from () if reader == "select" else [TABLE.encode()]
        case "table":
            yield TABLE.encode()
            yield b"\n".join(line.replace(b"parata,radix=4", b"linear,batch=2") for line in TABLE.encode().splitlines())
        case "blocks":
            yield b"alltoallv[uniform,0,7]"
            yield b"alltoallv[counts0,3,10000]"
        case _:
            sent = list(requests(load("mpich", "5.0.2")))
            yield from sent if reader == "request" else [b"\n".join([*sent, b""])]


def every_choice(catalogue: Catalogue, collective: str) -> bytes:
    choices = [one for one in catalogue.choices(collective) if one != DEFAULT][:MOST_CHOICES]
    rules = [Rule(4, 16, 64 << place, choice) for place, choice in enumerate(choices[:30])]
    rules += [Rule(4, 16, None, DEFAULT), Rule(4, None, None, choices[-1]), Rule(None, None, None, DEFAULT)]

    def settings(name: str, choice: Choice) -> Sequence[tuple[str, int]]:
        return [(variable, 1) for variable, _ in catalogue.settings(name, choice)]

    basis = live_basis(catalogue, collective)
    rule_set = RuleSet(collective, basis, tuple(rules[-2:] if basis is SizeBasis.NONE else rules))
    return LiveEmitter(catalogue, settings).emit([rule_set]).get(LIVE_FILE, b"")


def requests(catalogue: Catalogue) -> Iterator[bytes]:
    for number, collective in enumerate(("bcast", "allreduce", "ibarrier")):
        choices = catalogue.choices(collective)[:6] if collective in catalogue.entries else (DEFAULT,)
        point = Point(Scenario(collective, 5, 2, 4096), tuple(choices), skew_s=1e-4 * number)
        request = PointRequest(number, number, point, Effort(), (0, 1, 2, 3, 7), 20.0)
        yield request.text(lambda at, one: [(v, 1) for v, _ in catalogue.settings(at.collective, one)], 7).encode()


def compiled(mpi: Installation, compiler: str, guided: bool, place: Path) -> Path:
    whole, some = (COMMON, ENTRY, *LIBRARY_PARTS), ("agent/request.c", "agent/input.c", "alltoallv_measure/weights.c")
    parts = [source_directory(name) for name in (*whole, "alltoallv_measure", "agent", "include", *TIMING_PARTS)]
    sources = [path for name in whole for path in sorted(source_directory(name).glob("*.c"))]
    sources = [path for path in sources if path.name != "entry_points.c"]  # the names are those of the core here
    sources += [source_directory(name.split("/")[0]).parent / name for name in some]
    sources += [NATIVE / "fuzz_readers.c", *([] if guided else [NATIVE / "fuzz_driver.c"])]
    sanitizers = "-fsanitize=address,undefined" + (",fuzzer" if guided else "")
    target, environment = place / "fuzz", {**os.environ, "MPICH_CC": compiler, "OMPI_CC": compiler}
    flags = [*FLAGS, sanitizers, '-DCT_MPI_LIBRARY="libmpi.so"', *(f"-I{part}" for part in parts)]
    command = [mpi.mpicc, *flags, *sources, "-lm", "-ldl", "-o", target]
    run_to_end(command, env=environment, check=True)
    return target


def can_sanitize(compiler: str, sanitizers: str, place: Path) -> bool:
    """Whether the compiler has what is needed for these."""
    source = place / "empty.c"
    function = "LLVMFuzzerTestOneInput" if "fuzzer" in sanitizers else "main"
    source.write_text(f"int {function}(void) {{ return 0; }}\n")
    return run_to_end([compiler, f"-fsanitize={sanitizers}", source, "-o", place / "empty"]).returncode == 0


@pytest.fixture(scope="module", params=["libFuzzer", "driver"])
def fuzzer(request: pytest.FixtureRequest, mpi: Installation, tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    place, guided = tmp_path_factory.mktemp("fuzz"), request.param == "libFuzzer"
    names = ["clang", *(f"clang-{version}" for version in range(30, 9, -1))] if guided else ["cc", "gcc", "clang"]
    needed = "address,undefined" + (",fuzzer" if guided else "")
    for compiler in filter(None, map(shutil.which, names)):
        if can_sanitize(compiler, needed, place):
            return Fuzzer(compiled(mpi, compiler, guided, place), guided)
    pytest.skip(f"no C compiler here with -fsanitize={needed}; clang has it with compiler-rt (libclang-rt-dev)")


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_in_c_takes_any_bytes(fuzzer: Fuzzer, reader: str, tmp_path: Path) -> None:
    given, taken = fuzzer.run(reader, tmp_path, runs=5000)
    assert given >= 5000
    assert taken > 20  # so that what follows a good beginning is reached
    assert taken < given or reader == "lines"


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_readers_in_c_take_any_bytes_for_an_hour(fuzzer: Fuzzer, tmp_path: Path) -> None:
    """Half an hour by what the inputs reach, and half an hour without a look at that."""
    each_s = float(os.environ.get("COLLTUNE_FUZZ_S", "3600")) / 2 / len(READERS)
    seed = int(os.environ.get("COLLTUNE_FUZZ_SEED", "1"))
    read = {reader: fuzzer.run(reader, tmp_path / reader, seconds=max(int(each_s), 1), seed=seed) for reader in READERS}
    way, given = "guided" if fuzzer.guided else "at random", sum(given for given, _ in read.values())
    print(f"{given} inputs to {len(READERS)} readers in C, {way}; given and taken: {read}")
