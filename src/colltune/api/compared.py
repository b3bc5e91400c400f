"""Comparisons from Python: of any two settings, and of collectives with others that do the same."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Unpack

from colltune.core.units import parse_duration, parse_size
from colltune.session.arguments import MAX_SIZE, MachineArguments, PathLike, machine_options

if TYPE_CHECKING:
    from colltune.session.compare import Verification


def compare(
    a: PathLike,
    b: PathLike,
    collectives: str | Sequence[str] = (),
    *,
    mpiexec_a: str | None = None,
    mpiexec_b: str | None = None,
    min_size: str | int = "1",
    max_size: str | int = MAX_SIZE,
    budget: str | float = "5m",
    seed: int = 1,
    thread_level: str = "single",
    note: Callable[[str], None] = lambda _text: None,
    **machine: Unpack[MachineArguments],
) -> "Verification":
    """Compares settings, files, tunings or builds of an MPI, as `colltune compare` does; ``slower``: where B loses."""
    from colltune.session.compare import compare

    return compare(
        os.fspath(a),
        os.fspath(b),
        machine_options(machine, thread_level),
        builds=(mpiexec_a, mpiexec_b),
        collectives=[collectives] if isinstance(collectives, str) else collectives,
        sizes=(parse_size(min_size), parse_size(max_size)),
        budget_s=parse_duration(budget),
        seed=seed,
        note=note,
    )


def guidelines(
    *,
    min_size: str | int = "4",
    max_size: str | int = "256KiB",
    budget: str | float = "5m",
    seed: int = 1,
    thread_level: str = "single",
    note: Callable[[str], None] = lambda _text: None,
    **machine: Unpack[MachineArguments],
) -> "Verification":
    """Which calls take longer than others that do the same (``slower``), as `colltune guidelines` finds them."""
    from colltune.session.compare import violations_of
    from colltune.session.sides import NOTHING, NamedSide, open_sides

    nothing, where = NamedSide(NOTHING), machine_options(machine, thread_level)
    side, _ = open_sides(nothing, nothing, where, os.environ, note=note)
    return violations_of(side, (parse_size(min_size), parse_size(max_size)), parse_duration(budget), seed, note)
