"""Control variables by name and value -> the integers that this library means by them."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from colltune.core.errors import LaunchError
from colltune.core.sample import Choice
from colltune.machine.process import run_launch

Settings = tuple[tuple[str, int], ...]
_PATIENCE_S = 60.0


def resolve_settings(
    agent: Path, named: Mapping[tuple[str, Choice], Sequence[tuple[str, str]]], environment: Mapping[str, str]
) -> dict[tuple[str, Choice], Settings | None]:
    """Control variables with values by name -> with the integers that this library means by them.

    The library itself is asked, by way of the environment that it reads. None: the library does not know one of the
    names, so the choice cannot be measured. Raises LaunchError where the agent cannot be run at all.
    """
    texts = sorted({f"{name}={value}" for pairs in named.values() for name, value in pairs if not _is_integer(value)})
    known: dict[str, int] = {}
    try:
        run = run_launch([str(agent), "--resolve", *texts], environment, _PATIENCE_S)
        run.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(
            f"the agent {agent} cannot be run: {error}", "Remove it, so that it is compiled anew"
        ) from error
    for line in run.stdout.splitlines():
        text, _, value = line.rpartition(" ")
        if _is_integer(value):
            known[text] = int(value)

    def integers(pairs: Sequence[tuple[str, str]]) -> Settings | None:
        values = [(n, int(v) if _is_integer(v) else known.get(f"{n}={v}")) for n, v in pairs]
        return None if any(value is None for _, value in values) else tuple((n, v) for n, v in values if v is not None)

    return {key: integers(pairs) for key, pairs in named.items()}


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
