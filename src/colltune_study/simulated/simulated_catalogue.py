"""The catalogue of simulated clusters: simulated.toml, whose head says what its entries mean."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from colltune.catalog.catalogue import Catalogue, held_needs
from colltune.catalog.entries import Algorithm, CollectiveEntry, Kind, Need, Parameter
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis, parse_choice

VERSION = "1"  # of the algorithms: times of two versions are not to be compared
_NONE = Algorithm("none", Kind.COMPOSITION, "", candidate=False, why_not="a simulated cluster has no compositions")


@dataclass(frozen=True, eq=False)
class SimulatedCatalogue(Catalogue):
    """``most_ranks``: (collective, algorithm) -> ranks beyond which simulating it takes too long; ``wide_ranks``: the
    same, but for one of its choices.
    """

    most_ranks: dict[tuple[str, str], int] = field(default_factory=dict)
    wide_ranks: dict[tuple[str, str], int] = field(default_factory=dict)
    defaults: dict[str, tuple[dict[str, Any], ...]] = field(default_factory=dict)

    def legal(self, scenario: Scenario, thread_level: str = "single") -> tuple[Choice, ...]:
        found = super().legal(scenario, thread_level)
        name = scenario.collective
        return tuple(
            choice
            for choice in found
            if scenario.ranks <= self.most_ranks.get((name, choice.algorithm), scenario.ranks)
            and (_is_narrow(choice) or scenario.ranks <= self.wide_ranks.get((name, choice.algorithm), scenario.ranks))
        )

    def default(self, scenario: Scenario) -> Choice:
        """The candidate that stands in for a library's own choice."""
        total = scenario.size_bytes * scenario.ranks
        for line in self.defaults[scenario.collective]:
            if (
                scenario.size_bytes <= line.get("size", scenario.size_bytes)
                and total <= line.get("total", total)
                and scenario.ranks <= line.get("most_ranks", scenario.ranks)
                and held_needs(scenario).issuperset(map(Need, line.get("needs", ())))
            ):
                return parse_choice(line["choice"])
        raise AssertionError(f"unreachable: the last line of {scenario.collective} holds always")

    def resolve(self, scenario: Scenario, choice: Choice) -> Choice:
        """What runs for ``choice``: the default is one of the others."""
        return self.default(scenario) if choice == DEFAULT else choice


def _is_narrow(choice: Choice) -> bool:
    return all(value == 2 for _, value in choice.parameters)


@cache
def load_simulated() -> SimulatedCatalogue:
    table = tomllib.loads(resources.files(__package__).joinpath("simulated.toml").read_text("utf-8"))
    entries = {name: _entry(name, body) for name, body in table["collectives"].items()}
    most, wide = (
        {
            (name, row["key"]): int(row[limit])
            for name, body in table["collectives"].items()
            for row in body["algorithms"]
            if limit in row
        }
        for limit in ("most_ranks", "wide_ranks")
    )
    defaults = {name: tuple(body["default"]) for name, body in table["collectives"].items()}
    return SimulatedCatalogue("simulated", VERSION, None, "", entries, {}, most, wide, defaults)


def _entry(name: str, body: dict[str, Any]) -> CollectiveEntry:
    return CollectiveEntry(name, SizeBasis(body["basis"]), tuple(map(_algorithm, body["algorithms"])), _NONE)


def _algorithm(row: dict[str, Any]) -> Algorithm:
    parameters = (
        Parameter(p["name"], p["default"], tuple(p["values"]), limit=p.get("limit")) for p in row.get("parameters", ())
    )
    return Algorithm(row["key"], Kind.FLAT, row["key"], frozenset(map(Need, row.get("needs", ()))), tuple(parameters))
