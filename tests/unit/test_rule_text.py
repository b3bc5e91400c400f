"""The text of rules: its head, its comments, and the head that it had before."""

from pathlib import Path

import pytest

from alltoallv_lookup import find
from colltune.alltoallv.lookup_table import BOUND_TO, AlltoallvRule, Setting, TableEntry, load_table, save_table
from colltune.core.errors import InputError
from colltune.core.sample import Choice, Environment
from colltune.emit.live_rules import HEAD, parse_lines, parse_live

LINES = "choice 0 - A=1 # bcast binomial\nrules bcast message\nrule - - 64 0\nrule - - - -\n"


@pytest.mark.parametrize("head", [HEAD, "colltune-live 1"])
def test_live_rules_are_read_under_either_head(head: str) -> None:
    found = parse_live(f"{head}\n{LINES}")["bcast"]
    assert (found.rules[0].max_size, found.rules[0].choice) == (64, Choice("binomial"))


def test_text_under_another_head_is_refused_and_comments_and_empty_lines_say_nothing() -> None:
    for text in ("", LINES, f"colltune-rules 3\n{LINES}", '{"format": 1}'):
        with pytest.raises(InputError, match="first line"):
            parse_live(text)
    assert list(parse_lines(f"{HEAD}\n\n# for people\n  rule  -  - # why\n")) == [("rule", ["-", "-"], "why")]


def test_a_table_written_by_hand_may_leave_bounds_and_fill_open(tmp_path: Path) -> None:
    path = tmp_path / "t.rules"
    path.write_text(f"{HEAD}\nchoice 0 - algorithm=linear,batch=8\nrules alltoallv average\nrule - 64 100..500 0\n")
    (entry,) = load_table(path)
    assert entry.ranks == (0, 64)
    assert find([entry], 64, 5, 100, 0) == find([entry], 3, 1, 500) == Setting("linear", 0, 8)
    assert find([entry], 65, 5, 100) == find([entry], 64, 5, 99) == Setting("library")


def test_entries_come_back_as_they_were_saved(tmp_path: Path) -> None:
    parata = Setting("parata", 3, 1, 256)
    first = TableEntry((4, 4), (2, 2), (AlltoallvRule(1, 9, parata), AlltoallvRule(10, 99, Setting("library"))), 7)
    second = TableEntry((8, 9), (1, 4), (AlltoallvRule(1, 9, parata, (0, 2)),))
    entries = [first, second, TableEntry((3, 3), (1, 1), ())]
    save_table(tmp_path / "t.rules", entries, {"machine": "a # b"})
    assert load_table(tmp_path / "t.rules") == entries


HERE = Environment("mpich", "5.0.2", "a" * 64, "a CPU, 8 cores", 2, 4, "single").with_fabric("InfiniBand 200")


@pytest.mark.parametrize(
    "made",
    [{}, {"note": "by hand"}, {name: getattr(HERE, name) for name in BOUND_TO}, {"machine": HERE.machine, "nodes": 9}],
)
def test_a_table_of_this_machine_or_of_none_is_taken(tmp_path: Path, made: dict[str, object]) -> None:
    save_table(tmp_path / "t.rules", [], made)
    load_table(tmp_path / "t.rules", HERE)


@pytest.mark.parametrize("name", BOUND_TO)
def test_a_table_of_another_machine_or_mpi_is_refused(tmp_path: Path, name: str) -> None:
    save_table(tmp_path / "t.rules", [], {**{key: getattr(HERE, key) for key in BOUND_TO}, name: "other"})
    with pytest.raises(InputError, match=rf"made elsewhere: {BOUND_TO[name]} other, here ") as refused:
        load_table(tmp_path / "t.rules", HERE)
    assert "colltune tune alltoallv" in str(refused.value.next_step)


@pytest.mark.parametrize("made", ["[1]", "{", '{"machine": ["x"]}'])
def test_a_table_whose_origin_cannot_be_read_is_refused(tmp_path: Path, made: str) -> None:
    (tmp_path / "t.rules").write_text(f"{HEAD}\n# made: {made}\n")
    with pytest.raises(InputError, match="made"):
        load_table(tmp_path / "t.rules", HERE)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 1, "entries": []}',
        f"{HEAD}\nrule - - - -\n",
        f"{HEAD}\nrules bcast message\n",
        f"{HEAD}\nchoice 0 - radix=2\n",
        f"{HEAD}\nchoice 0 - algorithm=linear,beads=2\n",
        f"{HEAD}\nrules alltoallv average\nrule - - 0..9 0\n",
        f"{HEAD}\nrules alltoallv average\nrule - x - -\n",
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.rules").write_text(text)
    with pytest.raises(InputError, match=r"t\.rules is not a look-up table") as refused:
        load_table(tmp_path / "t.rules")
    assert "colltune tune alltoallv" in str(refused.value.next_step)
