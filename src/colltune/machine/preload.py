"""The variable that makes the dynamic linker load a library before those of a program."""

import re
from collections.abc import Mapping
from pathlib import Path

PRELOAD = "LD_PRELOAD"
# The name of an MPI library's file, and not that of a tool such as libmpiP.so.
MPI_LIBRARY = r"libmpi(?:ch)?(?:_(?:abi|cray|gnu|intel|amd|nvidia)\w*)?\.so\S*"


def preload_variables(library: Path | str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable that preloads ``library`` behind the libraries that ``environment`` preloads.

    So a tool of the user's that is among them sees what it sees without ours. Only an MPI library, which some preload
    for programs in Python, comes after it: before it that would answer all calls.

    If ``library`` is among them already, their order stays.
    """
    already = environment.get(PRELOAD, "")
    names = already.replace(" ", ":").split(":")
    if str(library) in names:
        return {PRELOAD: already}
    mpis = (at for at, name in enumerate(names) if re.fullmatch(MPI_LIBRARY, Path(name).name))
    names.insert(next(mpis, len(names)), str(library))
    return {PRELOAD: ":".join(filter(None, names))}
