"""The profile of an application: its collective calls, by communicator, collective and size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from colltune.core.sample import COLLECTIVES, Scenario, element_bytes
from colltune.core.units import format_size_range

# Forms whose calls end in MPI_Wait, so that the time of the call itself says little.
BLOCKING = "blocking"
# The first call of another algorithm opens connections that the program may not have, and the proof warms up before it
# times. Over TCP one takes milliseconds, which few short calls do not bring back. Both limits are set by hand.
_FEW_CALLS = 10
_SHORT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, order=True)
class Communicator:
    """The form of a communicator. ``nodes`` and ``ppn`` (the most of any node) are 0 where not known.

    ``remote_size`` is above 0 for intercommunicators only.
    """

    size: int
    nodes: int
    ppn: int
    even: bool = True
    remote_size: int = 0

    def __post_init__(self) -> None:
        if self.size < 1 or min(self.nodes, self.ppn, self.remote_size) < 0:
            raise ValueError(f"there is no communicator of {self.size} ranks on {self.nodes} nodes")

    @property
    def has_places(self) -> bool:
        """Whether it is one group, of two ranks or more, and known on which nodes these are."""
        return self.size > 1 and self.nodes > 0 and not self.remote_size

    @property
    def noting(self) -> int:
        """How many ranks note a call under this form: both groups of an intercommunicator where they are as large."""
        return self.size * (2 if self.size == self.remote_size else 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and ranks per node; of ranks that are spread unevenly, the nearest even ones."""
        return self.nodes, self.ppn if self.even else max(1, round(self.size / self.nodes))

    def __str__(self) -> str:
        if self.remote_size:
            return f"{self.size} to {self.remote_size}"
        if not self.nodes:
            return str(self.size)
        return f"{self.nodes} x {self.ppn}" if self.even else f"{self.size} on {self.nodes}"


