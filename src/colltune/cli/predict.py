"""`colltune predict`: a selection file without measuring, from what other clusters found."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from colltune.cli.console import echo
from colltune.cli.options import MaxSize, ThreadLevel, offers
from colltune.core.units import format_size, parse_size
from colltune.machine.command_lines import run_command
from colltune.session.arguments import MAX_SIZE, MachineArguments, machine_options

if TYPE_CHECKING:
    from colltune.session.predict import PredictResult


@offers(MachineArguments)
def predict(
    collectives: Annotated[
        list[str] | None, typer.Argument(help="Collectives. Default: all that the model knows.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the tuning. Default: tuned; with --install beside the MPI.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="A model by `colltune study train`. Default: the shipped one.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="For jobs of 32 of these nodes with a rank on each core.")
    ] = False,
    hardware: Annotated[
        Path | None, typer.Option(help="Record of a compute node, by `colltune doctor --record` there.")
    ] = None,
    max_size: MaxSize = MAX_SIZE,
    risk: Annotated[
        float, typer.Option(help="With no greater probability may a rule lose more than 3% against the default.")
    ] = 0.15,
    thread_level: ThreadLevel = "single",
    **machine: Unpack[MachineArguments],
) -> None:
    """Write the file that makes MPI choose well, without measuring; where the model is not sure, nothing changes.

    For a machine that cannot be tuned now. What `colltune tune` finds is proven, and this is predicted. --nodes and
    --ppn may be those of the whole machine.
    """
    from colltune.session.predict import predict_here

    done = predict_here(
        collectives or [],
        out if out is not None or install else Path("tuned"),
        machine_options(machine, thread_level),
        install=install,
        hardware=hardware,
        model=model,
        largest_bytes=parse_size(max_size),
        risk=risk,
    )
    if done.result is None:
        echo(f"{done.out} was tuned on this machine, which is better than any prediction: it stays as it is.")
        typer.echo(f"Run your application with: {run_command(done.out, mpiexec=done.mpiexec)}")
    else:
        _show(done.result, done.out)


def _show(result: "PredictResult", out: Path) -> None:
    from colltune.core.sample import DEFAULT
    from colltune.predict.guesses import gain_texts

    made = [guess for guess in result.guesses if guess.choice != DEFAULT]
    for guess in made[:12]:
        s = guess.scenario
        echo(
            f"{s.collective} {s.nodes} x {s.ppn} {format_size(s.size_bytes)}: {guess.choice}"
            f" ({guess.sureness:.0%} sure: {guess.reason})"
        )
    if len(made) > 12:
        echo(f"... and {len(made) - 12} more, in {out}/tuning.json")
    abstained = len(result.guesses) - len(made)
    echo(
        f"{len(made)} of {len(result.guesses)} scenarios depart from the library's default, in {result.took_s:.2f} s;"
        f" {abstained} keep it."
    )
    for text in gain_texts(result.guesses):
        echo(text)
    why = Counter(guess.reason for guess in result.guesses if guess.choice == DEFAULT and guess.sureness == 0.0)
    for reason, count in why.most_common(3):
        echo(f"  {count}: {reason}")
    echo("All of it is predicted; nothing was measured or proven. `colltune tune --budget 30s` proves.")
    mpiexec = result.tuning.environment.mpiexec
    typer.echo(f"Run your application with: {run_command(out, mpiexec=mpiexec)}")
