"""`colltune verify`: does a tuning hold? Right results, faster, and nowhere slower. --quick: do its rules still pay?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from colltune.cli.console import echo, print_json
from colltune.cli.options import AsJson, LaunchLineCommand, Tuned, Via, offers
from colltune.core.errors import InputError
from colltune.core.units import format_count, parse_duration
from colltune.machine.command_lines import colltune_command
from colltune.session.arguments import MachineArguments, machine_options

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions
    from colltune.judge.finding import ExitCode
    from colltune.prove.drift import TuningDrift


_COMMAND = "verify --quick"


def check_quickly(tuned: Path, machine: MachineOptions, budget_s: float, seed: int) -> ExitCode:
    """Says what the drift of the rules is; the exit code says whether all of them hold.

    Each rule is compared with the library's default in fresh launches, until one launch after the other says that it
    pays, or so many say that it does not that chance is no explanation. All else that is shown informs.
    Where runs with `run --measure` since the tuning and since this node was started say enough, nothing is launched,
    unless --mpiexec is given.
    While other programs use the processors there is no verdict, and the exit code is 4.
    The MPI may be another version than the one that was tuned: what differs is said first.
    """
    from colltune.cli.terminal import make_console
    from colltune.core.interval import SpeedVerdict
    from colltune.judge.finding import exit_code
    from colltune.report.tables import applications_table, drift_table
    from colltune.session.drift import ask_applications
    from colltune.session.drift import drift as run_drift

    console = make_console()

    def say(lines: Iterable[str]) -> None:
        for text in lines:
            console.print(text)

    answer = ask_applications(tuned, machine)
    if answer is not None:
        console.print(applications_table(answer, "since it was tuned, in the application"))
        lost = sorted({standing.collective for standing in answer if standing.verdict is SpeedVerdict.SLOWER})
        for name in sorted({standing.collective for standing in answer}):
            held = "does not hold: it is slower in the application" if name in lost else "holds"
            say([f"{name}: {held}."])
        say(["Runs with --measure say so; nothing was launched. To measure by launches, give --mpiexec."])
        if lost:
            say([f"Tune again: {colltune_command('tune', *lost, '--out', tuned)}"])
        return exit_code(_COMMAND, [standing.verdict for standing in answer])
    report = run_drift(tuned, machine, budget_s=budget_s, seed=seed, begun=say)
    say([report.disturbance.sentence] if report.disturbance.sentence else [])
    if report.disturbance.is_busy:
        return exit_code(_COMMAND, (), undecided=True)
    if report.found.rules:
        console.print(drift_table(report.found.rules))
    say(_sentences(report.found))
    if report.lost:
        here = report.here
        place = tuned if report.same_place else tuned.with_name(f"{tuned.name}-{here.mpi}-{here.mpi_version}")
        options = {
            "--mpiexec": machine.mpiexec,
            "--hostfile": machine.host_file,
            "--nodes": here.nodes,
            "--ppn": here.ppn,
        }
        given = [str(word) for name, value in options.items() if value for word in (name, value)]
        say([f"Tune again: {colltune_command('tune', *report.lost, *given, '--out', place)}"])
    return exit_code(_COMMAND, [rule.verdict for rule in report.found.rules])


def _sentences(drift: TuningDrift) -> Iterator[str]:
    from colltune.core.interval import SpeedVerdict

    for name, verdict in drift.verdicts.items():
        mine = [rule for rule in drift.rules if rule.promise.scenario.collective == name]
        unsure = sum(rule.verdict is SpeedVerdict.OPEN for rule in mine)
        state = f"holds; rules looked at: {len(mine)}" if verdict.holds else f"does not hold: {verdict.why_not}"
        yield f"{name}: {state}."
        if unsure and verdict.holds:
            yield f"{name}: {unsure} of them looked slower, which may be chance; look again on a quiet node."
    if not drift.rules:
        yield "The library's own choice stands everywhere: there is no rule that could be lost."
    if drift.left_out:
        yield f"{format_count(drift.left_out, 'rule')} left out, with calls that take too long for this --budget."
    launches = format_count(drift.launches, "fresh launch", "fresh launches")
    yield f"{launches}. The default's own times only inform."


__all__ = ["LaunchLineCommand", "check_results", "verify"]


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
    from colltune.cli.compare import as_record, exit_code_of, show
    from colltune.cli.terminal import make_console
    from colltune.judge.finding import ExitCode
    from colltune.session.compare import verify as compare_with_default
    from colltune.store.tuning import load_tuning

    machine = machine_options(where)
    if how := load_tuning(tuned).summary.predicted_text:
        echo(f"the rules of {tuned} are {how}", err=as_json)
    if quick + results + as_json > 1:
        raise InputError("--quick, --results and --json ask for different things", "Give one of them")
    if results:
        raise typer.Exit(ExitCode.DONE if check_results(tuned, machine, short=short, via=via) else ExitCode.WORSE)
    if quick:
        raise typer.Exit(check_quickly(tuned, machine, parse_duration(budget), seed))
    right = check_results(tuned, machine, short=True, via=via, err=as_json)
    note = make_console(err=as_json).print
    comparison = compare_with_default(tuned, machine, launches=launches, seed=seed, via=via, note=note)
    if as_json:
        print_json("verify", {"results_right": right, **as_record(comparison)})
    else:
        show(comparison, "use --launches {launches}")
    raise typer.Exit(exit_code_of("verify", comparison) if right else ExitCode.WORSE)


def check_results(tuned: Path, machine: MachineOptions, *, short: bool, via: str, err: bool = False) -> bool:
    """Says what the check found, and whether all results were right.

    More ranks than cores are fine here: --ppn 8 checks up to 8 ranks.
    """
    from colltune.session.drift import check

    result = check(tuned, machine, short=short, via=via)
    echo(result.message, err=err)
    for failure in result.failures:
        echo(f"  {failure}", err=err)
    return result.passed
