"""A scenario is what is tuned, a choice how it is carried out, a sample what a measurement of both yields.

Collectives are named as people do: ``bcast``, ``MPI_Bcast``, ``bcast,allreduce`` and ``all``.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from enum import StrEnum
from statistics import fmean, median
from typing import NamedTuple, TypeVar

from colltune.core.disturbance import Load
from colltune.core.errors import InputError

REDUCTIONS = frozenset(
    {"allreduce", "exscan", "iallreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan"}
)
COLLECTIVES = (
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
)
# Non-blocking ones, whose time is what a computation beside them does not hide (docs/design/nonblocking.md).
NONBLOCKING = ("iallgather", "iallreduce", "ialltoall", "ibcast")
TUNABLE = (*COLLECTIVES, *NONBLOCKING)
# Collectives whose size is one block per peer; for the others it is the whole vector (OSU's convention).
PER_BLOCK = frozenset({"allgather", "allgatherv", "alltoall", "gather", "iallgather", "ialltoall", "scatter"})


def blocking_form(collective: str) -> str:
    """``"ibcast"`` -> ``"bcast"``; a blocking collective is its own."""
    return collective.removeprefix("i") if collective in NONBLOCKING else collective


def element_bytes(collective: str) -> int:
    """Of what its sizes are multiples of: reductions are tuned on float, the others on bytes."""
    return 4 if collective in REDUCTIONS else 1


class SizeBasis(StrEnum):
    """The quantity that a library compares with its rules' size bounds."""

    MESSAGE = "message"  # Scenario.size_bytes itself
    TOTAL = "total"  # one block times the number of ranks
    NONE = "none"  # the library cannot decide by size, or must not


@dataclass(frozen=True, slots=True, order=True)
class Scenario:
    """A collective call as an algorithm sees it.

    ``size_bytes`` follows OSU's convention: one block per peer for allgather(v), gather, scatter and
    alltoall; the whole vector for bcast and the reductions, reduce_scatter included; 0 for barrier.
    Reductions count in ``datatype`` elements, so their sizes are multiples of its 4 bytes.
    """

    collective: str
    nodes: int
    ppn: int
    size_bytes: int

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.ppn < 1 or self.size_bytes < 0:
            raise ValueError(f"not a scenario: {self!r}")

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    @property
    def datatype(self) -> str:
        return "float" if self.collective in REDUCTIONS else "byte"

    def basis_bytes(self, basis: SizeBasis) -> int:
        """The size of this call in the unit that ``basis`` names."""
        if basis is SizeBasis.NONE:
            return 0
        if basis is SizeBasis.TOTAL and self.collective in PER_BLOCK:
            return self.size_bytes * self.ranks
        return self.size_bytes


Value = int | str


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm by its catalogue key, and the parameters that are set on it, sorted by name."""

    algorithm: str
    parameters: tuple[tuple[str, Value], ...] = ()
    # Kept, for a campaign asks for it millions of times.
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", tuple(sorted(self.parameters, key=_order)))
        object.__setattr__(self, "_hash", hash((self.algorithm, self.parameters)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Choice"], tuple[str, tuple[tuple[str, Value], ...]]]:
        """Another process has other hashes."""
        return Choice, (self.algorithm, self.parameters)

    def __lt__(self, other: "Choice") -> bool:
        if self.algorithm != other.algorithm:
            return self.algorithm < other.algorithm
        return [*map(_order, self.parameters)] < [*map(_order, other.parameters)]

    def __str__(self) -> str:
        return format_choice(self)


def _order(parameter: tuple[str, Value]) -> tuple[str, bool, Value]:
    """Numbers before words: a file may say either of one name."""
    name, value = parameter
    return name, isinstance(value, str), value


# What the library does by itself. It is measured like any other candidate: it is the one to beat.
DEFAULT = Choice("default")

_CHOICE = re.compile(r"([a-z0-9_+.]+)(?:\(([^()]*)\))?")


def format_choice(choice: Choice) -> str:
    """``Choice("recexch", (("k", 4),))`` -> ``"recexch(k=4)"``."""
    if not choice.parameters:
        return choice.algorithm
    return f"{choice.algorithm}({','.join(f'{name}={value}' for name, value in choice.parameters)})"


def format_choices(choices: Iterable[Choice]) -> str:
    """Choices in a line: ``"ring, recexch(k=2|3|4)"``, an algorithm once with all values of its parameters."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for choice in choices:
        of_algorithm = values.setdefault(choice.algorithm, {})
        for name, value in choice.parameters:
            of_algorithm.setdefault(name, {})[str(value)] = None
    parts = []
    for algorithm, parameters in values.items():
        inside = ",".join(f"{name}={'|'.join(tried)}" for name, tried in parameters.items())
        parts.append(f"{algorithm}({inside})" if inside else algorithm)
    return ", ".join(parts)


