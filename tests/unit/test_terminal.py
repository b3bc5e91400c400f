"""What commands show on a terminal of 80 columns, without colours, and in a pipe: no word and no number is cut.

Here the commands that look at files; tests/mpi/test_terminal_real.py has those that run an MPI.

`--json`: what other programs get, of real tunings, as the reference says.
"""

import contextlib
import math
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from colltune.cli.console import plain
from colltune.core.interval import Interval
from colltune.core.proven import Decision, Summary, TimeShare, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status, parse_choice
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from commands import colltune
from documented_json import check_document
from terminals import ENDED, MEASURED, PREDICTED, TIMED, bare, lines_too_long, numbers, on_terminal
from terminals import OF_FILES as COMMANDS


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuning of 16,384 nodes with 128 ranks each, long names, gains of thousands, and times from 1 ns to hours."""
    place = tmp_path_factory.mktemp("wide")
    long = parse_choice("k_reduce_scatter_allgather(k=16,single_phase_recv=1)")
    name, machine = "reduce_scatter_block", "AMD EPYC 9965 192-Core Processor, 384 cores"
    here = Environment("mpich", "5.0.2", "0" * 64, machine, 16384, 128, "single", {})
    verdicts = [Verdict.KEPT, Verdict.REFUSED, Verdict.NOT_TRIED]
    region = Interval(1234.567, 1034.567, 4321.987)
    why = "only 1234.57 times as fast in its region after {} fresh launches"
    decisions = tuple(
        Decision(scenario, long, verdicts[power % 3], (1234.5, 2345.6), why.format(power + 1000), region)
        for nodes in (2, 512, 16384)
        for power in range(2, 31)
        for scenario in (Scenario(name, nodes, 128, 1 << power),)
    )
    share = TimeShare(launches=1234, wall_s=123456.0, inside_collectives_s=100000.0)
    summary = Summary(samples=12345678, share=share, total_s=987654.0, decisions=decisions, job=(16384, 128))
    rules = RuleSet(name, SizeBasis.MESSAGE, (Rule(None, None, 1 << 20, long), Rule(None, None, None, DEFAULT)))
    save_tuning(place, Tuning(here, {name: rules}, {}, {}, summary))
    with Journal.create(place / JOURNAL, here) as journal:
        journal.append(
            Sample(one.scenario, choice, Status.OK, (1e-9 * size, 1.1e-9 * size, 12345.678), 1e4, 1, started_s=1.8e9)
            for one in decisions
            for size_bytes in (one.scenario.size_bytes,)
            for choice, size in ((DEFAULT, size_bytes * 7), (long, size_bytes), (Choice("nb"), 3))
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
