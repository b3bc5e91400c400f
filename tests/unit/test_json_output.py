"""`--json` and `--markdown`: what other programs and tickets get, of real tunings, as the reference says."""

import math
from pathlib import Path

import pytest

from colltune.cli.as_json import plain
from colltune.core.sample import parse_choice
from commands import colltune
from documented_json import check_document
from terminals import ENDED, MEASURED, PREDICTED, bare, on_terminal


@pytest.mark.parametrize("tuned", [MEASURED, ENDED, PREDICTED])
def test_a_report_is_one_document_as_the_reference_says(tuned: str) -> None:
    done = colltune("report", tuned, "--json")
    assert done.returncode == 0, done.stderr
    document = check_document(done.stdout, "report")
    assert Path(document["directory"]) == Path(tuned)
    for one in document["gains"]:
        assert one["speedup"] >= one["speedup_low"]
        assert one["from_bytes"] <= one["to_bytes"]


def test_the_gains_are_those_of_the_screen() -> None:
    [gain] = check_document(colltune("report", MEASURED, "--json").stdout, "report")["gains"]
    assert (gain["collective"], gain["from_bytes"], gain["sizes_changed"]) == ("bcast", 65536, 1)
    assert f"{gain['speedup']:.2f}x" in colltune("report", MEASURED, "--text").stdout


def test_a_ticket_gets_markdown_with_the_table_and_the_line_to_copy() -> None:
    text = colltune("report", MEASURED, "--markdown").stdout
    assert text.startswith("**1 node x 2 ranks: 1 collective faster**")
    assert "| bcast | 64 KiB | 64 KiB | 1.16x | 1.15x |" in text
    assert "```sh\neval" in text


def test_values_that_json_has_not_are_null_or_text() -> None:
    held = {"a": math.inf, "b": math.nan, "c": parse_choice("tree(k=4)"), "d": (Path("x"), {1: 2.5})}
    assert plain(held) == {"a": None, "b": None, "c": "tree(k=4)", "d": ["x", {"1": 2.5}]}


@pytest.mark.parametrize("tuned", [MEASURED, ENDED])
def test_a_report_in_the_terminal_is_60_lines_at_most(tuned: str, tmp_path: Path) -> None:
    lines = bare(on_terminal(["report", tuned, "--text"], place=tmp_path)).rstrip().split("\n")
    assert len(lines) <= 60
    assert lines[-1].endswith("--text --all")
