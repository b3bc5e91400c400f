"""Lint says what Open MPI would do with a file of rules for coll/tuned."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_lint_command import run

from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet
from colltune.core.sample import COLLECTIVES
from colltune.core.space import shapes
from colltune.emit.lint.check import Check, Severity, format_check
from colltune.emit.openmpi.lint_han import lint_han_files
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.emit.openmpi.rules_file import RULES_FILE, parse_rules
from colltune.machine.file_formats import Format, recognise
from emitter_laws import random_rules

VERSION = "5.0.11"


def lint(text: str, version: str = VERSION) -> list[Check]:
    return lint_rules_files({"a.conf": text.encode()}, version, load("openmpi", version))


def rules(number: int, *communicators: str) -> str:
    return "\n".join(["1", str(number), str(len(communicators)), *communicators]) + "\n"


SIZES = "{} is the number of message sizes here, and the lines say {}"
LINES = "1 # collectives\n2 # allreduce\n2 # ranks\n2\n2\n0 3 0 0\n1024 4 0 0\n4 # ranks\n1\n0 3 0 0\n"


def lines(old: str, new: str) -> str:
    """Where the lines say something else than what the library sees."""
    assert old in LINES
    return LINES.replace(old, new, 1).replace(" 4 0 0", " 3 0 0")


@given(
    st.sampled_from(["4.1.4", "4.1.8", "5.0.11"]),
    st.sets(st.sampled_from(COLLECTIVES), min_size=1, max_size=3),
    st.integers(0, 10**6),
)
def test_what_colltune_writes_is_clean(version: str, names: set[str], seed: int) -> None:
    backend = OpenMpiBackend(version)
    rule_sets: list[RuleSet] = []
    for name in sorted(names):
        entry = backend.catalogue.collective(name)
        if entry.nothing_to_tune is None:
            some = random_rules(seed, name, entry.basis, backend.catalogue.choices(name))
            rule_sets.append(backend.expressible(some, shapes(4, 4)))
    data = backend.emitter.emit(rule_sets)[RULES_FILE]
    assert recognise(data).format is Format.TUNED_RULES
    found = lint_rules_files({RULES_FILE: data}, version, backend.catalogue)
    assert [format_check(check) for check in found] == []


@pytest.mark.parametrize(
    ("text", "line", "severity", "what"),
    [
        ("", 1, "error", "ends where the number of collectives is due"),
        ("1\n7\n1\n2\n1\n4 6 0 0\n", 6, "error", "first rule of 2 ranks is for 4 bytes"),
        ("1 7 1 2 2\n0 6 0\n0", 3, "error", "ends where a message size is due"),
        ("1\n22\n0\n", 2, "error", "no collective 22"),
        ("23\n", 1, "error", "23 is the number of collectives"),
        ("1\n7\n1\n2\n1\n0 -6 0 0\n", 6, "error", "-6 stands where an algorithm is due"),
        (rules(7, "2 1 0 77 0 0"), 4, "error", "no algorithm 77 of bcast"),
        (rules(3, "2 1 0 5 0 0"), 4, "error", "two_proc can be reached on 3 ranks"),
        (rules(2, "2 1 0 4 0 0"), 4, "error", "allreduce ring is not safe"),
        (rules(15, "2 2 0 1 0 0 1000 2 0 0"), 4, "error", "scatter is decided by size"),
        (rules(7, "8 1 0 6 0 0", "4 1 0 5 0 0"), 5, "warning", "4 ranks come after 8"),
        (rules(7, "2 3 0 6 0 0\n1000 5 0 0\n500 6 0 0"), 6, "warning", "size 500 comes after 1000"),
        (rules(7, "2 0"), 4, "warning", "no message sizes"),
        ("2\n7 1 2 1 0 6 0 0\n7 1 2 1 0 5 0 0\n", 3, "warning", "second time, after line 2"),
        (rules(17, "2 1 0 1 0 0"), 2, "warning", "runs no collective 17"),
        (rules(7, "010 1 0 6 0 0"), 4, "warning", "010 begins with a 0"),
        ("1 bcast\n7 1 2 1 0 6 0 0\n", 1, "warning", "'bcast' is no number"),
        (rules(7, "2 1 0 6 0 0 8"), 4, "warning", "behind the last rule: 1 more than the counts say"),
        (lines("2\n2\n0", "2\n3\n0"), 5, "error", SIZES.format(3, 2)),
        (lines("1\n0 3", "2\n0 3"), 9, "error", SIZES.format(2, 1)),
        (lines("2 # ranks", "3 # ranks"), 3, "error", "3 is the number of rank counts here, and the lines say 2"),
        (lines("1 # coll", "2 # coll"), 1, "error", "2 is the number of collectives here, and the lines say 1"),
        (lines("1024 4 0 0\n", "1024 4 0 0\n2048 3 0 0\n"), 5, "error", SIZES.format(2, 3)),
        (lines("2\n2\n0", "2 3\n0"), 4, "error", SIZES.format(3, 2)),
        (lines("1024 4 0 0", "1024 4 0"), 7, "error", "a rule of 3 numbers, where 4 are due"),
        (lines("1024 4 0 0", "1024 4\n0 0"), 7, "warning", "the numbers of a rule stand on lines 7 to 8"),
        (lines("0 3 0 0\n10", "0 4294967299 0 0\n10"), 6, "error", "4294967299 is larger than the library can keep"),
        (lines("4 # ranks", "4294967300 # ranks"), 8, "error", "4294967300 is larger than the library can keep"),
        (lines("2 # ranks", "4294967298 # ranks"), 3, "error", "4294967298 is the number of rank counts here"),
    ],
)
def test_a_fault_is_found_where_it_is(text: str, line: int, severity: str, what: str) -> None:
    [check] = [check for check in lint(text) if what in check.what]
    assert (check.line, check.severity.value) == (line, severity)


@pytest.mark.parametrize(
    "text",
    [
        rules(3, "2 1 0 5 0 0", "3 1 0 0 0 0"),
        rules(15, "2 2 0 2 0 0 1000 2 0 0"),
        rules(1, "2 1 0 3 0 0 # allgatherv can be set in a file"),
        "# one\n" + rules(7, "2 2 0 6 0 0 # up to 1000\n1000 3 0 8192"),
        "rule-file-version-2\n" + rules(3, "2 2 0 4 0 0 8\n1000 2 0 0"),
    ],
)
def test_what_the_library_can_follow_is_clean(text: str) -> None:
    assert lint(text) == []


@pytest.mark.parametrize(
    ("text", "whats"),
    [
        (rules(3, "2 1 0 5 0 0", "3 1 0 0 0 0", "2 1 0 2 0 0"), ["2 ranks come after 3"]),
        (rules(3, "3 1 0 2 0 0", "2 1 0 5 0 0"), ["2 ranks come after 3", "two_proc can be reached on 3 ranks"]),
        (rules(7, "2 3 0 6 0 0 1000 77 0 0 500 5 0 0"), ["size 500 comes after 1000"]),
    ],
)
def test_what_is_out_of_reach_may_be_anything(text: str, whats: list[str]) -> None:
    """The library takes the last start before the first that is too large."""
    assert [what in check.what for what, check in zip(whats, lint(text), strict=True)] == [True] * len(whats)


def test_old_releases_take_the_version_for_a_number() -> None:
    text = "rule-file-version-2\n" + rules(7, "2 1 0 6 0 0 0")
    assert lint(text, "5.0") == lint(text, "5.0.7") == []
    assert [check.severity for check in lint(text, "5.0.3")] == [Severity.ERROR]
    assert lint(text.replace("2\n", "2" * 5000 + "\n", 1), "5.0.7") == []


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_any_numbers_are_read_or_refused_as_by_the_strict_reader(numbers: list[int]) -> None:
    """What colltune's own reader takes, lint takes too."""
    text = " ".join(map(str, numbers)) + "\n"
    found = lint(text)
    try:
        table = parse_rules(text, "a.conf")
    except InputError:
        table = None
    unread = [check for check in found if not check.path and check.severity is Severity.ERROR]
    assert table is None or not unread


