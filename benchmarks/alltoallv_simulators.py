"""Times the settings on a simulated cluster, with a cost of CPU for each message.

Two simulators run the real algorithms. SimGrid's SMPI shares its links among all messages on them; here it has a fat
tree. Our own (benchmarks/native/alltoallv_cluster) carries one message after the other, takes a hundredth of the time,
and has a dragonfly and a torus too.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.alltoallv.lookup_table import Setting, Shape
from colltune.core.errors import InputError
from colltune.machine.compile import source_directory

# Of our own simulator; the constants of each are in native/alltoallv_cluster/routes.c.
NETWORKS = ("fattree", "dragonfly", "torus")
_NATIVE = Path(__file__).parent / "native"
# The published simulations of these algorithms use half a microsecond; current network cards and MPI need less.
MESSAGE_S = 0.3e-6
_LEAF = 16  # nodes at a switch; every leaf has half as many links upwards
_OPTIONS = (
    "smpi/host-speed:1Gf",
    "smpi/simulate-computation:no",
    "smpi/privatization:no",
    "contexts/factory:raw",
    "contexts/stack-size:256",
    "contexts/guard-size:0",
    "smpi/lat-factor:0:1",
    "smpi/bw-factor:0:1",
    f"smpi/os:0:{MESSAGE_S}:0",
    f"smpi/ois:0:{MESSAGE_S}:0",
    f"smpi/or:0:{MESSAGE_S}:0",
    "smpi/test:1e-7",
    "smpi/iprobe:1e-7",
    "smpi/async-small-thresh:8192",
    "smpi/send-is-detached-thresh:8192",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "maxmin/concurrency-limit:8",  # a card sends few messages at once, and the simulator has far less to solve
    "smpi/alltoallv:mpich",
)


_ADVICE = ("Install SimGrid 3.32 (Debian: libsimgrid-dev)", "Install a C compiler (Debian: gcc)")
# Of the algorithms' sources, those that hang state on real communicators; and the other simulator.
_OF_MPI = ("alltoallv.c", "plain.c", "sound.c")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is exchanged: blocks drawn from ``distribution`` with ``largest`` bytes at the most.

    A distribution such as "skewed/6" is what `colltune tune alltoallv` measures: each rank has 6 peers (0: all), and
    ``largest`` is the average block of the busiest.
    """

    distribution: str
    largest: int


@dataclass(frozen=True, slots=True)
class Timing:
    """One setting's time, and statistics of the blocks in bytes; ``peers`` of the busiest rank."""

    shape: Shape
    setting: Setting
    pattern: Pattern
    time_s: float
    mean: float
    largest: float
    peers: int
    deviation: float
    skewness: float
    quartile_1: float
    quartile_3: float


def platform(nodes: int) -> str:
    """SimGrid's description of the cluster, with as many leaves as needed."""
    leaf = min(_LEAF, nodes)
    leaves = -(-nodes // leaf)
    tree = f"2;{leaf},{leaves};1,{max(1, leaf // 2)};1,1" if leaves > 1 else f"1;{leaf};1;1"
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
        f'<zone id="world" routing="Full"><cluster id="c" prefix="n" suffix="" radical="0-{leaf * leaves - 1}" '
        f'speed="1Gf" bw="12.5GBps" lat="300ns" topology="FAT_TREE" '
        f'topo_parameters="{tree}" loopback_bw="8GBps" loopback_lat="200ns"/></zone>\n</platform>\n'
    )


def compile_sweep(directory: Path, smpicc: str = "smpicc") -> Path:
    """The simulated program; raises InputError where SimGrid is not installed."""
    return _compile(smpicc, ("alltoallv", "alltoallv_simulated"), directory / "sweep")


def compile_cluster(directory: Path, cc: str = "cc") -> Path:
    """The same on our own simulator, which needs a C compiler alone; raises InputError where there is none."""
    return _compile(cc, ("alltoallv_cluster", "alltoallv", "alltoallv_simulated"), directory / "cluster")


def compile_program(directory: Path, source: Path, cc: str = "cc") -> Path:
    """An MPI program of one C file on our own simulator, for :func:`simulate_program`. Raises InputError."""
    application = directory / f"{source.stem}.o"
    include = _NATIVE / "alltoallv_cluster"
    command = [cc, "-O2", "-Dmain=ct_application", f"-I{include}", "-c", str(source), "-o", str(application)]
    # Its variables in sections of one name, to be exchanged from rank to rank.
    kept = ",alloc,load,data,contents"
    renamed = [f"--rename-section={section}=ct_variables{kept}" for section in (".data", ".bss")]
    for words in (command, ["objcopy", *renamed, str(application)]):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InputError(f"{source} could not be compiled: {done.stderr[:300]}", _ADVICE[True])
    parts = ("alltoallv_cluster", "alltoallv", "alltoallv_simulated", "alltoallv_program")
    return _compile(cc, parts, directory / source.stem, application)


