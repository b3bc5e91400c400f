"""`colltune explain`: which rule decides one call, what runs, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import Tuned
from colltune.core.errors import InputError

if TYPE_CHECKING:
    from colltune.core.sample import Environment, Sample
    from colltune.core.scenario import Scenario
    from colltune.store.tuning import Tuning


def explain(
    tuned: Tuned,
    collective: Annotated[str, typer.Argument(help="The collective, such as allreduce.", show_default=False)],
    size: Annotated[
        str | None, typer.Option(help="Message size, such as 4KiB: one block of alltoall and the like, else all of it.")
    ] = None,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes. Default: those that were tuned.")] = None,
    ppn: Annotated[int | None, typer.Option("--ppn", min=1, help="Ranks per node. Default: as tuned.")] = None,
) -> None:
    """Say which rule decides a call, which algorithm runs, what the default is, and what was measured around it."""
    from colltune.report.explain import Explanation, format_explanation
    from colltune.store.tuning import CONFIRMATION, JOURNAL, load_tuning

    tuning = load_tuning(tuned)
    environment = tuning.environment
    scenario = _scenario(tuning, collective, size, nodes or environment.nodes, ppn or environment.ppn)
    runs, default_runs = _outcomes(tuning, scenario)
    explanation = Explanation(
        scenario,
        environment,
        tuning.rule_sets[collective],
        runs,
        default_runs,
        _samples(tuned / JOURNAL),
        _samples(tuned / CONFIRMATION),
        tuning.summary.get("gate", []) if tuning.summary.get("gated", True) else None,
    )
    typer.echo(format_explanation(explanation))


def _scenario(tuning: Tuning, collective: str, size: str | None, nodes: int, ppn: int) -> Scenario:
    """Raises InputError for what was not tuned, and for calls that cannot be."""
    from colltune.core.scenario import COLLECTIVES, REDUCTIONS, Scenario
    from colltune.core.units import parse_size

    if collective not in COLLECTIVES:
        raise InputError(f"there is no collective {collective!r}", f"There are {', '.join(COLLECTIVES)}")
    if collective not in tuning.rule_sets:
        tuned = ", ".join(tuning.rule_sets) or "nothing"
        raise InputError(
            f"{collective} was not tuned, so the library decides alone", f"Tuned were {tuned}; tune {collective} too"
        )
    if nodes * ppn < 2:
        raise InputError("a single rank runs no algorithm", "Give --nodes or --ppn of 2 or more")
    if collective == "barrier":
        if size is not None and parse_size(size) != 0:
            raise InputError(f"a barrier has no message, so not one of {size}", "Leave --size out")
        return Scenario(collective, nodes, ppn, 0)
    if size is None:
        raise InputError(f"which size of {collective}?", "Give for example --size 4KiB")
    size_bytes = parse_size(size)
    if size_bytes == 0:
        raise InputError(f"{collective} of no bytes runs no algorithm", "Give for example --size 4KiB")
    if collective in REDUCTIONS and size_bytes % 4:
        raise InputError(
            f"{size} is no whole number of 4-byte elements, which {collective} is tuned with",
            f"Give for example --size {size_bytes // 4 * 4 + 4}",
        )
    return Scenario(collective, nodes, ppn, size_bytes)


def _outcomes(tuning: Tuning, scenario: Scenario) -> tuple[str, str]:
    """What runs with the files and what runs without them."""
    from colltune.catalog import load
    from colltune.emit.mpich_defaults import cut_default_trees
    from colltune.emit.mpich_outcome import describe_outcome, trees_of
    from colltune.emit.mpich_tree import Call

    environment = tuning.environment
    catalogue = load(environment.mpi, environment.mpi_version)
    call = Call.of(scenario, environment.thread_level)
    files = {Path(name).name: data for name, data in tuning.files.items()}
    runs = describe_outcome(trees_of(files), call, catalogue)
    try:
        return runs, describe_outcome(cut_default_trees(_library(environment)), call, catalogue)
    except InputError as error:
        return runs, f"unknown: {error.what}"


def _library(environment: Environment) -> Path:
    """The libmpi that was tuned. Raises InputError where it is not here any more, or is another one now."""
    from hashlib import sha256

    facts = environment.facts
    beside = Path(facts.get("mpiexec", "")).parent.parent / "lib"
    named = [Path(facts["libmpi"])] if "libmpi" in facts else [beside / "libmpi.so.12", beside / "libmpi.so"]
    for path in named:
        if path.is_file():
            if sha256(path.read_bytes()).hexdigest() != environment.mpi_build:
                raise InputError(f"{path} is not the build that was tuned", "Tune this one")
            return path
    raise InputError(f"the library that was tuned is not at {named[0]}", "Ask on the machine that was tuned")


def _samples(path: Path) -> tuple[Sample, ...]:
    """Of a journal; none where the directory came without it, since the rules explain themselves."""
    from colltune.store.journal import read_journal

    return read_journal(path).samples if path.exists() else ()
