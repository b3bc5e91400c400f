"""What `make bench-gate` counts: of the audit that `tune` runs, on small files of which the truth is known."""

import runpy
from pathlib import Path

import pytest

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "bench_gate.py"))


def slow(*names: str) -> list[object]:
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("noise", ["MODES", *slow("NOISE", "LAUNCHES")])
@pytest.mark.parametrize("row", ["threshold", *slow("equal")])
def test_of_regions_without_a_gain_none_is_kept(row: str, noise: str) -> None:
    counts = BENCH["judge_file"](BENCH["ROWS"][row], BENCH[noise], seed=1)
    assert (counts["null"], counts["wrong"], counts["harmed"]) == (BENCH["REGIONS"], 0, 0)


def test_of_regions_that_gain_nearly_all_are_kept_and_those_beside_them_are_not() -> None:
    counts = BENCH["judge_file"](BENCH["ROWS"]["half"], BENCH["NOISE"], seed=1)
    figures = BENCH["figures_of"]("half", counts)
    assert figures["half_kept"] >= 95.0
    assert (counts["wrong"], counts["bound_missed"]) == (0, 0)


def test_a_wrong_rule_is_counted_as_one() -> None:
    """Where less is asked of them, regions are kept that gain nothing."""
    judge_file = BENCH["judge_file"]
    audit = judge_file.__globals__["Audit"]
    judge_file.__globals__["Audit"] = lambda **given: audit(**{**given, "threshold": 0.9})
    try:
        counts = judge_file(BENCH["ROWS"]["equal"], BENCH["NOISE"], seed=1)
    finally:
        judge_file.__globals__["Audit"] = audit
    figures = BENCH["figures_of"]("equal", counts)
    assert counts["wrong"] > 3
    assert figures["equal_wrong"] == pytest.approx(100.0 * counts["wrong"] / BENCH["REGIONS"], abs=1e-3)
    assert figures["equal_wrong"] < figures["equal_wrong_at_most"] < 100.0
