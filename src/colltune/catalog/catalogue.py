"""The choices that one version of a library offers, and which of them fit a call.

Open MPI has algorithms by number, which a fresh communicator takes from control variables.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product

from colltune.catalog.entries import NO_DEVICE, Algorithm, CollectiveEntry, Kind, Need, Parameter
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, NONBLOCKING, Choice, Scenario, Value

_ELEMENT_BYTES = 4  # reductions are tuned on float
_ALWAYS_HELD = frozenset({Need.COMMUTATIVE, Need.BUILTIN_OP, Need.NOT_IN_PLACE})


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The catalogue of ``library`` at ``version`` (major.minor).

    ``warning``: what to tell the user about the version, or None. ``tree_type_numbers``: how the selection file
    writes tree types; empty where it writes their names.
    """

    library: str
    version: str
    warning: str | None
    prefix: str
    entries: dict[str, CollectiveEntry]
    tree_type_numbers: dict[str, int]
    _legal: dict[tuple[object, ...], tuple[Choice, ...]] = field(default_factory=dict, init=False, repr=False)

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number of ``version``."""
        return release_of(self.version)

    def collective(self, name: str) -> CollectiveEntry:
        """Raises InputError for a collective that is not in the catalogue."""
        if name in NONBLOCKING and name not in self.entries:
            what = f"colltune cannot choose the algorithm of {name} in {self.library} {self.version}"
            raise InputError(what, "See which it can in: colltune doctor")
        if name not in self.entries:
            raise InputError(f"there is no collective {name!r} to tune", f"There are {', '.join(self.entries)}")
        return self.entries[name]

    def algorithm(self, collective: str, choice: Choice) -> Algorithm:
        """The algorithm of a choice other than the default.

        Raises InputError for an algorithm that this version does not have, one that must not be chosen, and
        parameters other than exactly those that are tuned.
        """
        algorithm = self.collective(collective).algorithm(choice.algorithm)
        if not algorithm.candidate:
            raise InputError(f"{collective} {choice} cannot be chosen: {algorithm.why_not}", "Choose another one")
        expected = sorted(parameter.name for parameter in algorithm.tuned)
        if [name for name, _ in choice.parameters] != expected:
            raise InputError(f"{collective} {choice} does not set exactly the parameters {expected}", "Set these")
        return algorithm

    def choices(self, collective: str) -> tuple[Choice, ...]:
        """Every candidate, the default first."""
        return _choices(self, collective)

    def legal(self, scenario: Scenario, thread_level: str = "single") -> tuple[Choice, ...]:
        """The candidates worth measuring in ``scenario``, the default first.

        Left out is what the library would refuse or replace there, and what repeats another candidate, such as
        a radix beyond the number of ranks. ``thread_level`` is the application's ("single" to "multiple").
        """
        # The size decides by its class alone, and a grid has many sizes of one.
        key = scenario.collective, scenario.nodes, scenario.ppn, self.size_class(scenario), thread_level
        if key not in self._legal:
            # Most shapes of a large job differ in nothing that decides.
            alike = (scenario.collective, thread_level, *self._deciding(scenario))
            if alike not in self._legal:
                choices = [DEFAULT]
                for algorithm, below in self._worth_measuring(scenario, thread_level):
                    choices += _with_values(algorithm, tuple(_useful(p, below) for p in algorithm.tuned))
                self._legal[alike] = tuple(choices)
            self._legal[key] = self._legal[alike]
        return self._legal[key]

    def _deciding(self, scenario: Scenario) -> tuple[object, ...]:
        """All of a scenario that its candidates depend on."""
        limited = tuple(value < scenario.size_bytes for value in _limited(self, scenario.collective, "size"))
        most = max((2, *_limited(self, scenario.collective, "ranks", "ranks-1"))) + 1
        return (
            *_Below(scenario).held,
            held_needs(scenario),
            min(scenario.ranks, most),
            min(scenario.nodes, most),
            limited,
        )

    def numbered(self) -> dict[int, CollectiveEntry]:
        """By their numbers in a file of Open MPI, the collectives that a file decides."""
        return {entry.number: entry for entry in self.entries.values() if entry.in_file}

    def size_class(self, scenario: Scenario) -> tuple[object, ...]:
        """What candidates depend on of the size: sizes of one class have equally many, in one shape of a collective."""
        count = scenario.size_bytes // _ELEMENT_BYTES
        # The leaders of the nodes, and the ranks inside of one, are communicators of their own.
        of_parts = [
            (count >= 1 << (ranks.bit_length() - 1), count >= ranks, count % ranks == 0)
            for ranks in (scenario.ranks, scenario.nodes, scenario.ppn)
        ]
        limited = [value < scenario.size_bytes for value in _limited(self, scenario.collective, "size")]
        return (*of_parts, *limited)

    def _worth_measuring(self, scenario: Scenario, thread_level: str) -> Iterator[tuple[Algorithm, Scenario]]:
        """The candidates by their algorithm, and the scenario in which its parameters differ."""
        # With several threads in MPI the device has no shared-memory algorithms, so that on one node all its
        # compositions hand over to the flat default.
        device_helps = thread_level != "multiple" or scenario.nodes > 1
        held, below = held_needs(scenario), _Below(scenario)
        for algorithm in self.collective(scenario.collective).algorithms:
            if algorithm.kind is Kind.COMPOSITION and not device_helps:
                continue
            if algorithm.candidate and algorithm.needs <= held and below.is_worth(algorithm, thread_level):
                yield algorithm, below.leaders if algorithm.composed else scenario

    def settings(self, collective: str, choice: Choice) -> tuple[tuple[str, str], ...]:
        """The control variables to write before a call, as (full name, value); the default needs none.

        An enumeration's value is its name, since numbers differ between versions. Raises InputError as
        ``algorithm`` does.
        """
        if choice == DEFAULT:
            return ()
        algorithm = self.algorithm(collective, choice)
        entry = self.collective(collective)
        if algorithm.kind is Kind.MOCK_UP:
            return ((f"COLLTUNE_{collective.upper()}_MOCK_UP", "1"),)
        variable = f"{self.prefix}{collective.upper()}_"
        if algorithm.kind is Kind.COMPOSITION:
            settings = [(f"{variable}COMPOSITION", str(algorithm.number))]
            if algorithm.general_on_node:
                settings.append((f"{variable}POSIX_INTRA_ALGORITHM", "mpir"))
            if algorithm.leaders is not None:
                settings.append((f"{variable}INTRA_ALGORITHM", algorithm.leaders.key))
            return (*settings, *_parameter_settings(algorithm, choice))
        if entry.network_only is NO_DEVICE:
            return ((f"{variable}INTRA_ALGORITHM", algorithm.key), *_parameter_settings(algorithm, choice))
        if entry.network_only.number is None:
            reach = (f"{variable}DEVICE_COLLECTIVE", "0")
        else:
            reach = (f"{variable}COMPOSITION", str(entry.network_only.number))
        return (reach, (f"{variable}INTRA_ALGORITHM", algorithm.key), *_parameter_settings(algorithm, choice))

    def selection_parameters(self, collective: str, choice: Choice) -> tuple[tuple[str, str], ...]:
        """All parameters as the selection file writes them, of a flat choice or of the leaders of a composition.

        None may be left out there, for MPICH does not set it then, but what the algorithm does not read.
        """
        chosen, parameters = dict(choice.parameters), self.algorithm(collective, choice).parameters
        return tuple((p.name, self.written(p.name, chosen.get(p.name, p.default))) for p in parameters if p.in_file)

    def written(self, parameter: str, value: object) -> str:
        """``value`` as the selection file writes it."""
        numbers = self.tree_type_numbers
        return str(numbers[str(value)]) if parameter == "tree_type" and numbers else str(value)


def release_of(text: str) -> tuple[int, int]:
    """The major and minor number of "5.0.2" or "4.3.0rc1"."""
    match = re.match(r"(\d{1,9})\.(\d{1,9})", text)
    if match is None:
        raise InputError(f"cannot read the version {text!r}", "Write for example 5.0.2")
    return int(match[1]), int(match[2])


@cache
def _choices(catalogue: Catalogue, collective: str) -> tuple[Choice, ...]:
    choices = [DEFAULT]
    for algorithm in catalogue.collective(collective).algorithms:
        if algorithm.candidate:
            choices += _with_values(algorithm, tuple(parameter.values for parameter in algorithm.tuned))
    return tuple(choices)


@cache
def _limited(catalogue: Catalogue, collective: str, *limits: str) -> tuple[int, ...]:
    """The values of those parameters of ``collective`` that have one of ``limits``."""
    limited = [
        value
        for algorithm in catalogue.collective(collective).algorithms
        for parameter in algorithm.tuned
        if parameter.limit in limits
        for value in parameter.values
        if isinstance(value, int)
    ]
    return tuple(sorted(set(limited)))


class _Below:
    """The calls below the compositions of ``scenario``, and what holds in them; made once for all of these."""

    def __init__(self, scenario: Scenario) -> None:
        self._nodes = scenario.nodes
        # Not by `replace`, which takes ten times as long.
        self.leaders = Scenario(scenario.collective, scenario.nodes, 1, scenario.size_bytes)
        self._inside = Scenario(scenario.collective, 1, scenario.ppn, scenario.size_bytes)

    @cached_property
    def held(self) -> tuple[frozenset[Need], frozenset[Need]]:
        """What holds for the leaders, and for them and for the ranks of a node."""
        led = held_needs(self.leaders)
        return led, led & held_needs(self._inside)

    def is_worth(self, algorithm: Algorithm, thread_level: str) -> bool:
        """Whether what is below ``algorithm`` is worth measuring, if it is another choice than the library's own."""
        if not algorithm.composed:
            return True
        threads = thread_level == "multiple" and algorithm.shares_nodes
        if self._nodes < 2 or (threads and algorithm.general_on_node != (algorithm.leaders is not None)):
            # Without algorithms of shared memory the same control variable holds between the nodes and inside them.
            return False
        return algorithm.leaders is None or algorithm.leaders.needs <= self.held[algorithm.general_on_node]


