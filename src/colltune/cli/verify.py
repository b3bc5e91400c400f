"""`colltune verify`: does a tuning hold? Right results, faster, and nowhere slower."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from colltune.cli.console import echo
from colltune.cli.options import AsJson, Tuned, Via, offers
from colltune.session.arguments import MachineArguments, machine_options

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions


@offers(MachineArguments)
def verify(
    tuned: Tuned,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do the rules still pay? Each is looked at again, in under two minutes.")
    ] = False,
    results: Annotated[
        bool, typer.Option("--results", help="Are all results right? Every form of every call, byte for byte.")
    ] = False,
    launches: Annotated[int, typer.Option(min=2, help="Launches with the file, and as many without it.")] = 8,
    short: Annotated[bool, typer.Option("--short", help="With --results: one case of each kind.")] = False,
    budget: Annotated[str, typer.Option(help="With --quick: time to spend at most.")] = "100s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    as_json: AsJson = False,
    via: Via = "file",
    **where: Unpack[MachineArguments],
) -> None:
    """Does a tuning hold? Are results right, and is it faster, and nowhere slower? Exit code 1 if not.

    All results are checked, then the default is compared with the tuned file in new launches, also at sizes that were
    not tuned. --results does the first alone; --quick only asks whether the rules still pay.
    While other programs use the processors nothing is said of speed, and the exit code is 4.
    """
    from colltune.cli.as_json import print_json
    from colltune.cli.compare import as_record, exit_code_of, show
    from colltune.cli.terminal import make_console
    from colltune.cli.verify_quick import check_quickly
    from colltune.core.errors import InputError
    from colltune.core.units import parse_duration
    from colltune.judge.finding import ExitCode
    from colltune.session.compare import verify as compare_with_default

    machine = machine_options(where)
    if quick + results + as_json > 1:
        raise InputError("--quick, --results and --json ask for different things", "Give one of them")
    if results:
        raise typer.Exit(ExitCode.DONE if check_results(tuned, machine, short=short, via=via) else ExitCode.WORSE)
    if quick:
        raise typer.Exit(check_quickly(tuned, machine, parse_duration(budget), seed))
    right = check_results(tuned, machine, short=True, via=via, err=as_json)
    comparison = compare_with_default(
        tuned,
        machine,
        launches=launches,
        seed=seed,
        via=via,
        note=lambda note: make_console(err=as_json).print(note, markup=False),
    )
    if as_json:
        print_json("verify", {"results_right": right, **as_record(comparison)})
    else:
        show(comparison, "use --launches {launches}")
    raise typer.Exit(exit_code_of("verify", comparison) if right else ExitCode.WORSE)


def check_results(tuned: Path, machine: "MachineOptions", *, short: bool, via: str, err: bool = False) -> bool:
    """Says what the check found, and whether all results were right.

    More ranks than cores are fine here: --ppn 8 checks up to 8 ranks.
    """
    from colltune.session.check import check

    result = check(tuned, machine, short=short, via=via)
    echo(result.message, err=err)
    for failure in result.failures:
        echo(f"  {failure}", err=err)
    return result.passed
