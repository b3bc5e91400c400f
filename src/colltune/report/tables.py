"""Tables for the terminal, and what runs of the application say of the rules (`run --measure`)."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from colltune.core.judged_together import JudgedRegion
from colltune.core.sample import DEFAULT, Choice, Scenario
from colltune.core.switchback import Standing
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration, format_size
from colltune.judge import wording
from colltune.judge.promises import Holding
from colltune.judge.verdict import Comparison
from colltune.judge.wording import COLUMNS, cells


def regions_table(regions: Iterable[JudgedRegion]) -> TextTable:
    """One row per region: where it is, its choice, its mean speed-up and how many scenarios it has."""
    table = TextTable(
        ("collective", "nodes x ppn>", "message size>", "in place of the default", *COLUMNS, "scenarios>")
    )
    for region in regions:
        figures = str(region.choice), *cells(region.speedup), str(len(region.decisions))
        table.add_row(region.collective, region.shape, region.sizes, *figures)
    return table


def call_heading(scenario: Scenario, choice: Choice | None) -> str:
    """What heads the rows of one collective on one shape."""
    return f"{scenario.collective} {scenario.nodes} x {scenario.ppn}" + ("" if choice is None else f", {choice}")


def call_size(scenario: Scenario) -> str:
    """The message size; empty for a barrier."""
    return format_size(scenario.size_bytes) if scenario.collective != "barrier" else ""


def comparisons_table(comparisons: Sequence[Comparison], names: tuple[str, str] = ("default", "tuned")) -> TextTable:
    """One row per scenario: the times of two sides, by ``names``, the speed-up with its interval, and the verdict.

    The speed-up with a heap that keeps what is freed is beside it where any call meets page faults. Collective, nodes x
    ranks per node, and the choice where a rule decides any, head the rows that share them: a row fits a terminal.
    """
    by_heap = any(row.kept is not None for row in comparisons)
    by_rule = any(row.choice != DEFAULT for row in comparisons)
    figures = (*(f"{name}>" for name in names), *COLUMNS, *(["heap keeps>"] if by_heap else []))
    table = TextTable(("size>", *figures, "verdict"))
    for where, some in groupby(comparisons, lambda row: call_heading(row.scenario, row.choice if by_rule else None)):
        table.add_section(where)
        for row in some:
            table.add_row(
                call_size(row.scenario),
                format_duration(row.a_s),
                format_duration(row.b_s),
                *cells(row.speedup),
                *(cells(None if row.kept is None else row.kept.speedup)[:1] if by_heap else []),
                row.verdict,
            )
    return table


def drift_table(rules: Iterable[Holding]) -> TextTable:
    """One row per rule, under its choice: the speed-up over the default as proven and now, and the verdict.

    Now: the median of the launches, between the least and the most of them. Then the default's time now over that of
    the tuning.
    """
    table = TextTable(("size>", "then>", *COLUMNS, "default>", "verdict"))
    for where, some in groupby(rules, lambda rule: call_heading(rule.promise.scenario, rule.promise.choice)):
        table.add_section(where)
        for rule in some:
            proof, finding, pace = rule.promise.proof, rule.finding, rule.pace
            table.add_row(
                call_size(rule.promise.scenario),
                "" if proof is None else str(proof.speedup),
                *cells(finding.speedup),
                "" if pace is None else f"x {pace:.2f}",
                finding.verdict,
            )
    return table


def standing_text(standing: Standing) -> str:
    """A sentence on what the application says of a choice."""
    calls, whole = wording.text(standing.faster_in_calls), wording.text(standing.faster)
    text = (
        f"{standing.choice} in the application: speed-up of the calls {calls}, with all that lies between {whole}:"
        f" {standing.verdict}; {format_count(standing.pairs, 'pair')} of blocks, last {standing.last}"
    )
    return f"{text}; switched off on {format_count(standing.off, 'communicator')}" if standing.off else text


def applications_table(standings: Sequence[Standing], title: str = "in the application") -> TextTable:
    """A row for each choice and kind of call."""
    headers = ("calls of", "choice", "pairs>", "speed-up in them>", "with all between>", "verdict", "last run")
    table = TextTable(headers, title)
    for standing in standings:
        table.add_row(*application_row(standing))
    return table


def application_row(standing: Standing) -> tuple[str, ...]:
    """The calls, the choice, how many pairs, the ratio in the calls and with all between, the finding, the last run."""
    says = f"{standing.verdict}, switched off" if standing.off else str(standing.verdict)
    ratios = wording.text(standing.faster_in_calls), wording.text(standing.faster)
    return standing.place, str(standing.choice), str(standing.pairs), *ratios, says, standing.last
