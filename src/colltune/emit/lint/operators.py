"""The operators of MPICH's selection files, and which calls can reach a place in a tree of them.

What an operator compares depends on the version and the collective. One that MPICH does not define for a collective
ends the program at the first call.

Every operator tests one property of a call, so the calls that reach a place are a box: a range for each number and a
set for each property with few values. Both sides of an operator are boxes again.

``is_empty`` and ``meets`` take three dependencies into account: the number of ranks and whether it is a power of two;
the number of ranks and ``count<pow2``; and that a built-in operation always commutes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

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
        return self.collectives if about == "collective" else self.sets.get(about, _SETS.get(about, YES | NO))

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
        low, high = self.range("comm_size")
        some_power = high.bit_length() > (low - 1).bit_length()
        return (powers == YES and not some_power) or (powers == NO and self.odd_ranks() is None)

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


_GATHERS = ("allgather", "allgatherv", "gather", "gatherv", "scatter", "scatterv")
_EXCHANGES = ("alltoall", "alltoallv", "alltoallw")
_REDUCES = ("allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan")
_BLOCKING = (*_GATHERS, *_EXCHANGES, *_REDUCES, "barrier", "bcast")
_NEIGHBOR = tuple(f"neighbor_{name}" for name in (*_GATHERS[:2], *_EXCHANGES))
# The general file must hold all of these, because MPICH looks each of them up.
COLLECTIVES = frozenset(name for plain in (*_BLOCKING, *_NEIGHBOR) for name in (plain, f"i{plain}"))
# These have no form for intercommunicators.
INTRA_ONLY = frozenset(name for name in COLLECTIVES if "scan" in name or "neighbor" in name)

LARGEST_NUMBER = 2**31 - 1
_NUMERIC = re.compile(r"(comm_size|comm_avg_ppn|avg_msg_size|total_msg_size|count)(<=|<)(.*)", re.DOTALL)
_ATOI = re.compile(r"[+-]?\d+", re.ASCII)
_REDUCTIONS = frozenset(_REDUCES[:4])
_GATHERING = frozenset(_GATHERS[:2])
_WHOLE = frozenset({"allreduce", "bcast", "reduce"})
_ALLTOALLS = frozenset(_EXCHANGES)
_MADE_FOR = {
    "avg_msg_size": _WHOLE | {"alltoall"},
    "total_msg_size": _WHOLE | _ALLTOALLS | _GATHERING | _REDUCTIONS | {"gather", "scatter"},
    "count": _REDUCTIONS | _GATHERING | {"bcast"},
    "is_commutative": _REDUCTIONS,
    "is_op_built_in": frozenset({"allreduce", "reduce"}),
    "is_sendbuf_inplace": _ALLTOALLS,
    "is_block_regular": frozenset({"reduce_scatter"}),
}
_FLAGS = ("is_commutative", "is_op_built_in", "is_sendbuf_inplace", "is_block_regular", "is_node_consecutive")
_HIERARCHIES = ("parent", "node_roots", "node", "flat")
_WORDS = {
    f"{flag}={value}": CallCondition(flag, frozenset({value}))
    for flag in (*_FLAGS, "is_multi_threaded")
    for value in ("yes", "no")
}
_WORDS |= {f"comm_type={value}": CallCondition("comm_type", frozenset({value})) for value in ("intra", "inter")}
_WORDS |= {
    key: CallCondition(key, frozenset({"yes"})) for key in ("comm_size=pow2", "comm_size=node_comm_size", "count<pow2")
}
_SIZES = ("comm_size", "comm_avg_ppn", "avg_msg_size", "total_msg_size", "count")
_KNOWN = [*_WORDS, *(f"{size}<=" for size in _SIZES), *(f"{size}=any" for size in _SIZES), "comm_hierarchy=any"]
_KNOWN += [f"comm_hierarchy={value}" for value in _HIERARCHIES]
# Before 4.2 these are all that mean "any".
_ANY_AT_FIRST = frozenset(f"{name}=any" for name in ("comm_size", "avg_msg_size", "total_msg_size", "count"))
_ANY_AT_FIRST |= {"comm_hierarchy=any"}


@dataclass(frozen=True, slots=True)
class Operator:
    """A key that MPICH understands.

    ``compares``: MPICH demands a sibling after it. ``of_communicator``: decided when a communicator is made, if
    nothing else stands above. ``number``: the bound as written, where there is one.
    """

    condition: CallCondition
    compares: bool = False
    of_communicator: bool = False
    number: str | None = None

    @property
    def about(self) -> str:
        return self.condition.about.partition("<")[0].partition("=")[0]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A key that ends the program in MPI_Init. ``fix``: what was probably meant."""

    why: str
    fix: str


