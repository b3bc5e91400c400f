"""Choices as text, and back."""

import pickle
import subprocess
import sys

import pytest

from colltune.core.choice import DEFAULT, Choice, format_choice, format_choices, parse_choice
from colltune.core.errors import InputError

RECEXCH = [Choice("recexch", (("k", k),)) for k in (2, 3, 4)]


@pytest.mark.parametrize("choice", [DEFAULT, Choice("ring"), RECEXCH[0], Choice("tree", (("type", "kary"), ("k", 4)))])
def test_a_choice_survives_its_text(choice: Choice) -> None:
    assert parse_choice(format_choice(choice)) == choice


def test_an_algorithm_is_listed_once_with_all_values_of_its_parameters() -> None:
    assert format_choices([DEFAULT, *RECEXCH, Choice("ring")]) == "default, recexch(k=2|3|4), ring"


@pytest.mark.parametrize("text", ["", "two words", "ring(", "ring(k)", "ring(k=)"])
def test_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"recexch\(k=4\)|name=value"):
        parse_choice(text)


def test_a_parameter_that_a_file_names_twice_has_a_place_in_the_order() -> None:
    twice = parse_choice("ring(k=b,k=4)")
    assert twice.parameters == (("k", 4), ("k", "b"))
    mixed = [parse_choice("ring(k=b)"), twice, parse_choice("ring(k=4)"), Choice("ring"), DEFAULT]
    assert sorted(mixed) == [DEFAULT, Choice("ring"), parse_choice("ring(k=4)"), twice, parse_choice("ring(k=b)")]


def test_another_process_finds_what_was_kept_by_a_choice() -> None:
    kept = {Choice("ring", (("k", 2),)): 1}
    command = "import pickle, sys; from colltune.core.choice import Choice; "
    command += "print(pickle.load(sys.stdin.buffer)[Choice('ring', (('k', 2),))])"
    assert (
        subprocess.run([sys.executable, "-c", command], input=pickle.dumps(kept), capture_output=True).stdout == b"1\n"
    )
