"""`colltune verify --results`: every form of every call under a tuning, compared byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from colltune.cli.console import echo
from colltune.core.units import format_count

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions


def check_results(tuned: Path, machine: MachineOptions, *, short: bool, via: str, err: bool = False) -> bool:
    """Says what the check found, and whether all results were right.

    More ranks than cores are fine here: --ppn 8 checks up to 8 ranks.
    """
    from colltune.session.check import check

    result = check(tuned, machine, short=short, via=via)
    echo(result.message, err=err)
    for failure in result.failures:
        echo(f"  {failure}", err=err)
    return result.passed


def check_candidates(tuned: Path, machine: MachineOptions) -> None:
    """The same of what the proof left open; what gives right results is kept for `run --explore`."""
    from colltune.session.candidates import replay_candidates

    done = replay_candidates(tuned, machine)
    for note in done.notes:
        echo(note)
    echo(f"right results: {format_count(len(done.candidates.choices), 'choice')} of {', '.join(done.rules) or 'none'}")
    echo(f"try them in an application: colltune run --explore {tuned} -- mpiexec ...")
