"""Every table of every command at the widths of real terminals: names are folded, and no number is cut."""

import io
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_evaluation import run_of

from colltune.cli.profile_show import _table as calls_table
from colltune.core.interval import Interval
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Scenario, SizeBasis, parse_choice
from colltune.core.text_table import TextTable
from colltune.judge.promises import Holding, LaunchTiming, Look, Promise
from colltune.judge.verdict import Comparison
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.report.diff_text import compare_decisions, decisions_table, environments_table
from colltune.report.tables import comparisons_table, drift_table, regions_table
from colltune_study.research.strategy_tables import means_table, reach_table

NUMBER = r"\d+(?:\.\d+)?"
_LONG = parse_choice("k_reduce_scatter_allgather(k=16,single_phase_recv=1)")
_SCENARIOS = [Scenario("reduce_scatter_block", 128, 112, 1 << 10), Scenario("bcast", 1, 2, 1 << 20)]


def gains() -> TextTable:
    some = [Decision(s, _LONG, Verdict.KEPT, (), "", region=Interval(12.34, 10.56, 14.78)) for s in _SCENARIOS]
    return regions_table(judged_regions(some))


def comparisons() -> TextTable:
    return comparisons_table([Comparison(s, _LONG, 1.234e-4, 5.678e-5, Interval(2.17, 2.01, 2.34)) for s in _SCENARIOS])


def drift() -> TextTable:
    looks = tuple(Look(LaunchTiming(t, t, t), LaunchTiming(1e-4, 1e-4, 1e-4)) for t in (0.97e-4, 1.2e-4, 1.31e-4))
    proofs = [Decision(s, _LONG, Verdict.KEPT, (), "", region=Interval(1.25, 1.1, 1.4)) for s in _SCENARIOS]
    return drift_table([Holding(Promise(p.scenario, _LONG, p, 1e-4), looks, 2, legal=False) for p in proofs])


def environments() -> TextTable:
    return environments_table([("MPI version", "5.0.2", "4.3.1")], ("/scratch/somebody/tuned", "/home/somebody/tuned"))


def decisions() -> TextTable:
    one = {"reduce_scatter_block": RuleSet.always("reduce_scatter_block", SizeBasis.MESSAGE, _LONG)}
    other = {"reduce_scatter_block": RuleSet.always("reduce_scatter_block", SizeBasis.MESSAGE)}
    found, _, _ = compare_decisions(one, other)
    return decisions_table(found, ("/scratch/somebody/tuned", "/home/somebody/tuned"))


def calls() -> TextTable:
    where = Communicator(16384, 128, 128)
    some = tuple(
        Calls(where, name, "nonblocking", "sum", 16384 * 12345, 98765432100, 1234.5, 65536, 7e4, 131071, 100.0, 40)
        for name in ("reduce_scatter_block", "allreduce")
    )
    return calls_table(Profile(some, (), 16384, 128, 3600.0, 16384), some)


_NAMES = ["ours", "acclaim", "fact", "random"]
_RUNS = [run_of("a-cluster-of-some-name:allreduce", name, seed, 3.0, 1.0) for name in _NAMES for seed in (0, 1)]


def reach() -> TextTable:
    return reach_table(_RUNS, _NAMES, 1.03)


def means() -> TextTable:
    return means_table(_RUNS, _NAMES, [0.01, 0.2], 0.1)


_TABLES = [gains, comparisons, drift, environments, decisions, calls, reach, means]


@pytest.mark.parametrize("width", [140, 80, 60, 40])
@pytest.mark.parametrize("make", _TABLES)
def test_no_table_cuts_a_number(make: Callable[[], TextTable], width: int) -> None:
    table = make()
    text = rendered(table, width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines()), text
    flat = " ".join(text.split())
    for row in (row for row in table.rows if len(row) > 1):  # others are headings
        for header, cell in zip(table.headers, row, strict=True):
            if header.endswith(">"):
                assert cell in flat, (header, cell, text)
    told = set(re.findall(NUMBER, flat))
    assert set(re.findall(NUMBER, " ".join(cell for row in table.rows for cell in row))) <= told, text


@pytest.mark.parametrize("make", [comparisons, drift])
def test_a_row_of_verify_is_one_line_of_80_columns(make: Callable[[], TextTable]) -> None:
    """Also where collective, shape and choice are the longest that there are: these head the rows that share them."""
    table = make()
    headings = sum(len(row) == 1 for row in table.rows)
    text = "\n".join(table.lines(80))
    assert headings == len(_SCENARIOS)
    for row in (row for row in table.rows if len(row) > 1):
        (line,) = [line for line in text.splitlines() if line.strip().startswith(row[0])]
        assert [cell for cell in row if cell in line] == list(row)


def test_a_wide_terminal_shows_a_table_with_its_bars_and_a_narrow_one_drops_these() -> None:
    wide, narrow = rendered(calls(), 200), rendered(calls(), 60)
    assert "█" in wide
    assert "█" not in narrow


@given(
    rows=st.lists(st.tuples(st.from_regex(r"[a-z_]{0,20}(\(k=\d{1,6}\))?", fullmatch=True), st.integers()), max_size=5),
    width=st.integers(12, 100),
)
def test_whatever_the_width_every_number_is_there(rows: list[tuple[str, int]], width: int) -> None:
    table = TextTable(("name", "value>"))
    for name, value in rows:
        table.add_row(name, str(value))
    text = "\n".join(table.lines(width))
    for name, value in rows:
        assert str(value) in text
        assert all(number in text for number in re.findall(r"\d+", name))


def rendered(table: object, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False, soft_wrap=True)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
