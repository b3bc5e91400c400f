"""Rules under which a reduction adds up in one order, whatever its size and whoever comes late.

The library's own choice changes its order with the size of the message, and with the number of calls that a
communicator has seen; so would any rules that change with the size. Here a shape therefore has one choice for all
sizes: of the algorithms that the catalogue calls reproducible, the one with the least sum of log times over the
measured sizes. Shapes that were not measured get the algorithm that is legal on every communicator.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import exp, log

from colltune.catalog import Catalogue, Need
from colltune.core.decision_table import DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import REDUCTIONS, Choice, Scenario
from colltune.core.units import format_size
from colltune.distill.selection import Measured

# Preconditions that a communicator and an operation meet or not, so that no two calls on them are told apart.
_FIXED = frozenset({Need.COMMUTATIVE, Need.POWER_OF_TWO})


@dataclass(frozen=True, slots=True)
class ReproducibilityCost:
    """What reproducibility costs in one scenario; times in seconds."""

    scenario: Scenario
    choice: Choice
    time_s: float
    unrestricted: Choice
    unrestricted_s: float

    @property
    def ratio(self) -> float:
        """Above 1: so many times as slow as the unrestricted choice."""
        return self.time_s / self.unrestricted_s


@dataclass(frozen=True)
class Reproducible:
    """Rules in which size plays no part, and their cost wherever both sides were measured."""

    rule_set: RuleSet
    costs: tuple[ReproducibilityCost, ...]

    @property
    def slowdown(self) -> float:
        """Geometric mean of the ratios; 1.0 where nothing was measured."""
        return exp(sum(log(cost.ratio) for cost in self.costs) / len(self.costs)) if self.costs else 1.0

    def cost_text(self) -> str:
        """One sentence for people."""
        collective = self.rule_set.collective
        if not self.costs:
            return f"{collective}: reproducible; what that costs was not measured"
        worst = max(self.costs, key=lambda cost: cost.ratio)
        where = worst.scenario
        return (
            f"{collective}: reproducible, for {self.slowdown:.2f} times the time of the unrestricted choice on average"
            f" and {worst.ratio:.2f} at worst ({where.nodes} x {where.ppn}, {format_size(where.size_bytes)}:"
            f" {worst.choice} in place of {worst.unrestricted})"
        )


def reproducible_choices(catalogue: Catalogue, collective: str) -> tuple[Choice, ...]:
    """The choices of ``collective`` that keep their order; first the one that is legal on every communicator.

    Raises InputError for a collective that reduces nothing, and where the library has no such algorithm.
    """
    if collective not in REDUCTIONS:
        raise InputError(f"{collective} adds nothing up, so it is reproducible anyway", "Tune it as usual")
    algorithms = {choice: catalogue.algorithm(collective, choice) for choice in catalogue.choices(collective)[1:]}
    choices = [c for c, algorithm in algorithms.items() if algorithm.reproducible and algorithm.needs <= _FIXED]
    choices.sort(key=lambda choice: bool(algorithms[choice].needs))
    if not choices or algorithms[choices[0]].needs:
        raise InputError(f"{collective} has no reproducible algorithm in this version", "Leave it out")
    return tuple(choices)


def distill_reproducible(
    collective: str,
    measured: Measured,
    unrestricted: Mapping[Scenario, Choice],
    catalogue: Catalogue,
    broken: Collection[Choice] = (),
) -> Reproducible:
    """One choice per measured shape, the same for every size.

    ``measured``: median seconds per pair, also of other collectives. ``unrestricted``: what would have been decided
    otherwise, to say what reproducibility costs. ``broken``: choices that failed somewhere, which are excluded.
    Raises InputError as ``reproducible_choices``, and where the choice for all other communicators is broken.
    """
    everywhere, *others = reproducible_choices(catalogue, collective)
    if everywhere in broken:
        raise InputError(f"{collective} {everywhere} failed here, and nothing else is reproducible", "Leave it out")
    usable = [everywhere, *(choice for choice in others if choice not in broken)]
    times: defaultdict[tuple[int, int], dict[Scenario, dict[Choice, float]]] = defaultdict(dict)
    for (scenario, choice), time_s in measured.items():
        if scenario.collective == collective:
            times[scenario.nodes, scenario.ppn].setdefault(scenario, {})[choice] = time_s
    best = {shape: _best(usable, list(some.values())) for shape, some in times.items()}
    shapes = {shape: Steps.always(choice) for shape, choice in best.items()}
    table = DecisionTable.of_shapes(collective, catalogue.collective(collective).basis, shapes, everywhere)
    costs = tuple(
        ReproducibilityCost(scenario, best[shape], by_choice[best[shape]], other, by_choice[other])
        for shape, some in sorted(times.items())
        for scenario, by_choice in sorted(some.items())
        if (other := unrestricted.get(scenario)) in by_choice and best[shape] in by_choice and other is not None
    )
    return Reproducible(table.rule_set(), costs)


def _best(usable: list[Choice], tables: list[dict[Choice, float]]) -> Choice:
    """Of the choices measured at the most sizes the fastest: a gap must not look like a gain."""
    counts = {choice: sum(1 for table in tables if choice in table) for choice in usable}
    most = max(counts.values())
    whole = [choice for choice in usable if counts[choice] == most]
    if most == 0:
        return usable[0]
    common = [table for table in tables if all(choice in table for choice in whole)]
    return min(whole, key=lambda choice: sum(log(table[choice]) for table in common))
