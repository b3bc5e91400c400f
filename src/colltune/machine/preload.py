"""The variable that makes the dynamic linker load a library before those of a program."""

from collections.abc import Mapping
from pathlib import Path

PRELOAD = "LD_PRELOAD"


def preload_variables(library: Path | str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that preloads ``library`` behind the libraries that ``environment`` preloads.

    So a tool of the user's that is among them sees what it sees without ours.

    If ``library`` is among them already, their order stays.
    """
    already = environment.get(PRELOAD, "")
    if str(library) in already.split(":"):
        return {PRELOAD: already}
    return {PRELOAD: ":".join(filter(None, (already, str(library))))}
