"""`colltune study evaluate --campaign`: what whole campaigns deliver on recorded measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from colltune.research.delivery import Delivery
    from colltune.research.whole_campaigns import CampaignPlan
    from colltune.store.grid import Grid

_OF_STRATEGIES = ("strategies", "profile", "scaling", "good", "significant", "at")
_OF_CAMPAIGNS = ("budgets", "launch")


def refuse_without_effect(context: typer.Context, campaign: bool) -> None:
    """Raises InputError for options that only hold with --campaign, or only without it."""
    from colltune.core.errors import InputError

    others = _OF_STRATEGIES if campaign else _OF_CAMPAIGNS
    sources = {name: context.get_parameter_source(name) for name in others}
    given = [f"--{name}" for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        where, remedy = ("with", "Leave it out") if campaign else ("without", "Add --campaign, or leave it out")
        raise InputError(f"{', '.join(given)} has no effect {where} --campaign", remedy)


def evaluate_campaigns(grids: Sequence[Grid], plan: CampaignPlan, out: Path, plots: str) -> None:
    """Prints one table; leaves campaigns.csv and, where ``plots`` names a format, the picture in ``out``."""
    from colltune.cli.terminal import make_console
    from colltune.core.units import format_budget, format_count
    from colltune.research.campaign_figures import campaigns_table, draw_campaigns, write_campaigns
    from colltune.research.delivery import by_cluster
    from colltune.research.whole_campaigns import run_campaigns

    console = make_console()

    def show(done: int, total: int, one: Delivery) -> None:
        budget = format_budget(one.budget_s)
        text = (
            f"  {done} of {total} campaigns; seed {one.seed} of {one.table} with {budget}: captured {one.captured:.2f}"
        )
        console.print(text, markup=False)

    def keep(delivered: Sequence[Delivery]) -> None:
        write_campaigns(out / "campaigns.csv", delivered)

    budgets = ", ".join(format_budget(budget_s) for budget_s in plan.budgets_s)
    clusters = format_count(len(by_cluster(grids)), "cluster")
    tables = format_count(len(grids), "table")
    console.print(f"{tables} of {clusters}, {format_count(plan.seeds, 'seed')} each, budgets {budgets}", markup=False)
    done = run_campaigns(grids, plan, show, keep)
    for name, reason in done.refused.items():
        console.print(f"left out: {name}: {reason}", markup=False)
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
    console.print(f"Campaigns and plots are in {out}.", markup=False)
