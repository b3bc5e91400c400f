"""`colltune study collect`: the exhaustive table, as a data set."""

from pathlib import Path
from typing import Annotated, Unpack

import typer

from colltune.cli.options import MaxSize, MinSize, ThreadLevel, offers
from colltune.cli.stopping import heed_scheduler
from colltune.session.arguments import MAX_SIZE, MachineArguments, machine_options


@offers(MachineArguments)
def collect(
    collectives: Annotated[
        list[str] | None,
        typer.Argument(help="Collectives to measure: bcast allreduce ... Default: all.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="Table to write: .parquet, .csv or .csv.gz.")] = Path("data.parquet"),
    min_size: MinSize = "1",
    max_size: MaxSize = MAX_SIZE,
    between: Annotated[int, typer.Option(min=0, help="Sizes between each two powers of two.")] = 1,
    node_counts: Annotated[
        str, typer.Option(help="Node counts, such as 2,3,4. Default: powers of two, some between them, and all.")
    ] = "",
    ppn_counts: Annotated[
        str, typer.Option(help="Ranks per node, such as 1,4,12. Default: powers of two, and all.")
    ] = "",
    budget: Annotated[str, typer.Option(help="Time to spend, such as 90s or 2h. Default: until all is measured.")] = "",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a collection that was cut off.")] = False,
    cluster: Annotated[str, typer.Option(help="Name of the cluster, for the table. Default: the scheduler's.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    thread_level: ThreadLevel = "single",
    simulate: Annotated[
        str,
        typer.Option(
            help="Use a simulated cluster in place of this job's MPI: dragonfly:64x4 (nodes x ranks per node)."
        ),
    ] = "",
    **machine: Unpack[MachineArguments],
) -> None:
    """Measure every legal algorithm at every shape and size, and write the table. Stops and resumes without loss."""
    from colltune.core.sample import parse_collectives
    from colltune.core.units import parse_duration, parse_size

    parse_collectives(collectives or [])
    smallest, largest = parse_size(min_size), parse_size(max_size)
    budget_s = parse_duration(budget) if budget else float("inf")
    counts = _parse_counts("--node-counts", node_counts), _parse_counts("--ppn-counts", ppn_counts)
    from colltune.cli.display import Display
    from colltune.core.stop import StopRequest
    from colltune.core.units import format_count, format_duration
    from colltune_study.tables.collect import CollectOptions
    from colltune_study.tables.collect_here import collect_here

    where = machine_options(machine, thread_level)
    options = CollectOptions(collectives or [], smallest, largest, between, *counts, budget_s, resume, seed)
    stop = StopRequest()
    with Display() as display:
        listener = display.listener(lambda: heed_scheduler(stop))
        done = collect_here(options, out, where, cluster=cluster, simulate=simulate, listener=listener, stop=stop)
    say = display.console.print
    say(f"{format_count(done.rows, 'row')} in {out}, {format_duration(done.elapsed_s)}.")
    if done.failed:
        say(f"{format_count(done.failed, 'measurement')} gave no time; the journal beside the table says why.")
    if done.missing:
        say(f"{format_count(done.missing, 'pair')} still missing: go on with the same command and --resume.")


def _parse_counts(option: str, text: str) -> list[int] | None:
    from colltune.core.errors import InputError

    if not text:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"cannot read {option} {text!r}", "Write whole numbers with commas, such as 1,2,4")
    return sorted({int(part) for part in parts})