def _with_values(algorithm: Algorithm, values: tuple[tuple[Value, ...], ...]) -> tuple[Choice, ...]:
    return _combined(algorithm.key, tuple(parameter.name for parameter in algorithm.tuned), values)


@cache
def _combined(algorithm: str, names: tuple[str, ...], values: tuple[tuple[Value, ...], ...]) -> tuple[Choice, ...]:
    """Kept, for they are few, and asked in every scenario."""
    return tuple(Choice(algorithm, tuple(zip(names, some, strict=True))) for some in product(*values))


def _useful(parameter: Parameter, scenario: Scenario) -> tuple[Value, ...]:
    """The values of ``parameter`` that differ from each other in ``scenario``."""
    values = [value for value in parameter.values if isinstance(value, int)]
    if parameter.limit == "size":
        return tuple(value for value in values if value < scenario.size_bytes)
    if parameter.limit is None:
        return parameter.values
    limit = scenario.ranks - (1 if parameter.limit == "ranks-1" else 0)
    below = [value for value in values if value < limit]
    return (*below, *[value for value in values if value >= limit][:1])


def _parameter_settings(algorithm: Algorithm, choice: Choice) -> Iterator[tuple[str, str]]:
    chosen = dict(choice.parameters)
    for parameter in algorithm.parameters:
        # What no file sets, a choice that does not name it leaves as it is, as the choice does in a file.
        if not parameter.init_only and (parameter.in_file or parameter.name in chosen):
            yield parameter.cvar, str(chosen.get(parameter.name, parameter.default))


