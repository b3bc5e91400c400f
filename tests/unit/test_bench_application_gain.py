"""The arithmetic of the comparison between what a measured run says and what whole runs show."""

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy")
from bench_application_gain import Found, interval, saved_by_all
from colltune.store.earlier import GAIN, HISTORY


def test_the_interval_is_students() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert (mean, low, high) == pytest.approx((2.0, 2.0 - 2.4841, 2.0 + 2.4841), abs=1e-3)
    assert interval([1.0, 2.0]) == (1.5, None, None)


def test_what_all_calls_would_save_grows_by_those_that_ran_by_default(tmp_path: Path) -> None:
    def cell(tuned: int, default: int, *ends: float | None) -> dict[str, object]:
        saved = dict(zip(("estimate", "low", "high"), ends, strict=True))
        return {"tuned_calls": tuned, "default_calls": default, "saved_s": saved}

    for number, cells in enumerate(([], [cell(50, 50, 1.0, 0.5, 2.0), cell(75, 25, 3.0, -3.0, None)])):
        place = tmp_path / HISTORY / f"2026112{number}"
        place.mkdir(parents=True)
        (place / GAIN).write_text(json.dumps({"cells": cells}))
        found = saved_by_all(tmp_path)
        assert found == ([] if not cells else [(pytest.approx(6.0), pytest.approx(-3.0), None)])


def test_runs_agree_where_their_intervals_overlap() -> None:
    measured = [(1.0, 0.5, 1.5), (3.0, 2.5, 3.5), (0.0, -1.0, 0.9), (5.0, None, None), (4.0, 3.6, None)]
    found = Found("solver", "1 x 2", "mpich", "bcast: proven", [10.0], [8.0], (2.0, 1.0, 3.0), measured)
    assert found.agreeing == 3
    assert found.row() == ("| solver | 1 x 2 | bcast: proven | 10 s | +20.0% (+10.0% to +30.0%) | +30.0% | 3 of 5 |")
