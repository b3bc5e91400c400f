"""The arithmetic and the table of the bench of programs that others wrote."""

import pytest

pytest.importorskip("scipy")
from application_rows import HEAD, Program, Steps, figures, programs, row


def test_the_gain_is_of_the_logarithms_of_the_rounds() -> None:
    steps = Steps(rules=1, default_s=[2.0, 4.0, 2.0], tuned_s=[1.0, 2.0, 1.0])
    assert steps.gain() == pytest.approx((2.0, 2.0, 2.0))
    assert Steps(default_s=[2.0, 8.0], tuned_s=[1.0, 2.0]).gain() == (pytest.approx(8.0**0.5), None, None)


def test_measured_seconds_are_told_as_a_gain_and_overlap_with_whole_runs() -> None:
    steps = Steps(rules=1, default_s=[10.0] * 4, tuned_s=[7.9, 8.1, 8.0, 8.0])
    steps.measured = [(2.0, 1.5, 2.5), (0.5, 0.2, 0.7), (5.0, None, None)]
    assert steps.measured_gain((2.0, None, 5.0)) == pytest.approx([1.25, 0.0, 2.0])
    assert steps.agreeing() == 2
    assert steps.measured_gain((11.0, 1.0, 12.0))[2] == float("inf")


def test_figures_count_what_was_compared_and_what_had_nothing_to_gain() -> None:
    faster = Steps(rules=2, default_s=[2.0, 2.1, 2.0], tuned_s=[1.0, 1.05, 1.0])
    slower = Steps(rules=1, default_s=[1.0, 1.05, 1.0], tuned_s=[2.0, 2.1, 2.0])
    nothing, ended = Steps(rules=0, alltoallv=0), Steps(rules=3, failed="signal 11")
    found = figures([faster, slower, nothing, ended])
    assert (found["rows"], found["compared"], found["surely_slower"], found["surely_5_percent_faster"]) == (3, 2, 1, 1)
    assert found["geomean"] == pytest.approx(1.0)


def test_every_row_has_the_columns_of_the_head() -> None:
    program = Program("X", "mpich", ["x"])
    columns = HEAD[0].count("|")
    for steps in (Steps(), Steps(rules=0), Steps(rules=1, failed="it ended"), Steps(share=0.5, rules=2, alltoallv=1)):
        assert row(program, "4x2", steps).count("|") == columns
    steps = Steps(rules=1, tuning_s=60.0, default_s=[2.0, 2.0, 2.0], tuned_s=[1.0, 1.0, 1.0])
    assert "| 2.000 (2.000 to 2.000) |" in row(program, "8x1", steps)
    assert row(program, "8x1", steps).endswith("| 60 s | 60 |")


def test_the_programs_are_described_in_full() -> None:
    for name, program in programs().items():
        assert program.mpi in ("mpich", "openmpi"), name
        assert program.title, name
        assert program.command, name