def held_needs(scenario: Scenario) -> frozenset[Need]:
    """The needs that the tuner's own calls of ``scenario`` meet: float sums, two buffers, equal counts."""
    nodes, ppn, count = scenario.nodes, scenario.ppn, scenario.size_bytes // _ELEMENT_BYTES
    ranks = nodes * ppn
    asked = (
        (Need.POWER_OF_TWO, ranks & (ranks - 1) == 0),
        (Need.COUNT_GE_POF2, count >= 1 << (ranks.bit_length() - 1)),
        (Need.REGULAR_COUNTS, count % ranks == 0),
        (Need.PARENT_COMM, ppn > 1),
        (Need.ONE_NODE, nodes == 1),
        (Need.TWO_RANKS, ranks == 2),
        (Need.EVEN_RANKS, ranks % 2 == 0),
        (Need.COUNT_GE_RANKS, count >= ranks),
    )
    return _ALWAYS_HELD.union(need for need, holds in asked if holds)


# The component that makes the calls that do not block. It reads its variables in each call, and has no file of rules.
_LIBNBC = "coll_libnbc_"


class OpenMpiCatalogue(Catalogue):
    """What coll/tuned can run, and coll/libnbc of the calls that do not block. All settings are integers.

    Those of coll/tuned hold for communicators that are made afterwards, those of coll/libnbc for calls.
    """

    @property
    def has_han(self) -> bool:
        """Whether han stands before coll/tuned on several nodes, as it does from 5.0 on."""
        return self.release >= (5, 0)

    def settings(self, collective: str, choice: Choice) -> tuple[tuple[str, str], ...]:
        if choice == DEFAULT:
            return ()
        algorithm = self.algorithm(collective, choice)
        entry = self.collective(collective)
        if not entry.in_file:
            return ((f"{_LIBNBC}{collective}_algorithm", str(algorithm.number)),)
        settings = [
            (f"{self.prefix}use_dynamic_rules", "1"),
            (f"{self.prefix}{collective}_algorithm", str(algorithm.number)),
        ]
        chosen = dict(choice.parameters)
        for parameter in algorithm.parameters:
            settings.append((parameter.cvar, str(chosen.get(parameter.name, parameter.default))))
        if entry.owner == "han" and self.has_han:
            # On several nodes han would take the call before tuned sees it; on one node han is not there. Its priority
            # is read when a communicator is made; which module it hands a call to, only at the call.
            settings.append(("coll_han_priority", "0"))
        return tuple(settings)

    def columns(self, collective: str, choice: Choice) -> tuple[int, int, int, int]:
        """How a rule writes ``choice``: algorithm, fan-out, segment size, most requests. The default is all zeros."""
        if choice == DEFAULT:
            return (0, 0, 0, 0)
        algorithm = self.algorithm(collective, choice)
        values: dict[str, Value] = {parameter.name: parameter.default for parameter in algorithm.parameters}
        values |= dict(choice.parameters)
        named = (int(values.get(name, 0)) for name in ("fanout", "segment_size", "max_requests"))
        return (algorithm.number or 0, *named)  # type: ignore[return-value]
