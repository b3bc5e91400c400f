"""What is loaded into a program before its own libraries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PRELOAD = "LD_PRELOAD"


def preload_variables(library: Path | str, environment: Mapping[str, str]) -> dict[str, str]:
    """What loads ``library`` before all that ``environment`` preloads; nothing is moved where it is among that."""
    already = environment.get(PRELOAD, "")
    if str(library) in already.split(":"):
        return {PRELOAD: already}
    return {PRELOAD: ":".join(filter(None, (str(library), already)))}
