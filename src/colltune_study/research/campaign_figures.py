"""The figures of whole campaigns: a table for the terminal, rows as CSV, and a picture against the budget."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from colltune.core.sample import grouped
from colltune.core.text_table import TextTable
from colltune.core.units import format_budget, format_count
from colltune_study.research.compare import Estimate, estimate, write_csv
from colltune_study.research.delivery import Delivery
from colltune_study.research.figures import COLOURS, STYLES, new_panels, save

_PANELS = (("captured", "captured headroom"), ("harmed", "share slower by over 3%"), ("worst", "worst time / default"))


def by_table(delivered: Sequence[Delivery]) -> dict[tuple[str, float], list[Delivery]]:
    """The seeds of each (table, budget), in the order of names and budgets."""
    ordered = sorted(delivered, key=lambda one: (one.table, one.budget_s, one.seed))
    return grouped(ordered, lambda one: (one.table, one.budget_s))


def write_campaigns(path: Path, delivered: Sequence[Delivery]) -> None:
    """One row for each campaign."""
    names = [field.name for field in fields(Delivery)]
    rows = [[getattr(one, name) for name in (*names, "overrun")] for one in delivered]
    write_csv(path, [*names, "overrun"], [[f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows])


def campaigns_table(delivered: Sequence[Delivery]) -> TextTable:
    """A row per table and budget: medians over the seeds, and the worst of all seeds where that is what matters."""
    table = TextTable(
        ("cluster", "budget>", "captured>", "harmed, worst seed>", "slowest, worst seed>", "time / budget, worst>"),
        "Captured headroom, harm and budget of whole campaigns, proof included",
    )
    groups = by_table(delivered)
    last = ""
    for (name, budget_s), runs in groups.items():
        captured = estimate([one.captured for one in runs])
        table.add_row(
            name if name != last else "",
            format_budget(budget_s),
            _with_interval(captured),
            f"{max(one.harmed for one in runs):.2%}",
            f"{max(one.worst for one in runs):.2f}x",
            f"{max(one.overrun for one in runs):.2f}",
        )
        last = name
    budgets = sorted({budget_s for _, budget_s in groups})
    if len({name for name, _ in groups}) > 1:
        table.add_section()
        for budget_s in budgets:
            medians = [
                estimate([one.captured for one in runs]).median for (_, b), runs in groups.items() if b == budget_s
            ]
            tables = f"median of {format_count(len(medians), 'cluster')}"
            table.add_row(tables, format_budget(budget_s), f"{np.median(medians):.2f}", "", "", "")
    return table


def _with_interval(value: Estimate) -> str:
    return f"{value.median:.2f} ({value.low:.2f} to {value.high:.2f})" if value.seeds > 1 else f"{value.median:.2f}"


def draw_campaigns(path: Path, delivered: Sequence[Delivery]) -> None:
    """Captured headroom and harm against the budget, one line with its interval per table.

    The format follows the file name. Raises InputError where matplotlib is not installed.
    """
    groups = by_table(delivered)
    figure, panels = new_panels(len(_PANELS), width=4.6, height=3.4)
    for panel, (field, label) in zip(panels, _PANELS, strict=True):
        for number, name in enumerate(dict.fromkeys(name for name, _ in groups)):
            budgets_s = [budget_s for table, budget_s in groups if table == name]
            found = [estimate([getattr(one, field) for one in groups[name, budget_s]]) for budget_s in budgets_s]
            colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
            seeds = min(one.seeds for one in found)
            medians = [one.median for one in found]
            panel.plot(budgets_s, medians, marker="o", color=colour, linestyle=style, label=f"{name} ({seeds} seeds)")
            lows, highs = [one.low for one in found], [one.high for one in found]
            panel.fill_between(budgets_s, lows, highs, color=colour, alpha=0.15, linewidth=0)
        panel.set_xscale("log")
        panel.set_xlabel("budget, seconds", fontsize=8)
        panel.set_ylabel(label, fontsize=8)
        panel.grid(alpha=0.25, linewidth=0.5)
    panels[0].set_ylim(min(0.0, panels[0].get_ylim()[0]), 1.02)
    panels[0].legend(fontsize=7, frameon=False)
    figure.suptitle("Whole campaigns, proof included: median over the seeds and its 95% interval", fontsize=10)
    save(figure, path)
