"""The catalogue of Open MPI: algorithms by number, which a fresh communicator takes from control variables."""

from typing import Any

from colltune.catalog.catalogue import Catalogue
from colltune.catalog.entries import Algorithm, CollectiveEntry, Kind, Need, Parameter
from colltune.core.sample import DEFAULT, Choice, SizeBasis, Value

_TUNED = Algorithm("tuned", Kind.COMPOSITION, "tuned", candidate=False, why_not="a component, not an algorithm")


# The component that makes the calls that do not block. It reads its variables in each call, and has no file of rules.
_LIBNBC = "coll_libnbc_"


class OpenMpiCatalogue(Catalogue):
    """What coll/tuned can run, and coll/libnbc of the calls that do not block. All settings are integers.

    Those of coll/tuned hold for communicators that are made afterwards, those of coll/libnbc for calls.
    """

    @property
    def has_han(self) -> bool:
        """Whether han stands before coll/tuned on several nodes, as it does from 5.0 on."""
        return tuple(int(part) for part in self.version.split(".")[:2]) >= (5, 0)

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
            if parameter.cvar is not None:
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


def openmpi_entry(name: str, body: dict[str, Any], prefix: str) -> CollectiveEntry:
    """One table of openmpi.toml; rows of other versions are out of it already."""
    algorithms = tuple(_algorithm(row, f"{prefix}{name}_algorithm_") for row in body["algorithms"])
    return CollectiveEntry(
        name,
        SizeBasis(body["basis"]),
        algorithms,
        _TUNED,
        body.get("nothing_to_tune"),
        number=body.get("id", -1),
        owner="han" if body.get("han") else None,
        in_file="id" in body,
    )


def _algorithm(row: dict[str, Any], prefix: str) -> Algorithm:
    return Algorithm(
        key=row["key"],
        kind=Kind.FLAT,
        selection_name=row["key"],
        needs=frozenset(map(Need, row.get("needs", ()))),
        parameters=tuple(
            Parameter(
                name=parameter["name"],
                default=parameter["default"],
                values=tuple(parameter["values"]),
                cvar=prefix + parameter["variable"],
                limit=parameter.get("limit"),
            )
            for parameter in row.get("parameters", ())
        ),
        candidate=row.get("candidate", True),
        why_not=row.get("why_not", ""),
        number=row["number"],
    )