@dataclass(frozen=True, slots=True)
class CountsPerRank:
    """The counts of calls that give one for each rank. ``square_bytes``: the sum of their squares."""

    count: int = 0
    empty: int = 0
    total_bytes: int = 0
    self_bytes: int = 0
    largest_bytes: int = 0  # summed over the calls
    square_bytes: int = 0

    @property
    def sparsity(self) -> float:
        """Share of the counts that are zero."""
        return self.empty / self.count if self.count else 0.0

    @property
    def spread(self) -> float:
        """Standard deviation of the counts over their mean; 0 for equal ones."""
        if not self.total_bytes:
            return 0.0
        mean = self.total_bytes / self.count
        return float(max(self.square_bytes / self.count - mean * mean, 0.0) ** 0.5 / mean)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one collective, of sizes in one bin (from a power of two to below the next).

    Sizes follow ``Scenario``: one block per peer, or the whole vector. Sums over all ranks: ``rank_calls``,
    ``own_bytes`` (what each rank brings to a call), ``time_s``. ``faults``: page faults in a call on a rank, the mean
    over a sample; first touches are left out. ``gaps``: the calls of MPI_Alltoallv and MPI_Alltoallw whose data have
    gaps. ``members``: of how many ranks of the communicator these are, where not all left a profile (the mean); 0 for
    all.
    """

    communicator: Communicator
    collective: str
    form: str
    op: str
    rank_calls: int
    own_bytes: int
    time_s: float
    size_least: int
    size_mean: float
    size_most: int
    inits: int = 0
    in_place: int = 0
    gaps: int = 0
    root_zero: int = 0
    root_repeated: int = 0
    blocks: CountsPerRank | None = None
    faults: float = 0.0
    members: float = 0.0

    @property
    def calls(self) -> float:
        """Calls of the communicator as a whole; a fraction where ranks fall into different bins."""
        return self.rank_calls / (self.members or self.communicator.noting)

    @property
    def sizes(self) -> str:
        """For people: ``"1 KiB to 2 KiB"``."""
        return format_size_range(self.size_least, self.size_most)

    def scenarios(self) -> tuple[Scenario, ...]:
        """What stands for these calls in a measurement: their size, or the ends of a range of sizes.

        Empty where the calls cannot be tuned: other forms than blocking, intercommunicators, unknown places.
        """
        where = self.communicator
        if self.form != BLOCKING or self.collective not in COLLECTIVES or not where.has_places:
            return ()
        nodes, ppn = where.shape
        if ppn * nodes < 2:
            return ()
        element = element_bytes(self.collective)
        ends = {max(element, size // element * element) for size in (self.size_least, self.size_most)}
        sizes = {0} if self.collective == "barrier" else ends
        return tuple(Scenario(self.collective, nodes, ppn, size) for size in sorted(sizes))


@dataclass(frozen=True, slots=True)
class Profile:
    """One run of an application. ``elapsed_s``: from MPI_Init to MPI_Finalize, of the slowest rank.

    ``start_s``: what the preloaded library took at the end of MPI_Init, of the rank that waited least; 0: not known.
    ``ended`` is empty for a run that came to MPI_Finalize; else how it ended, and ``reporting`` how many of the
    ``ranks`` left their part.
    """

    calls: tuple[Calls, ...]
    communicators: tuple[tuple[Communicator, float], ...]
    ranks: int
    nodes: int
    elapsed_s: float
    reporting: int
    ended: str = ""
    lost_calls: int = 0
    threads_multiple: bool = False
    command: tuple[str, ...] = ()
    mpi: str = ""
    start_s: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and ranks per node of the smallest even job that can form each of the communicators."""
        per_node = [where.ppn for where, _count in self.communicators if where.nodes and not where.remote_size]
        return self.nodes, max([-(-self.ranks // max(self.nodes, 1)), *per_node])

    @property
    def core_s(self) -> float:
        """Time of all ranks."""
        return self.elapsed_s * self.reporting

    @property
    def collective_s(self) -> float:
        """Time of all ranks inside collective calls."""
        return sum(call.time_s for call in self.calls)

    def by_time(self) -> Sequence[Calls]:
        return sorted(self.calls, key=lambda call: -call.time_s)

    def tunable(self) -> Iterator[tuple[Calls, tuple[Scenario, ...]]]:
        """The calls that a tuning can reach, with what to measure for them."""
        for call in self.calls:
            scenarios = call.scenarios()
            if scenarios and call.time_s > 0.0:
                yield call, scenarios


def time_shares(profile: Profile) -> dict[Scenario, float]:
    """Share of the run's time that each scenario takes, for what can be tuned.

    Short calls that the run makes fewer than ten times are left out. Not known how often is often enough.
    """
    if profile.core_s <= 0.0:
        return {}
    shares: dict[Scenario, float] = {}
    calls: dict[Scenario, float] = {}
    for row, scenarios in profile.tunable():
        for scenario in scenarios:
            share = row.time_s / profile.core_s / len(scenarios)
            shares[scenario] = shares.get(scenario, 0.0) + share
            calls[scenario] = calls.get(scenario, 0.0) + row.calls
    often = (scenario for scenario in shares if calls[scenario] >= _FEW_CALLS or scenario.size_bytes >= _SHORT_BYTES)
    return {scenario: shares[scenario] for scenario in often}


def side_by_side(profile: Profile, ppn: int) -> dict[tuple[int, int], int]:
    """How many communicators of each shape had the same nodes in the run, of what ``ppn`` ranks per node can form.

    Communicators of one form are taken to have ranks of their own, and to call at once, as rows and columns do.
    """
    counts: dict[tuple[int, int], int] = {}
    for where, count in profile.communicators:
        if where.nodes and not where.remote_size:
            on_each = round(count * where.nodes / max(profile.nodes, 1))
            counts[where.shape] = max(counts.get(where.shape, 1), min(on_each, ppn // where.shape[1]))
    return counts
