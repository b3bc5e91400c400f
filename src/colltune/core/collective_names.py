"""Collectives as people name them: ``bcast``, ``MPI_Bcast``, ``bcast,allreduce`` and ``all``."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from colltune.core.errors import InputError
from colltune.core.sample import COLLECTIVES, TUNABLE

ALL = "all"
ALLTOALLV = "alltoallv"  # is tuned by itself: its algorithms are colltune's, not the library's


def parse_collectives(texts: Iterable[str], known: Sequence[str] = COLLECTIVES) -> list[str]:
    """The names in ``texts``, each once: ``["MPI_Bcast,reduce"]`` -> ``["bcast", "reduce"]``.

    ``all`` is ``known``: the blocking ones. A non-blocking one is named, for few programs call it.

    Raises InputError for a name that is no collective, with the one that it resembles.
    """
    names: dict[str, None] = {}
    for text in texts:
        for part in filter(None, (part.strip() for part in text.split(","))):
            names |= dict.fromkeys(known if _plain(part) == ALL else [parse_collective(part)])
    return list(names)


def parse_collective(text: str) -> str:
    """``"MPI_Bcast"`` -> ``"bcast"``. Raises InputError as ``parse_collectives``."""
    name = _plain(text)
    if name in TUNABLE:
        return name
    if name == ALLTOALLV:
        raise InputError(
            "alltoallv is not tuned together with other collectives: its algorithms are colltune's own",
            "Tune it by itself: colltune tune alltoallv",
        )
    near = get_close_matches(name, TUNABLE, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise InputError(f"there is no collective {text!r}", f"{meant}There are {', '.join(TUNABLE)}")


def only_alltoallv(texts: Sequence[str]) -> bool:
    """Whether MPI_Alltoallv is all that is asked for."""
    return bool(texts) and all(_plain(text) == ALLTOALLV for text in texts)


def _plain(text: str) -> str:
    """Lower case, without the prefix of MPI's names."""
    return text.strip().lower().removeprefix("pmpi_").removeprefix("mpi_")
