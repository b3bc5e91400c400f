"""Which calls can reach a place in a selection tree.

Every operator tests one property of a call, so the calls that reach a place are a box: a range for each number and a
set for each property with few values. Both sides of an operator are boxes again.

``is_empty`` and ``meets`` take three dependencies into account: the number of ranks and whether it is a power of two;
the number of ranks and ``count<pow2``; and that a built-in operation always commutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from colltune.catalog import Need
from colltune.catalog.read import read_toml

INFINITE = 1 << 62
YES, NO = frozenset({"yes"}), frozenset({"no"})
_SETS = {name: frozenset(values) for name, values in read_toml("mpich_leaves")["properties"].items()}
_MET_BY = {need: (name, frozenset({value})) for need, (name, value) in read_toml("mpich_leaves")["met_by"].items()}
_LEAST = {"comm_size": 1}

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class CallCondition:
    """The condition of an operator: a property, and the values for which it holds. Without a property it always holds.

    ``values`` is a set of words, or the largest number; comm_avg_ppn counts in halves, so that "<2" and "<=1",
    between which there are averages, differ.
    """

    about: str = ""
    values: frozenset[str] | int = frozenset()


@dataclass(frozen=True)
class CallRegion:
    """A set of calls of ``collectives``. A property that is not named is not restricted."""

    collectives: frozenset[str]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    sets: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def range(self, about: str) -> Range:
        return self.ranges.get(about, (_LEAST.get(about, 0), INFINITE))

    def values(self, about: str) -> frozenset[str]:
        return self.collectives if about == "collective" else self.sets.get(about, _SETS[about])

    def within(self, condition: CallCondition) -> "CallRegion":
        """The calls of this region for which ``condition`` holds."""
        if isinstance(condition.values, int):
            low, high = self.range(condition.about)
            return self._with_range(condition.about, (low, min(high, condition.values)))
        if not condition.about:
            return self
        return self._with_set(condition.about, self.values(condition.about) & condition.values)

    def without(self, condition: CallCondition) -> "CallRegion":
        """The calls of this region for which ``condition`` does not hold."""
        if isinstance(condition.values, int):
            low, high = self.range(condition.about)
            return self._with_range(condition.about, (max(low, condition.values + 1), high))
        if not condition.about:
            return CallRegion(frozenset())
        return self._with_set(condition.about, self.values(condition.about) - condition.values)

    def _with_range(self, about: str, bounds: Range) -> "CallRegion":
        return CallRegion(self.collectives, {**self.ranges, about: bounds}, self.sets)

    def _with_set(self, about: str, values: frozenset[str]) -> "CallRegion":
        if about == "collective":
            return CallRegion(values, self.ranges, self.sets)
        return CallRegion(self.collectives, self.ranges, {**self.sets, about: values})

    @property
    def is_empty(self) -> bool:
        if not self.collectives or not all(self.sets.values()):
            return True
        if any(low > high for low, high in self.ranges.values()):
            return True
        if self.sets.get("is_op_built_in") == YES and self.sets.get("is_commutative") == NO:
            return True
        powers = self.values("comm_size=pow2")
        return (powers == YES and self._powers() == 0) or (powers == NO and self.odd_ranks() is None)

    def _powers(self) -> int:
        low, high = self.range("comm_size")
        return high.bit_length() - (low - 1).bit_length()

    def odd_ranks(self) -> int | None:
        """The smallest number of ranks in the range that is not a power of two."""
        low, high = self.range("comm_size")
        for ranks in range(low, low + 3):  # of three neighbours above 2 one is no power of two
            if ranks & (ranks - 1) and ranks <= high:
                return ranks
        return None

    def meets(self, need: str) -> bool:
        """Whether every call here meets a precondition: a Need, or a word of ``lint_names``."""
        if need == Need.POWER_OF_TWO:
            return self.values("comm_size=pow2") == YES or self.odd_ranks() is None
        if need == Need.COMMUTATIVE:
            return YES in (self.values("is_commutative"), self.values("is_op_built_in"))
        if need == Need.NOT_IN_PLACE and self.meets("inter"):
            return True  # MPI has nothing in place between two groups
        if need == Need.COUNT_GE_POF2:
            most = self.range("comm_size")[1]
            enough = self.range("count")[0] >= 1 << (most.bit_length() - 1)
            return enough or self.values("count<pow2") == NO
        about, values = _MET_BY.get(need, ("", frozenset()))
        return bool(about) and self.values(about) <= values


def describe(region: CallRegion, whole: CallRegion) -> str:
    """The calls of ``region`` in the words of the file, as far as they differ from ``whole``."""
    words = []
    for about in sorted({*region.ranges, *region.sets}):
        if about in _SETS:
            if region.values(about) != whole.values(about):
                names = "|".join(sorted(region.values(about)))
                words.append(f"{about}={names}" if "=" not in about and "<" not in about else f"{about}: {names}")
        elif region.range(about) != whole.range(about):
            low, high = region.range(about)
            unit = 2 if about == "comm_avg_ppn" else 1
            words.append(
                f"{about}>{(low - 1) // unit}" if high == INFINITE else f"{about} {low // unit}..{high // unit}"
            )
    return ", ".join(words) or "all the rest"
