"""What the catalogue says about one collective, one algorithm, one parameter."""

from dataclasses import dataclass, field
from enum import StrEnum

from colltune.core.errors import InputError
from colltune.core.sample import SizeBasis, Value


class Need(StrEnum):
    """A precondition of an algorithm; the heads of mpich.toml and openmpi.toml say what each of them means."""

    POWER_OF_TWO = "power-of-two"
    COMMUTATIVE = "commutative"
    BUILTIN_OP = "builtin-op"
    COUNT_GE_POF2 = "count-ge-pof2"
    REGULAR_COUNTS = "regular-counts"
    NOT_IN_PLACE = "not-in-place"
    IN_PLACE = "in-place"
    PARENT_COMM = "parent-comm"
    ONE_NODE = "one-node"
    TWO_RANKS = "two-ranks"
    EVEN_RANKS = "even-ranks"
    COUNT_GE_RANKS = "count-ge-ranks"


class Kind(StrEnum):
    """FLAT: one algorithm for all ranks. COMPOSITION: of network and shared memory. MOCK_UP: another collective."""

    FLAT = "flat"
    COMPOSITION = "composition"
    MOCK_UP = "mock-up"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an algorithm.

    ``values``: what to try, empty where only ``default`` is used. ``cvar``: full name of its control variable, "" for
    none. ``limit``: "ranks", "ranks-1", "size" or None; of the values at and beyond the limit only the first is
    different from the others ("ranks", "ranks-1") or none is of use ("size"). ``in_file``: False where no file of the
    library can write it.
    """

    name: str
    default: Value
    values: tuple[Value, ...] = ()
    cvar: str = ""
    limit: str | None = None
    init_only: bool = False
    in_file: bool = True


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One algorithm of one collective in one version of the library.

    ``selection_name``: its name in the selection file. ``number``: the value of the control variable that chooses it,
    None where there is none, or where it is chosen by name. Of a composition: ``leads`` says that one rank of each node
    runs the same collective between the nodes, ``leaders`` by which algorithm, None for the library's own choice;
    ``shares_nodes`` that the ranks of a node run it inside the node, ``general_on_node`` that they do so by a general
    algorithm (the leaders', or the library's own choice) in place of one of shared memory. ``parameters`` are those of
    ``leaders``.
    """

    key: str
    kind: Kind
    selection_name: str
    needs: frozenset[Need] = frozenset()
    parameters: tuple[Parameter, ...] = ()
    candidate: bool = True
    why_not: str = ""
    reproducible: bool = False
    number: int | None = None
    leads: bool = False
    leaders: "Algorithm | None" = None
    shares_nodes: bool = False
    general_on_node: bool = False

    @property
    def composed(self) -> bool:
        """Whether it is a composition with another choice below it than the library's own."""
        return self.leaders is not None or self.general_on_node

    @property
    def tuned(self) -> tuple[Parameter, ...]:
        """The parameters that choices differ in."""
        return tuple(parameter for parameter in self.parameters if parameter.values)

    @property
    def in_file(self) -> bool:
        """Whether a file can say it."""
        return self.kind is not Kind.MOCK_UP


NO_DEVICE = Algorithm("none", Kind.COMPOSITION, "", candidate=False, why_not="the device has no part in it")


@dataclass(frozen=True)
class CollectiveEntry:
    """A collective in one version of the library.

    ``basis``: the size that its rules compare with. ``nothing_to_tune``: the reason in words, or None.
    ``network_only``: the composition that hands all ranks to the flat algorithm; NO_DEVICE where the device of the
    library has no part in the collective. ``number``: of the collective in a
    file of Open MPI; ``owner``: the component that takes it from there on several nodes, or None. ``in_file``: False
    where no file of the library decides it, so that only the live selector can.
    """

    name: str
    basis: SizeBasis
    algorithms: tuple[Algorithm, ...]
    network_only: Algorithm
    nothing_to_tune: str | None = None
    number: int = -1
    owner: str | None = None
    in_file: bool = True
    _by_key: dict[str, Algorithm] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_key.update({algorithm.key: algorithm for algorithm in self.algorithms})

    def algorithm(self, key: str) -> Algorithm:
        """Raises InputError for a key that this version does not have."""
        try:
            return self._by_key[key]
        except KeyError:
            known = ", ".join(self._by_key)
            raise InputError(f"{self.name} has no algorithm {key!r} in this version", f"It has {known}") from None