def simulate_program(
    program: Path, shape: Shape, network: str, words: Sequence[str], table: Path | None = None, limit_s: float = 3600.0
) -> str:
    """What a program of :func:`compile_program` prints on ``network``, by the library's own or by ``table``.

    Raises InputError where it fails.
    """
    command = ["timeout", str(limit_s), str(program), str(table or "-"), str(shape.ppn), str(shape.nodes), network]
    done = subprocess.run([*command, program.name, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[:300]}", "See what it says")
    return done.stdout


def _compile(compiler: str, parts: Sequence[str], program: Path, application: Path | None = None) -> Path:
    own = parts[0] == "alltoallv_cluster"
    algorithms, common = source_directory("alltoallv"), source_directory("common")
    directories = [algorithms if name == algorithms.name else _NATIVE / name for name in parts]
    sources = [path for directory in directories for path in directory.glob("*.c")]
    left_out = {*_OF_MPI, *(["smpi.c"] if own else [])} - ({"alltoallv.c"} if application else set())
    sources = [
        common / "nodes.c",
        common / "rules.c",
        source_directory("alltoallv_measure") / "weights.c",
        *(path for path in sources if path.name not in left_out),
    ]
    included = (*directories, common, algorithms.parent / "include", source_directory("alltoallv_measure"))
    includes = [f"-I{directory}" for directory in included]
    command = [compiler, "-std=gnu11", "-O2", "-DCT_SIMULATED", *includes, *map(str, sorted(sources)), "-lm"]
    if application is not None:  # what is not called of alltoallv.c asks for more of MPI than there is
        command += ["-DCT_PROGRAM", "-ffunction-sections", "-Wl,--gc-sections", str(application)]
    try:
        done = subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InputError(f"{compiler} cannot be run: {error}", _ADVICE[own]) from error
    if done.returncode != 0:
        raise InputError(f"{compiler} could not compile the sweep: {done.stderr[:300]}", _ADVICE[own])
    return program


def simulate(
    program: Path, shape: Shape, asked: Sequence[tuple[Setting, Pattern]], seed: int = 1, limit_s: float = 3600.0
) -> Iterator[Timing]:
    """Timings in the order asked, each as soon as it is known; stops early when ``limit_s`` of the clock is over."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "cluster.xml").write_text(platform(shape.nodes))
        (place / "hosts").write_text("".join(f"n{node}\n" * shape.ppn for node in range(shape.nodes)))
        (place / "requests").write_text("".join(_request(setting, pattern) for setting, pattern in asked))
        command = ["smpirun", "-platform", str(place / "cluster.xml"), "-hostfile", str(place / "hosts")]
        command += ["-np", str(shape.ranks), *(f"--cfg={option}" for option in _OPTIONS), "--log=root.thres:warning"]
        command += [str(program), str(place / "requests"), str(shape.ppn), str(seed)]
        command = ["timeout", str(limit_s), *command]  # ends the simulator too, not only the script around it
        yield from _answers(command, shape, asked)


def simulate_own(
    program: Path,
    shape: Shape,
    asked: Sequence[tuple[Setting, Pattern]],
    seed: int = 1,
    limit_s: float = 3600.0,
    network: str = NETWORKS[0],
) -> Iterator[Timing]:
    """The same by the program of :func:`compile_cluster`, on one of NETWORKS."""
    with tempfile.TemporaryDirectory() as name:
        requests = Path(name) / "requests"
        requests.write_text("".join(_request(setting, pattern) for setting, pattern in asked))
        words = map(str, (limit_s, program, requests, shape.ppn, seed, shape.nodes, network))
        command = ["timeout", *words]
        yield from _answers(command, shape, asked)


def _answers(command: Sequence[str], shape: Shape, asked: Sequence[tuple[Setting, Pattern]]) -> Iterator[Timing]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        for (setting, pattern), line in zip(asked, process.stdout, strict=False):
            yield _timing(shape, setting, pattern, line)


def _request(setting: Setting, pattern: Pattern) -> str:
    words = (setting.algorithm, setting.radix, setting.batch, setting.direct_above)
    name, _, peers = pattern.distribution.partition("/")
    return " ".join(map(str, (*words, name, pattern.largest, peers or -1))) + "\n"


def _timing(shape: Shape, setting: Setting, pattern: Pattern, line: str) -> Timing:
    words = line.split()
    time_s, mean, largest = map(float, words[6:9])
    deviation, skewness, quartile_1, quartile_3 = map(float, words[10:14])
    numbers = (deviation, skewness, quartile_1, quartile_3)
    return Timing(shape, setting, pattern, time_s, mean, largest, int(words[9]), *numbers)