@pytest.mark.parametrize(
    "text",
    [
        LINES.replace(" 4 0 0", " 3 0 0"),
        re.sub(r"(?<=\d) (?=\d)", "\n", LINES.replace(" 4 0 0", " 3 0 0")),  # each number has a line
        re.sub(r"#.*", "", LINES.replace(" 4 0 0", " 3 0 0")).replace("\n", " "),  # all are on one
        "1\n2\n2\n2 2\n0 3 0 0\n1024 3 0 0\n4 1 0 3 0 0\n",
        "1\n2\n1\n2 2 0 3 0 0 1024 3 0 0\n",
        "1\n2\n2\n2\n1\n0 3 0 0\n4\n0\n",
    ],
)
def test_lines_of_any_style_are_no_fault(text: str) -> None:
    assert [check for check in lint(text) if check.severity is Severity.ERROR] == []


HAN = "1\nallreduce\n1\n2\n2\n1 2\n0 han\n1024 tuned\n8 1\n0 tuned\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("1 2\n", "2 2\n", 6, "the first rank count of a level is 2"),
        ("1 2\n", "1 3\n", 6, SIZES.format(3, 2)),
        ("1 2\n", "1 1\n", 6, "1 is the number of message sizes here, and the lines say 2"),
        ("2\n1 2", "3\n1 2", 5, "3 is the number of rank counts here, and the lines say 2"),
        ("1\nall", "2\nall", 1, "2 is the number of collectives here, and the lines say 1"),
        ("allreduce", "Allreduce", 2, "'Allreduce' is no collective"),
        ("allreduce", "alltoall", 4, "han asks no rules of alltoall"),
        ("1\n2\n2", "1\n3\n2", 4, "'3' is no level"),
        ("1\n2\n2", "1\nintra_node\n2", 7, "han is named at a level below all ranks"),
        ("0 han", "0 hna", 7, "'hna' is no component that han hands calls to"),
        ("0 han", "0 han @fast", 7, "han has no algorithm 'fast' of allreduce"),
        ("0 han", "2 han", 7, "the first message size of a rank count is 2"),
        ("1024", "0", 8, "size 0 comes after 0"),
        ("1024", "-1", 8, "the message size -1 is below 0"),
        ("8 1\n", "1 1\n", 9, "1 ranks come after 1"),
        ("8 1\n", "010 1\n", 9, "010 begins with a 0"),
        ("0 tuned\n", "0 tuned\nbcast\n", 11, "the file goes on"),
        (HAN, "", 1, "the file ends where the number of collectives is due"),
    ],
)
def test_faults_of_rules_of_han_are_found_where_they_are(old: str, new: str, line: int, what: str) -> None:
    checks = lint_han_files({"f": HAN.replace(old, new, 1).encode()}, VERSION)
    assert [check.line for check in checks if what in check.what] == [line], checks


def test_rules_of_han_are_clean_also_with_a_segment_a_name_and_an_algorithm() -> None:
    for text in (HAN, HAN.replace("0 han", "0 han @simple # c"), HAN.replace("0 han", "0 tuned [ 1 2 ]"),
                 HAN.replace("1\n2\n2", "1\nglobal_communicator\n2"), HAN.replace("\n", " ")):  # fmt: skip
        assert lint_han_files({"f": text.encode()}, VERSION) == []
    [check] = lint_han_files({"f": HAN.encode()}, "4.1.8")
    assert check.severity is Severity.WARNING


def test_the_command_tells_the_library_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "rules.conf").write_text(rules(7, "2 1 0 6 0 0"))
    assert run(tmp_path / "rules.conf", version=VERSION) == (0, "1 file for Open MPI 5.0.11: 0 errors, 0 warnings\n")
    (tmp_path / "mpich.json").write_text("{}")
    with pytest.raises(InputError, match="two libraries"):
        run(tmp_path / "rules.conf", tmp_path / "mpich.json", version=VERSION)
