"""What can be set for a whole process of an MPI library beside its algorithms, by the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from colltune.catalog.read import read_toml


@dataclass(frozen=True, slots=True)
class ProcessSetting:
    """A setting of the whole process: ``variables`` of its environment, with values. ``risk``: what it may harm."""

    name: str
    variables: tuple[tuple[str, str], ...]
    risk: str


def process_settings(library: str) -> tuple[ProcessSetting, ...]:
    """What can be set for a whole process of ``library`` beside its algorithms; none for most libraries."""
    table = read_toml(library)
    return tuple(
        ProcessSetting(
            row["name"], tuple((table["prefix"] + name, value) for name, value in row["variables"].items()), row["risk"]
        )
        for row in table.get("process_settings", ())
    )
