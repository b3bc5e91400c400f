"""`colltune plan`: how long a tuning takes, and what a budget buys, before the core-hours are spent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from colltune.cli.console import echo, print_json
from colltune.cli.options import AsJson, MaxSize, MinSize, ThreadLevel, offers
from colltune.core.units import format_budget, format_count, format_duration, parse_duration, parse_size
from colltune.session.arguments import MAX_SIZE, MachineArguments, machine_options

_WIDTH = 80

if TYPE_CHECKING:
    from colltune.session.plan import Costs


@offers(MachineArguments)
def plan(
    collectives: Annotated[
        list[str] | None, typer.Argument(help="Collectives. Default: all that can be tuned.", show_default=False)
    ] = None,
    calibrated_by: Annotated[
        Path | None,
        typer.Option("--from", help="A tuning whose measurements tell what takes how long. Default: measure here."),
    ] = None,
    launch: Annotated[
        str | None, typer.Option(help="What a launch takes there, such as 20s. Default: from what it takes here.")
    ] = None,
    budget: Annotated[
        list[str] | None, typer.Option(help="What does this budget buy? May be given several times.")
    ] = None,
    min_size: MinSize = "1",
    max_size: MaxSize = MAX_SIZE,
    thread_level: ThreadLevel = "single",
    as_json: AsJson = False,
    **machine: Unpack[MachineArguments],
) -> None:
    """Say how long tuning a shape of job takes, how many core-hours that is, and what a budget buys.

    Measures a launch and a few points on this job, which takes seconds, and extrapolates to --nodes x --ppn; the lines
    below the table say what was assumed. Writes nothing.
    """
    from colltune.session.plan import BUDGETS_S, plan_here

    costs = plan_here(
        collectives or [],
        machine_options(machine, thread_level),
        tuned=calibrated_by,
        smallest_bytes=parse_size(min_size),
        largest_bytes=parse_size(max_size),
        budgets_s=[parse_duration(text) for text in budget] if budget else BUDGETS_S,
        launch_s=None if launch is None else parse_duration(launch),
    )
    if as_json:
        print_json("plan", costs)
        return
    for line in format_costs(costs):
        echo(line)


def format_costs(costs: "Costs") -> list[str]:
    """The lines that the command prints."""
    from colltune.core.text_table import TextTable

    def priced(time_s: float) -> str:
        return f"{format_duration(time_s)}, {costs.core_hours(time_s):,.1f} core-hours"

    rows = []
    for plan in costs.bought:
        budget = format_budget(plan.total_s) + ("" if plan.total_s <= plan.budget_s else "+")
        rows.append(
            (budget, f"{plan.core_hours:,.1f}", f"{plan.measured:.0%}", f"{plan.called:.0%}", f"up to {plan.regions}")
        )
    # Budgets below the shortest tuning all become that one.
    table = TextTable(
        ("budget>", "core-hours>", "grid measured>", "of its calls>", "regions proven>"), rows=list(dict.fromkeys(rows))
    )
    extended = ["+: more than was asked for, as a tuning takes that much at least"] if any(
        plan.total_s > plan.budget_s for plan in costs.bought
    ) else []  # fmt: skip
    return [
        f"{costs.nodes} x {format_count(costs.ppn, 'rank')}: {', '.join(costs.collectives)}",
        f"{format_count(costs.shapes, 'shape')}, {costs.scenarios} scenarios, {costs.pairs} choices in them",
        f"a launch: {format_duration(costs.launch_s)}",
        f"the shortest tuning with a proof: {priced(costs.least_s)}",
        f"a budget that measures the whole grid: {priced(costs.whole_s)}",
        *table.lines(_WIDTH),
        *extended,
        *(f"note: {text}" for text in costs.remarks),
    ]
