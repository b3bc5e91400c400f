"""What commands show on a terminal of 80 columns, without colours, and in a pipe: no word and no number is cut.

Here the commands that look at files, and every table at the widths of real terminals; tests/mpi/test_terminal_real.py
has the commands that run an MPI.

`--json`: what other programs get, of real tunings, as the reference says.
"""

import contextlib
import io
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from test_evaluation import run_of

from colltune.cli.console import plain
from colltune.cli.profile_show import _table as calls_table
from colltune.core.interval import Interval
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Decision, Summary, TimeShare, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status, parse_choice
from colltune.core.text_table import TextTable
from colltune.judge.promises import Holding, LaunchTiming, Look, Promise
from colltune.judge.verdict import Comparison
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.report.diff_text import compare_decisions, decisions_table, environments_table
from colltune.report.tables import comparisons_table, drift_table, regions_table
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from colltune_study.research.strategy_tables import means_table, reach_table
from commands import colltune
from documented_json import check_document
from terminals import ENDED, MEASURED, PREDICTED, TIMED, bare, lines_too_long, numbers, on_terminal
from terminals import OF_FILES as COMMANDS

_LONG = parse_choice("k_reduce_scatter_allgather(k=16,single_phase_recv=1)")


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuning of 16,384 nodes with 128 ranks each, long names, gains of thousands, and times from 1 ns to hours."""
    place = tmp_path_factory.mktemp("wide")
    name, machine = "reduce_scatter_block", "AMD EPYC 9965 192-Core Processor, 384 cores"
    here = Environment("mpich", "5.0.2", "0" * 64, machine, 16384, 128, "single", {})
    verdicts = [Verdict.KEPT, Verdict.REFUSED, Verdict.NOT_TRIED]
    region = Interval(1234.567, 1034.567, 4321.987)
    why = "only 1234.57 times as fast in its region after {} fresh launches"
    decisions = tuple(
        Decision(scenario, _LONG, verdicts[power % 3], (1234.5, 2345.6), why.format(power + 1000), region)
        for nodes in (2, 512, 16384)
        for power in range(2, 31)
        for scenario in (Scenario(name, nodes, 128, 1 << power),)
    )
    share = TimeShare(launches=1234, wall_s=123456.0, inside_collectives_s=100000.0)
    summary = Summary(samples=12345678, share=share, total_s=987654.0, decisions=decisions, job=(16384, 128))
    rules = RuleSet(name, SizeBasis.MESSAGE, (Rule(None, None, 1 << 20, _LONG), Rule(None, None, None, DEFAULT)))
    save_tuning(place, Tuning(here, {name: rules}, {}, {}, summary))
    with Journal.create(place / JOURNAL, here) as journal:
        journal.append(
            Sample(one.scenario, choice, Status.OK, (1e-9 * size, 1.1e-9 * size, 12345.678), 1e4, 1, started_s=1.8e9)
            for one in decisions
            for size_bytes in (one.scenario.size_bytes,)
            for choice, size in ((DEFAULT, size_bytes * 7), (_LONG, size_bytes), (Choice("nb"), 3))
        )
    return place


def arguments_of(name: str, wide: Path) -> list[str]:
    return [str(wide) if word == "WIDE" else word for word in COMMANDS[name]]


@pytest.fixture(scope="module")
def piped(wide: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """What a command writes where there is no terminal."""

    @cache
    def written(name: str) -> str:
        with contextlib.chdir(tmp_path_factory.mktemp("piped")):
            done = colltune(*arguments_of(name, wide))
        return done.stdout + done.stderr

    return written


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_80_columns_cuts_no_word_and_no_number_and_a_pipe_gets_plain_text(
    name: str, wide: Path, piped: Callable[[str], str], tmp_path: Path
) -> None:
    text = on_terminal(arguments_of(name, wide), place=tmp_path)
    assert text.strip()
    assert lines_too_long(text) == []
    assert "…" not in text
    assert "Traceback" not in text
    written = piped(name)
    assert written.strip()
    assert not any(sign in written for sign in "\x1b\r…")
    if name not in TIMED:  # a wide page has no reason to cut anything
        assert numbers(written) - numbers(text) == Counter()


@pytest.mark.parametrize("name", ["report", "an error"])
def test_no_color_is_heeded(name: str, wide: Path, tmp_path: Path) -> None:
    text = on_terminal(arguments_of(name, wide), place=tmp_path, variables={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])m", text)


_LIVE = """
import time
from colltune.cli.display import Display
from colltune.core.sample import parse_choice
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import Scenario
from colltune.search.campaign import Progress

