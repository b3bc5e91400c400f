"""What a build of MPICH with named trees counted, against what we take its files to mean: no build is needed.

Recorded by `python tests/mpi/test_mpich_named_real.py`: every choice, 1 to 8 ranks, on one node and two pretended ones.
"""

import gzip
import json
from typing import Any

import pytest

from colltune.emit.lint.check import format_check
from colltune.emit.next.lint_named import lint_named_files
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter
from named_mpich import CATALOGUE, RECORDED, REPLAYED, check_counted, rounds


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


def test_every_choice_ran_where_the_file_said(recorded: dict[str, Any]) -> None:
    for run in recorded["runs"]:
        check_counted(recorded["own"], run)


def test_every_shape_and_every_choice_is_recorded(recorded: dict[str, Any]) -> None:
    shapes = {(ranks, 1) for ranks in range(1, 9)} | {(ranks, 2) for ranks in range(2, 9)}
    expected = {(name, text, shape) for shape in shapes for choices in _choices() for name, text in choices.items()}
    found = {
        (name, text, (run["ranks"], run["nodes"])) for run in recorded["runs"] for name, text in run["choices"].items()
    }
    assert found == expected


def test_every_legal_call_was_right_under_every_choice_on_one_node_and_on_two() -> None:
    """A choice that is new in the catalogue fails this until it was replayed."""
    lines = [json.loads(line) for line in REPLAYED.read_text().splitlines()]
    assert all(line["passed"] and line["cases"] > 1500 for line in lines)
    for nodes in (1, 2):
        found = {choice for line in lines if line["nodes"] == nodes for choice in line["choices"].items()}
        assert found >= {choice for choices in _choices() for choice in choices.items()}


def test_a_wrong_prediction_would_be_seen(recorded: dict[str, Any]) -> None:
    """The comparison has teeth: counters of another file do not pass for this one's."""
    first, *others = recorded["runs"]
    while first["ranks"] != 4:
        first, *others = others
    swapped = next(run for run in others if run["ranks"] == 4 and run["choices"] != first["choices"])
    with pytest.raises(AssertionError):
        check_counted(recorded["own"], {**first, "counted": swapped["counted"]})


def test_files_around_the_real_trees_are_clean(recorded: dict[str, Any]) -> None:
    own = recorded["own"]
    text = json.dumps({f"name={name}": tree for name, tree in own.items()}).encode()
    assert [format_check(one) for one in lint_named_files({"own": text}, None)] == []
    emitter = MpichNamedEmitter(CATALOGUE, own)
    for number, rule_sets in enumerate(rounds()):
        data = emitter.emit(rule_sets)[NAMED_FILE]
        assert [format_check(one) for one in lint_named_files({str(number): data}, None)] == []


def _choices() -> list[dict[str, str]]:
    return [{one.collective: str(one.rules[0].choice) for one in rule_sets} for rule_sets in rounds()]