def parse_operator(key: str, version: tuple[int, int], early: bool) -> Operator | Unknown:
    """``key`` without spaces. ``early``: only operators of the communicator stand above it."""
    if match := _NUMERIC.fullmatch(key):
        about, sign, text = match.groups()
        if (about, sign) != ("count", "<"):
            if (about, sign) == ("comm_avg_ppn", "<") and version < (4, 2):
                return Unknown("MPICH has comm_avg_ppn< since 4.2", f'write "comm_avg_ppn<={_atoi(text) - 1}"')
            return Operator(_compare(about, sign, _atoi(text), early), True, about.startswith("comm_"), text)
    if key in _WORDS:
        compares = key in ("comm_size=pow2", "comm_size=node_comm_size", "count<pow2")
        of_communicator = key.startswith("comm_") or key.startswith("is_node_consecutive")
        return Operator(_WORDS[key], compares, of_communicator)
    name, _, value = key.partition("=")
    if name == "collective":
        if value in COLLECTIVES:
            return Operator(CallCondition("collective", frozenset({value})), of_communicator=True)
        return Unknown("MPICH ends in MPI_Init at a collective that it does not know", _suggest(value, COLLECTIVES))
    if name == "comm_hierarchy" and value in _HIERARCHIES:
        return Operator(CallCondition(name, _hierarchy(value, version)), of_communicator=True)
    if key in _ANY_AT_FIRST or (version >= (4, 2) and (key == "any" or key.endswith("=any"))):
        return Operator(CallCondition(), of_communicator=True)
    if key == "any" or key.endswith("=any"):
        return Unknown(f"before 4.2 MPICH has no {key}", 'write "comm_size=any"')
    return Unknown('MPICH ends in MPI_Init with "unknown key"', _suggest(key, _KNOWN))


def undefined_for(operator: Operator, collectives: frozenset[str]) -> list[str]:
    """Those of ``collectives`` whose calls end the program at ``operator``."""
    made_for = _MADE_FOR.get(operator.about)
    if made_for is None:
        return []
    undefined = [name for name in sorted(collectives) if plain(name) not in made_for]
    return undefined + ["ibcast"] * (operator.about == "count" and "ibcast" in collectives)


def differs_between_ranks(operator: Operator, region: CallRegion) -> str | None:
    """Why the ranks of one call can decide differently at ``operator``; None where they cannot.

    Between two groups MPICH's own trees compare the sizes of gather and scatter, and there all ranks agree.
    """
    for name in sorted(region.collectives):
        whole = plain(name)
        if operator.about == "total_msg_size" and whole in ("alltoallv", "alltoallw"):
            return f"total_msg_size of {name} is what the rank itself sends, so ranks can choose different algorithms"
        if operator.about == "total_msg_size" and whole in ("gather", "scatter") and not region.meets("inter"):
            count = "send count" if whole == "gather" else "receive count"
            return (
                f"total_msg_size of {name} is the rank's own {count} times the ranks, in elements and not bytes, and "
                "meaningless at a root in place, so ranks can choose different algorithms"
            )
        sized = operator.about in ("avg_msg_size", "total_msg_size")
        if sized and whole == "alltoall" and not region.meets("not-in-place"):
            return f"of {name} in place the send count is not significant, so ranks can choose different algorithms"
    return None


def basis(about: str, collective: str) -> str:
    """What MPICH compares with the bound of a size operator, in words."""
    whole = plain(collective)
    if about == "avg_msg_size":
        return "the block for one rank, in bytes" if whole == "alltoall" else "the whole vector, in bytes"
    if whole in _GATHERING | {"alltoall"}:
        return "the blocks of all ranks together, in bytes"
    return "the sum over all ranks, in bytes"


def plain(collective: str) -> str:
    """The blocking collective of the same kind."""
    return collective[1:] if collective.startswith("i") else collective


def misread(operator: Operator) -> str | None:
    """How MPICH misunderstands the number of ``operator``, which it reads with atoi; None where it does not."""
    if operator.number is None:
        return None
    if not re.fullmatch(r"\d+", operator.number, re.ASCII):
        return f"MPICH reads the number {_atoi(operator.number)} from it"
    if len(operator.number.lstrip("0")) > 10 or int(operator.number) > LARGEST_NUMBER:
        return f"numbers are read as 32-bit integers, of which {LARGEST_NUMBER} is the largest"
    return None


def _atoi(text: str) -> int:
    """The value that C's atoi reads, without overflow."""
    match = _ATOI.match(text)
    number = int(match.group()[:20]) if match else 0
    return max(-LARGEST_NUMBER, min(LARGEST_NUMBER, number))


def _compare(about: str, sign: str, number: int, early: bool) -> CallCondition:
    if about == "comm_avg_ppn":
        return CallCondition(about, 2 * number - (sign == "<"))
    if about == "comm_size" and not early:
        return CallCondition(about, number)  # at the call itself "<" lets the bound through
    return CallCondition(about, number - (sign == "<"))


def _hierarchy(value: str, version: tuple[int, int]) -> frozenset[str]:
    if version < (5, 0) or value == "parent":
        return frozenset({value})
    return frozenset(_HIERARCHIES) - {"parent"}  # since 5.0 all other words mean this


def _suggest(text: str, known: object) -> str:
    near = get_close_matches(text[:100], list(known), 1)  # type: ignore[call-overload]
    return f'write "{near[0]}", if that is meant' if near else "take the rule out"
