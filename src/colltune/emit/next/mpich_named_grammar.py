"""What the redesigned selection of MPICH knows (pull request 7547 of pmodels/mpich, as of June 2026; not in a release).

Its file holds named trees. The library's own are loaded first, and a file replaces those that it names. An algorithm
is followed whether its preconditions hold or not.
"""

import re
from dataclasses import dataclass

from colltune.catalog.read import read_toml

VARIABLE = "MPIR_CVAR_COLL_SELECTION_JSON_FILE"
NAME, CALL, ALGORITHM, COLLECTIVE, ANY = "name=", "call=", "algorithm=", "collective=", "any"
# The library keeps this much of a name, and ends it nowhere if it is longer.
LONGEST_NAME = 48
# Bounds are read by atoi into an int.
LARGEST_BOUND = 2**31 - 1

# The collectives, blocking and not, whose arguments a condition can read; of those for all calls nothing is said.
DEFINED_FOR = {
    name: frozenset(text.split()) for name, text in read_toml("next_formats")["mpich_conditions"].items() if text
}
SIZES = ("comm_size", "avg_msg_size", "total_msg_size")
CONDITIONS = read_toml("next_formats")["mpich_conditions"].keys() - {*SIZES}
# The average is defined for these alone: elsewhere asking for it ends the job.
WITH_AVERAGE = DEFINED_FOR["avg_msg_size"]
_SIZE = re.compile(rf"({'|'.join(SIZES)})(?:(<=|<|>=|>)|\()(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?\d{1,18}")


@dataclass(frozen=True, slots=True)
class AlgorithmName:
    """``needs``: conditions that must hold, "!" before those that must not. ``parameters``: all must be given."""

    collective: str
    needs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


_POSIX = ("barrier", "bcast", "reduce", "allreduce")


def _algorithms() -> dict[str, AlgorithmName]:
    names = {}
    for collective, entries in read_toml("next_formats")["mpich"].items():
        for entry in entries.split(";"):
            key, *words = entry.split()
            needs = tuple(word for word in words if not word.endswith("="))
            parameters = tuple(word[:-1] for word in words if word.endswith("="))
            names[f"MPIR_{collective.capitalize()}_intra_{key}"] = AlgorithmName(collective, needs, parameters)
    for collective in _POSIX:
        name = f"MPIDI_POSIX_mpi_{collective}_release_gather"
        names[name] = AlgorithmName(collective, ("MPIDI_CH4_release_gather",))
    return names


ALGORITHMS = _algorithms()


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """A key as the library reads it. ``most``: of a size, the largest that meets it before ``negated``; else None."""

    about: str
    negated: bool
    most: int | None = None


def parse_condition(key: str) -> KeyCondition | None:
    """None for a key at which the library ends the job."""
    negated, text = key.startswith("!"), key.removeprefix("!")
    if text in CONDITIONS:
        return KeyCondition(text, negated)
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number = _NUMBER.match(match[3].strip())
    bound = int(number[0]) if number else 0
    beyond = match[2] in (">", ">=")
    # The library forgets the "!" of a bound from below, which sets the same mark.
    return KeyCondition(match[1], negated or beyond, bound - 1 if match[2] in ("<", ">=") else bound)