def parse_choice(text: str) -> Choice:
    """The inverse of format_choice. Raises InputError for text that it could not have written."""
    match = _CHOICE.fullmatch(text)
    if match is None:
        raise InputError(f"cannot read the choice {text!r}", "Write for example binomial or recexch(k=4)")
    parameters: list[tuple[str, Value]] = []
    for item in filter(None, (match.group(2) or "").split(",")):
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InputError(f"cannot read the parameter {item!r} of {text!r}", "Write name=value")
        parameters.append((name, int(value) if re.fullmatch(r"-?\d{1,19}", value) else value))
    return Choice(match.group(1), tuple(parameters))


class Status(StrEnum):
    """How a measurement ended. Only OK has times that count: no invented time ever reaches a learner."""

    OK = "ok"
    INAPPLICABLE = "inapplicable"  # the library would have run another algorithm in its place
    WRONG = "wrong"  # it ran, and the result was not the right one
    CRASHED = "crashed"  # it ended the job
    HUNG = "hung"  # it did not come back within the watchdog's time
    UNMEASURED = "unmeasured"  # the agent refused the request; `Sample.detail` says why. Nothing is known of the choice
    DISTURBED = "disturbed"  # other programs took the processors: its times tell of these, and count nowhere


@dataclass(frozen=True, slots=True)
class Sample:
    """One (scenario, choice) pair, measured.

    ``times_s`` holds, per repetition, the time of the slowest rank after a synchronised start;
    ``back_to_back_s`` the mean time of calls issued one after another without synchronisation, ``osu_mean_s`` the mean
    over ranks and repetitions, ``skewed_s`` the mean time from the arrival of the last rank where ranks arrive up to
    ``Point.skew_s`` apart (None where not taken). These are with a heap that gives back what is freed. ``faults``: page
    faults of a call, on the rank with most; ``kept_s``: the median with a heap that keeps what is freed, taken where
    calls meet page faults; ``untouched_s``: the median where the receive buffer was never touched; ``cost_s`` the
    wall time that the measurement took, set-up and repetitions included. Of non-blocking calls ``times_s`` are what a
    computation beside them did not hide.
    ``group`` numbers the interleaved block of measurements that the sample belongs to: only samples of one
    group were taken side by side. ``load``: what else ran meanwhile; None where nobody looked.
    """

    scenario: Scenario
    choice: Choice
    status: Status
    times_s: tuple[float, ...] = ()
    back_to_back_s: float | None = None
    osu_mean_s: float | None = None
    cost_s: float = 0.0
    launch: int = 0
    group: int = 0
    started_s: float = 0.0
    detail: str = ""
    skewed_s: float | None = None
    faults: float = 0.0
    kept_s: float | None = None
    untouched_s: float | None = None
    load: Load | None = None

    @property
    def time_s(self) -> float:
        """Median over the repetitions, in seconds. Raises ValueError where there are none."""
        if not self.times_s:
            raise ValueError(f"no time was measured: {self.status} {self.scenario} {self.choice}")
        return median(self.times_s)

    def for_choosing(self) -> "Sample":
        """By which choices are made: times half way, as ratios go, from the slowest rank's to the mean over ranks.

        A rule has to win by both. What disturbed a repetition is in both means, so it leaves the times as they are.
        """
        if not self.osu_mean_s or not self.times_s:
            return self
        return self.scaled(math.sqrt(min(self.osu_mean_s / fmean(self.times_s), 1.0)))

    def scaled(self, factor: float) -> "Sample":
        """As if every call had taken ``factor`` times as long."""
        names = ("back_to_back_s", "osu_mean_s", "skewed_s", "kept_s", "untouched_s")
        views = {name: factor * value for name in names if (value := getattr(self, name)) is not None}
        return replace(self, times_s=tuple(factor * time_s for time_s in self.times_s), **views)


class Heaps(NamedTuple):
    """A comparison, or a mean of some, by the state of the heap; docs/design/agent.md says what the states are."""

    gives_back: float
    keeps: float

    @classmethod
    def of(cls, default: Sample, chosen: Sample) -> "Heaps | None":
        """log(default / choice) in each; None where neither's calls meet page faults, or that is not known."""
        if default.kept_s is None and chosen.kept_s is None:
            return None
        kept = (default.kept_s or default.time_s) / (chosen.kept_s or chosen.time_s)
        return cls(math.log(default.time_s / chosen.time_s), math.log(kept))


def log_speedup(default: Sample, chosen: Sample) -> float:
    """log(default / choice) from a common start, in the state of the heap in which ``chosen`` gains less."""
    heaps = Heaps.of(default, chosen)
    return math.log(default.time_s / chosen.time_s) if heaps is None else min(heaps)


