"""What a user or a site has set of MPICH: in variables, or in the file that MPICH reads as it starts."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from colltune.machine.files import read_text

# Where MPICH looks from 4.2 on, unless it is configured otherwise.
SITE_FILE = Path("/etc/mpich.conf")
# Each variable has three names; of those that are set the last counts.
_PREFIXES = ("MPICH_", "MPIR_PARAM_", "MPIR_CVAR_")
_ENDINGS = {"INTRA_ALGORITHM": ("auto", "0"), "COMPOSITION": ("0",), "DEVICE_COLLECTIVE": ("1", "yes", "true")}
_LINE = re.compile(r"([^=:\s#]+)(:force)?=(\S+)")


def overriding(environment: Mapping[str, str], collectives: Iterable[str], site: Path = SITE_FILE) -> list[str]:
    """The settings in ``environment`` and in the file ``site`` that make MPICH ignore the files for ``collectives``."""
    if not (collectives := list(collectives)):
        return []
    neutral = {f"{name.upper()}_{ending}": values for name in collectives for ending, values in _ENDINGS.items()}
    neutral["DEVICE_COLLECTIVES"] = ("percoll",)
    given, files = {name: (value, f"{name}={value}") for name, value in environment.items()}, []
    for name, force, value in _of_site(site):
        if force or name not in given:
            given[name] = value, f"{name}={value} (of {site})"
        if force and name.endswith("_TUNING_JSON_FILE"):
            files.append(given[name][1])
    counting: dict[str, tuple[str, str]] = {}
    for prefix in _PREFIXES:
        counting |= {name: given[prefix + name] for name in neutral if prefix + name in given}
    return [text for name, (value, text) in counting.items() if value.lower() not in neutral[name]] + files


def _of_site(path: Path) -> list[tuple[str, str, str]]:
    """Name, whether it goes before the environment, and value of what the file sets; nothing where it is not read."""
    try:
        text = read_text(path)
    except (OSError, ValueError):
        return []
    lines = (match for line in text.splitlines() if (match := _LINE.match(line)))
    return [(match[1], match[2] or "", match[3]) for match in lines]