long = parse_choice("k_reduce_scatter_allgather(k=16,single_phase_recv=1)")
where = Scenario("reduce_scatter_block", 16384, 128, 1 << 30)
with Display(time.monotonic() + 354321.0) as shown:
    listener = shown.listener()
    listener.stage("comparing the file in force with the default")
    listener.progress(Progress(where.collective, where, 12345678, 23456789, 1000.0, 86399.0, long, 1234.56))
    shown._bar.refresh()
    listener.stage("proving 12345 choices in 6789 regions against the default in fresh launches")
    listener.proof([Decision(where, long, Verdict.OPEN, (1.2,) * 98765, "")] * 4321)
    shown._bar.refresh()
"""


def test_what_moves_while_a_tuning_runs_is_whole(tmp_path: Path) -> None:
    text = on_terminal(["-c", _LIVE], place=tmp_path, command=[sys.executable])
    assert lines_too_long(text) == []
    assert "…" not in text
    words = " ".join(bare(text).split())
    for part in (
        "reduce_scatter_block 16384 x 128 1 GiB: best so far",
        "k_reduce_scatter_allgather(k=16,single_phase_recv=1), 1234.56x faster",
        "12345678 of 23456789 measured, ",
        "proving 12345 choices in 6789 regions against the default in fresh launches",
        "launch 1: ",
        " of 4321 regions proven, ",
        " of the budget left",
    ):
        assert part in words


@pytest.mark.parametrize("tuned", [MEASURED, ENDED, PREDICTED])
def test_a_report_is_one_document_as_the_reference_says_with_the_gains_of_the_screen(tuned: str) -> None:
    document = check_document(colltune("report", tuned, "--json", code=0).stdout, "report")
    assert Path(document["directory"]) == Path(tuned)
    text = colltune("report", tuned, "--text").stdout
    for one in document["gains"]:
        assert one["speedup"] >= one["speedup_low"]
        assert one["from_bytes"] <= one["to_bytes"]
        assert f"{one['speedup']:.2f}x" in text
    if tuned == MEASURED:
        [gain] = document["gains"]
        assert (gain["collective"], gain["from_bytes"], gain["sizes_changed"]) == ("bcast", 65536, 1)


def test_values_that_json_has_not_are_null_or_text() -> None:
    held = {"a": math.inf, "b": math.nan, "c": parse_choice("tree(k=4)"), "d": (Path("x"), {1: 2.5})}
    assert plain(held) == {"a": None, "b": None, "c": "tree(k=4)", "d": ["x", {"1": 2.5}]}


@pytest.mark.parametrize("tuned", [MEASURED, ENDED])
def test_a_report_in_the_terminal_is_60_lines_at_most(tuned: str, tmp_path: Path) -> None:
    lines = bare(on_terminal(["report", tuned, "--text"], place=tmp_path)).rstrip().split("\n")
    assert len(lines) <= 60
    assert lines[-1].endswith("--text --all")


NUMBER = r"\d+(?:\.\d+)?"
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


_RESEARCH = [partial(reach_table, _RUNS, _NAMES, 1.03), partial(means_table, _RUNS, _NAMES, [0.01, 0.2], 0.1)]
_TABLES = [gains, comparisons, drift, environments, decisions, calls, *_RESEARCH]


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
