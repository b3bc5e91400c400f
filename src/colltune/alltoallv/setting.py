"""Settings of the non-uniform all-to-all: an algorithm and its parameters, and those that are worth trying."""

from dataclasses import dataclass
from math import isqrt

from colltune.core.sample import DEFAULT, Choice
from colltune.core.space import shapes

COLLECTIVE = "alltoallv"
# Algorithms that send blocks on for other ranks, and so fewer messages than there are blocks.
FORWARDING = frozenset({"parata", "hieata"})
# On fewer ranks every call is the library's.
FEWEST_RANKS = 3


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """``radix`` of ParAta and HieAta; ``batch`` in flight (0: no limit); blocks over ``direct_above`` go direct."""

    algorithm: str
    radix: int = 0
    batch: int = 0
    direct_above: int = 0

    def __str__(self) -> str:
        shown = [f"r={self.radix}"] * bool(self.radix) + [f"b={self.batch}"] * bool(self.batch)
        return self.algorithm + (f"({','.join(shown)})" if shown else "")


LIBRARY = Setting("library")


def choice_of(setting: Setting) -> Choice:
    """The same as a Choice; the library's own is the default."""
    if setting == LIBRARY:
        return DEFAULT
    named = (("batch", setting.batch), ("radix", setting.radix), ("direct_above", setting.direct_above))
    return Choice(setting.algorithm, tuple((name, value) for name, value in named if value))


def setting_of(choice: Choice) -> Setting:
    """The inverse."""
    if choice == DEFAULT:
        return LIBRARY
    values = {name: int(value) for name, value in choice.parameters}
    return Setting(choice.algorithm, *(values.get(name, 0) for name in ("radix", "batch", "direct_above")))


@dataclass(frozen=True, slots=True, order=True)
class Shape:
    """Of a job: ``nodes`` with ``ppn`` ranks each."""

    nodes: int
    ppn: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ppn

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ppn}"


def parts_of(nodes: int, ppn: int) -> list[Shape]:
    """The parts of a job that are tuned, itself included: those of all collectives, if they have the ranks for it."""
    return [Shape(*shape) for shape in shapes(nodes, ppn) if shape[0] * shape[1] >= FEWEST_RANKS]


def radices(ranks: int) -> list[int]:
    """Powers of two up to half of ``ranks``, and the root, near which time over radix often has its minimum."""
    if ranks < 4:
        return [2] if ranks > 2 else []
    found = {isqrt(ranks), 2}
    power = 2
    while power <= max(2, ranks // 2):
        found.add(power)
        power *= 2
    return sorted(radix for radix in found if 2 <= radix < ranks - 1)


def candidates(shape: Shape) -> list[Setting]:
    """Every setting that the tuner looks at, the library's own first."""
    ranks = shape.ranks
    found = [LIBRARY]
    found += [Setting("linear", 0, batch) for batch in (0, 8, 32) if batch < ranks - 1]
    for radix in radices(ranks):
        found += [Setting("parata", radix, batch) for batch in sorted({0, 1, min(4, radix - 1)})]
    if shape.nodes > 1 and shape.ppn > 1:
        for radix in sorted({2, isqrt(shape.ppn), shape.ppn} - {0, 1}):
            for batch in sorted({0, 1, 4, 16}):
                if batch < shape.nodes - 1:
                    found.append(Setting("hieata", radix, batch))
    return list(dict.fromkeys(found))