class OtherViews(NamedTuple):
    """A comparison by other conventions than the common start: log(default / choice); None: not both were taken."""

    back_to_back: float | None = None
    mean_over_ranks: float | None = None
    late_arrivals: float | None = None
    untouched: float | None = None

    @classmethod
    def of(cls, default: Sample, chosen: Sample) -> "OtherViews":
        pairs = (
            (default.back_to_back_s, chosen.back_to_back_s),
            (default.osu_mean_s, chosen.osu_mean_s),
            (default.skewed_s, chosen.skewed_s),
            (default.untouched_s, chosen.untouched_s),
        )
        return cls(*(math.log(default_s / time_s) if default_s and time_s else None for default_s, time_s in pairs))


_NAMES = {
    "mpi": "MPI", "mpi_version": "MPI version", "mpi_build": "MPI build", "ppn": "ranks per node",
    "thread_level": "thread level",
}  # fmt: skip
_BUILD_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Environment:
    """What must be equal for two measurements to be compared: the MPI build, the machine, the job's shape.

    ``facts`` holds further details, which are shown but not compared. Those on which anything depends have a property
    of their own, "" where nobody said.
    """

    mpi: str  # "mpich"
    mpi_version: str
    mpi_build: str  # hash of the library file: two builds of one version may differ
    machine: str  # CPU model and core count of the nodes
    nodes: int
    ppn: int
    thread_level: str
    facts: dict[str, str] = field(default_factory=dict, compare=False, hash=False)

    @property
    def mpiexec(self) -> str:
        """The launcher, in the words of whoever measured: to be shown, and never to be run."""
        return self.facts.get("mpiexec", "")

    @property
    def launch_line(self) -> str:
        """The user's own line by which programs were started, as text; to be shown, like ``mpiexec``."""
        return self.facts.get("launch line", "")

    @property
    def libmpi(self) -> str:
        """Where the library file was, whose hash is ``mpi_build``."""
        return self.facts.get("libmpi", "")

    @property
    def fabric(self) -> str:
        """The network between nodes: the store of a site tells machines apart by it."""
        return self.facts.get("fabric", "")

    def differences(self, other: "Environment") -> list[tuple[str, str, str]]:
        """(name, value here, value in ``other``) of what makes measurements incomparable."""
        differing = []
        for item in fields(self):
            here, there = (str(getattr(environment, item.name)) for environment in (self, other))
            if item.compare and here != there:
                most = _BUILD_DIGITS if item.name == "mpi_build" else None
                differing.append((_NAMES.get(item.name, item.name), here[:most], there[:most]))
        return differing

    def with_fabric(self, fabric: str) -> "Environment":
        return replace(self, facts={**self.facts, "fabric": fabric})

    @property
    def has_mpi(self) -> bool:
        """Whether an MPI ran: not on a simulated cluster, and not where recorded times were replayed."""
        return self.mpi not in ("simulated", "recorded")


ALL = "all"
ALLTOALLV = "alltoallv"  # is tuned by itself: its algorithms are colltune's, not the library's


def parse_collectives(texts: Iterable[str], known: Sequence[str] = COLLECTIVES) -> list[str]:
    """The names in ``texts``, each once: ``["MPI_Bcast,reduce"]`` -> ``["bcast", "reduce"]``.

    ``all`` is ``known``: the blocking ones. A non-blocking one is named, for few programs call it.

    Raises InputError for a name that is no collective, with the one that it resembles.
    """
    names: dict[str, None] = {}
    for text in texts:
        for part in filter(None, (part.strip() for part in text.split(","))):
            names |= dict.fromkeys(known if _plain(part) == ALL else [parse_collective(part)])
    return list(names)


def parse_collective(text: str) -> str:
    """``"MPI_Bcast"`` -> ``"bcast"``. Raises InputError as ``parse_collectives``."""
    name = _plain(text)
    if name in TUNABLE:
        return name
    if name == ALLTOALLV:
        raise InputError(
            "alltoallv is not tuned together with other collectives: its algorithms are colltune's own",
            "Tune it by itself: colltune tune alltoallv",
        )
    near = get_close_matches(name, TUNABLE, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InputError(f"there is no collective {text!r}", f"{meant}There are {', '.join(TUNABLE)}")


def only_alltoallv(texts: Sequence[str]) -> bool:
    """Whether MPI_Alltoallv is all that is asked for."""
    return bool(texts) and all(_plain(text) == ALLTOALLV for text in texts)


def _plain(text: str) -> str:
    """Lower case, without the prefix of MPI's names."""
    return text.strip().lower().removeprefix("pmpi_").removeprefix("mpi_")


Item = TypeVar("Item")
Key = TypeVar("Key")


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """``items`` by their ``key``; keys in the order in which they first come, and so the items of each."""
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
