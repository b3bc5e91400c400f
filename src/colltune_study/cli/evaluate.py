"""`colltune study evaluate`: strategies compared on recorded measurements."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from colltune.store.grid import Grid
    from colltune_study.research.delivery import Delivery
    from colltune_study.research.evaluation import Plan, StrategyComparison
    from colltune_study.research.simulate import Run
    from colltune_study.research.whole_campaigns import CampaignPlan

_PLAIN_EVERY_S = 5.0


def evaluate(
    context: typer.Context,
    data: Annotated[
        list[Path], typer.Argument(help="Tables of measurements: .parquet, .csv or .csv.gz.", show_default=False)
    ],
    strategies: Annotated[
        str, typer.Option(help="Comma-separated: ours, acclaim, fact, random, or module:name of your own.")
    ] = "ours,acclaim,fact,random",
    seeds: Annotated[int, typer.Option(min=1, help="Tunings of each table by each strategy.")] = 20,
    minutes: Annotated[float, typer.Option(min=0.01, help="End after this time with what there is.")] = 15.0,
    budget: Annotated[str, typer.Option(help="--minutes as a duration, such as 90s or 2h.")] = "",
    profile: Annotated[
        Path | None, typer.Option(help="What `colltune profile` wrote: weights of the regret.", show_default=False)
    ] = None,
    scaling: Annotated[
        str,
        typer.Option(
            help="Output scaling of the published methods: none, log, standardised, normalised, algorithm, "
            "log-algorithm. Default: each method's own."
        ),
    ] = "",
    good: Annotated[float, typer.Option(min=1.0, help="Average slowdown that is good enough.")] = 1.03,
    significant: Annotated[str, typer.Option(help="From where on a slower choice is a significant mistake.")] = "10%",
    at: Annotated[str, typer.Option(help="Where on both axes the means are shown.")] = "1%,5%,20%",
    collectives: Annotated[str, typer.Option(help="Only these, with commas. Default: all of the tables.")] = "",
    plots: Annotated[str, typer.Option(help="png, svg or none.")] = "png",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one per core that is free to use.")] = 0,
    campaign: Annotated[
        bool, typer.Option("--campaign", help="Whole campaigns of `tune`, proof included, in place of strategies.")
    ] = False,
    budgets: Annotated[str, typer.Option(help="With --campaign: budgets of a campaign, with commas.")] = "1m,5m",
    launch: Annotated[str, typer.Option(help="With --campaign: what a launch of the job takes.")] = "5s",
    out: Annotated[Path, typer.Option(help="Directory for the tables and plots.")] = Path("evaluation"),
) -> None:
    """Replay tuning on recorded tables: how much each strategy measures until its choices are good.

    With --campaign: what the files of a whole campaign bring, and where they harm.
    """
    from colltune.core.units import parse_duration

    _require_tables(data)  # before the heavy imports
    limit_s = parse_duration(budget) if budget else 60.0 * minutes
    refuse_without_effect(context, campaign)
    places = [_parse_share("--at", text) for text in _names(at)]
    threshold = _parse_share("--significant", significant)
    from colltune_study.research.evaluation import Plan, load, load_weights
    from colltune_study.research.strategies import contestants

    compared = contestants(_names(strategies), scaling)
    weights = None if profile is None else load_weights(profile)
    _prepare(out, plots)
    grids = load(data, _names(collectives))
    jobs = jobs or len(os.sched_getaffinity(0))
    if campaign:
        from colltune_study.research.whole_campaigns import CampaignPlan

        asked = sorted({parse_duration(text) for text in _names(budgets)})
        evaluate_campaigns(grids, CampaignPlan(asked, seeds, limit_s, jobs, parse_duration(launch)), out, plots)
    else:
        evaluate_strategies(grids, Plan(compared, seeds, limit_s, jobs, good, threshold, weights), places, out, plots)


def evaluate_strategies(grids: Sequence[Grid], plan: Plan, places: Sequence[float], out: Path, plots: str) -> None:
    """Prints the tables; leaves the runs, curves and, where ``plots`` names a format, pictures in ``out``."""
    from colltune.cli.terminal import make_console
    from colltune_study.research.evaluation import evaluate as compare

    console = make_console()
    there = f"{len(grids)} tables, {sum(len(grid.recorded) for grid in grids)} pairs"
    names = ", ".join(contestant.name for contestant in plan.contestants)
    console.print(f"{there}; {names}, {plan.seeds} seeds each, in {plan.jobs} processes")
    done = compare(grids, plan, _shows(console), lambda runs: _write(out, runs, plan))
    _report(console, done, plan, places)
    _finish(out, done, plots, plan.good)
    console.print(f"Runs, curves and plots are in {out}.")


def _require_tables(data: Sequence[Path]) -> None:
    from colltune_study.recorded.dataset import require_table

    for path in data:
        require_table(path)


def _prepare(out: Path, plots: str) -> None:
    """Raises InputError where pictures of the format ``plots`` cannot be made, or nothing be written to ``out``."""
    from colltune.core.errors import InputError
    from colltune.session.tuning.options import require_writable
    from colltune_study.research.figures import pyplot_for_files

    if plots not in ("png", "svg", "none"):
        raise InputError(f"--plots {plots} is no format", "Use png, svg or none")
    if plots != "none":
        pyplot_for_files()
    require_writable(out)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _parse_share(option: str, text: str) -> float:
    from colltune.core.errors import InputError

    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100.0 if "%" in text else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 < share <= 1.0:
        raise InputError(f"cannot read {option} {text!r}", "Write for example 5% or 0.05")
    return share


def _shows(console: Console) -> Callable[[int, int, Run], None]:
    import time

    began_s = said_s = time.monotonic()

    def show(done: int, total: int, run: Run) -> None:
        nonlocal said_s
        if time.monotonic() - said_s < (1.0 if console.is_terminal else _PLAIN_EVERY_S) and done < total:
            return
        said_s = time.monotonic()
        from colltune.core.units import format_duration

        left = format_duration((said_s - began_s) / done * (total - done))
        text = f"  {done} of {total} tunings, {left} left at most; seed {run.seed} of {run.grid}: {run.strategy}"
        console.print(text)

    return show


def _write(out: Path, runs: Sequence[Run], plan: Plan) -> None:
    from colltune_study.research.compare import reach_by_grid, write_steps, write_table
    from colltune_study.research.tunings_summary import write_stops

    write_steps(out / "steps.csv", runs)
    write_table(out / "reach.csv", reach_by_grid(runs, plan.good))
    write_stops(out / "stops.csv", runs)


def _report(console: Console, done: StrategyComparison, plan: Plan, places: Sequence[float]) -> None:
    from colltune_study.research.strategy_tables import means_table, reach_table
    from colltune_study.research.tunings_summary import complete_seeds

    names = [contestant.name for contestant in plan.contestants]
    seeds = complete_seeds(done.runs)
    if done.cut:
        console.print(f"Time ran out: {len(seeds)} of {plan.seeds} seeds are complete; give more --minutes for more.")
    console.print()
    console.print(reach_table(done.runs, names, plan.good))
    console.print()
    if seeds:
        console.print(means_table(done.runs, names, places, plan.significant))
    else:
        console.print("No seed is complete, so there are no means over the tables.")
    console.print("In brackets: 95% interval of the median over the seeds, by bootstrap. 'all': not before the end.")


def _finish(out: Path, done: StrategyComparison, plots: str, good: float) -> None:
    from colltune_study.research.figures import draw_curves
    from colltune_study.research.results_t4 import write_t4
    from colltune_study.research.tunings_summary import METRICS, Axis, write_curves

    write_curves(out / "curves.csv", done.runs)
    write_t4(out / "t4", done.runs)
    if plots != "none":
        for metric in METRICS:
            for axis in Axis:
                draw_curves(out / f"{metric}_by_{axis}.{plots}", done.runs, metric, axis, good)


_OF_STRATEGIES = ("strategies", "profile", "scaling", "good", "significant", "at")
_OF_CAMPAIGNS = ("budgets", "launch")


def refuse_without_effect(context: typer.Context, campaign: bool) -> None:
    """Raises InputError for options that only hold with --campaign, or only without it."""
    from colltune.cli.options import given_options
    from colltune.core.errors import InputError

    others = _OF_STRATEGIES if campaign else _OF_CAMPAIGNS
    if given := [f"--{name}" for name in given_options(context, others)]:
        where, remedy = ("with", "Leave it out") if campaign else ("without", "Add --campaign, or leave it out")
        raise InputError(f"{', '.join(given)} has no effect {where} --campaign", remedy)


def evaluate_campaigns(grids: Sequence[Grid], plan: CampaignPlan, out: Path, plots: str) -> None:
    """Prints one table; leaves campaigns.csv and, where ``plots`` names a format, the picture in ``out``."""
    from colltune.cli.terminal import make_console
    from colltune.core.units import format_budget, format_count
    from colltune_study.research.campaign_figures import campaigns_table, draw_campaigns, write_campaigns
    from colltune_study.research.delivery import by_cluster
    from colltune_study.research.whole_campaigns import run_campaigns

    console = make_console()

    def show(done: int, total: int, one: Delivery) -> None:
        budget = format_budget(one.budget_s)
        text = (
            f"  {done} of {total} campaigns; seed {one.seed} of {one.table} with {budget}: captured {one.captured:.2f}"
        )
        console.print(text)

    def keep(delivered: Sequence[Delivery]) -> None:
        write_campaigns(out / "campaigns.csv", delivered)

    budgets = ", ".join(format_budget(budget_s) for budget_s in plan.budgets_s)
    clusters = format_count(len(by_cluster(grids)), "cluster")
    tables = format_count(len(grids), "table")
    console.print(f"{tables} of {clusters}, {format_count(plan.seeds, 'seed')} each, budgets {budgets}")
    done = run_campaigns(grids, plan, show, keep)
    for name, reason in done.refused.items():
        console.print(f"left out: {name}: {reason}")
    if done.cut:
        console.print(
            f"Time ran out after {format_count(len(done.delivered), 'campaign')}; give more --minutes for more."
        )
    console.print()
    console.print(campaigns_table(done.delivered))
    console.print(
        "captured: log(default / tuned) over log(default / best), over all scenarios of a table; median over the seeds,"
        " in brackets its 95% interval. harmed: the share of the scenarios that are slower than the default by over 3%."
    )
    if plots != "none":
        draw_campaigns(out / f"campaigns.{plots}", done.delivered)
    console.print(f"Campaigns and plots are in {out}.")
