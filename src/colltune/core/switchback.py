"""What the experiment of `run --measure` finds in an application: pairs of blocks of calls, and what they say."""

from dataclasses import dataclass

from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.sample import Choice, Scenario, SizeBasis
from colltune.core.units import format_size_range

# Collective, class of sizes (bits of the largest), nodes and ranks per node.
Where = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Times of a block of calls in seconds, means over the ranks.

    ``call_s``: in its timed calls; ``wall_s``: that and what lies between the calls.
    """

    call_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class BlockPair:
    """Two neighbouring blocks of ``calls`` timed calls each."""

    calls: int
    default_first: bool
    by_default: BlockTimes
    tuned: BlockTimes


@dataclass(frozen=True)
class Cell:
    """Calls of one choice and one class of sizes, on communicators of one shape.

    ``choice``: its number in the selector's rules. ``tuned_calls`` and ``default_calls`` are those of all
    ``communicators`` together; ``off``: how many of them have switched the rule off. ``agree_s``: the time that their
    ranks spent to agree.
    """

    collective: str
    choice: int
    size_least: int
    size_most: int
    ranks: int
    nodes: int
    ppn: int
    tuned_calls: int
    default_calls: int
    communicators: int
    off: int
    agree_s: float
    pairs: tuple[BlockPair, ...]

    @property
    def where(self) -> Where:
        return self.collective, self.size_most.bit_length(), self.nodes, self.ppn


@dataclass(frozen=True)
class Experiment:
    """What one job measured. ``share``: percent of the blocks that ran by default at first.

    ``complete``: it reached MPI_Finalize. Else it was killed or is still running; ``elapsed_s`` is then the time of the
    last pair, and the counts are those of the last rounds.
    """

    ranks: int
    nodes: int
    share: int
    elapsed_s: float
    cells: tuple[Cell, ...]
    complete: bool = True


@dataclass(frozen=True)
class Standing:
    """One choice in calls of one class of sizes, on communicators of one shape, over some runs of the application.

    ``size_least`` to ``size_most``: bytes as the rules of ``basis`` compare them. ``faster`` and ``faster_in_calls``:
    time by default over time tuned, of whole blocks and of the calls in them, with 99% bounds. ``launches``: of each
    run with enough pairs, the latest first, its date and the mean log ratio in the calls alone. ``of_few``: runs with
    few pairs, each of which is a launch. ``off``: communicators on which it was switched off.
    """

    collective: str
    choice: Choice
    nodes: int
    ppn: int
    size_least: int
    size_most: int
    basis: SizeBasis
    calls: int
    pairs: int
    off: int
    faster: Interval
    faster_in_calls: Interval
    launches: tuple[tuple[str, float], ...]
    last: str
    of_few: bool = False

    @property
    def verdict(self) -> SpeedVerdict:
        """One of many communicators may switch off a good rule by chance: where all pairs say faster, none is sure."""
        if self.faster.high < 1.0:
            return SpeedVerdict.SLOWER
        is_faster = self.faster.low > 1.0
        if self.off:
            return SpeedVerdict.OPEN if is_faster else SpeedVerdict.SLOWER
        return SpeedVerdict.FASTER if is_faster else SpeedVerdict.OPEN

    @property
    def place(self) -> str:
        """For people: collective, shape and sizes."""
        size = "" if self.collective == "barrier" else f", {format_size_range(self.size_least, self.size_most)}"
        return f"{self.collective} {self.nodes} x {self.ppn}{size}"

    def covers(self, scenario: Scenario) -> bool:
        """Whether calls of ``scenario`` are of this kind: sizes of one power of two count as one."""
        return (scenario.collective, scenario.nodes, scenario.ppn) == (self.collective, self.nodes, self.ppn) and (
            scenario.basis_bytes(self.basis).bit_length() == self.size_most.bit_length()
        )
