"""The summary of a tuning in `tuning.json`: round trip, files of earlier releases, and what is said of a bad field."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_summary import read_summary

from colltune.core.errors import InputError
from colltune.core.interval import Interval
from colltune.core.proven import (
    ApplicationRuns,
    Budget,
    Decision,
    Guess,
    PredictedSizes,
    Summary,
    TimeShare,
    Verdict,
    Why,
    mean_of_kept,
)
from colltune.core.sample import COLLECTIVES, Choice, Scenario
from colltune.store.earlier import tuned_sizes
from colltune.store.summary_json import write_summary
from colltune.store.tuning import MANIFEST, load_tuning, save_tuning

COLUMNS = "max_ppn max_ranks max_size choice"
RECORDED = Path(__file__).parents[1] / "recorded" / "tunings"

seconds = st.floats(0.0, 1e7)
names = st.sampled_from(COLLECTIVES)
texts = st.text(max_size=20)
choices = st.builds(
    Choice,
    st.from_regex(r"[a-z][a-z_]{0,9}", fullmatch=True),
    st.lists(st.tuples(st.sampled_from(["k", "radix", "kind"]), st.integers(-1, 9)), max_size=2).map(tuple),
)
scenarios = st.builds(Scenario, names, st.integers(1, 99), st.integers(1, 99), st.integers(0, 1 << 40))
# A file holds four digits of a ratio.
ratios = st.lists(st.integers(0, 10**6).map(lambda n: n / 1e4), max_size=12).map(tuple)
decisions = st.builds(Decision, scenarios, choices, st.sampled_from(Verdict), ratios, texts)
runs = st.lists(seconds, max_size=3).map(tuple)
guesses = st.builds(Guess, scenarios, choices, st.integers(0, 1000).map(lambda n: n / 1e3), texts)
sizes = st.dictionaries(names, st.lists(st.integers(1, 1 << 30), max_size=4).map(tuple), max_size=2)
summaries = st.builds(
    Summary,
    seed=st.integers(),
    gated=st.booleans(),
    samples=st.integers(0),
    reasons=st.dictionaries(names, texts, max_size=3),
    interrupted=st.booleans(),
    share=st.builds(TimeShare, st.integers(0), seconds, seconds, seconds),
    decisions=st.lists(decisions, max_size=4).map(tuple),
    reproducible=st.lists(names, max_size=2).map(tuple),
    job=st.none() | st.tuples(st.integers(1, 99), st.integers(1, 99)),
    budget=st.none() | st.builds(Budget, seconds, seconds, st.none() | seconds),
    total_s=seconds,
    since_s=st.none() | seconds,
    added_to=st.booleans(),
    application=st.lists(
        st.builds(ApplicationRuns, st.lists(names, max_size=2).map(tuple), runs, runs, texts), max_size=2
    ).map(tuple),
    prediction=st.none() | st.builds(PredictedSizes, sizes, st.lists(guesses, max_size=2).map(tuple)),
)


@given(summaries)
def test_a_summary_is_read_back_as_it_was_written(summary: Summary) -> None:
    text = json.dumps(write_summary(summary))
    assert read_summary(json.loads(text)) == summary


@given(st.lists(st.floats(0.5, 4.0), min_size=8, max_size=20))
def test_a_bound_is_the_rounded_one_after_reading(ratios: list[float]) -> None:
    held = Decision(Scenario("bcast", 1, 2, 8), Choice("ring"), Verdict.KEPT, tuple(ratios), "")
    (read,) = read_summary(write_summary(Summary(decisions=(held,)))).decisions
    assert (read.speedup.low, read.stated_low) == (round(held.speedup.low, 4), None)


@pytest.mark.parametrize("name", ["measured", "ended", "predicted"])
def test_a_tuning_of_before_is_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    before = json.loads((RECORDED / name / MANIFEST).read_text())
    tuning = load_tuning(RECORDED / name)
    save_tuning(tmp_path, tuning)
    assert load_tuning(tmp_path) == tuning
    after = json.loads((tmp_path / MANIFEST).read_text())
    if name == "predicted":  # starts and ends no launch, which is told now too
        assert after["summary"]["share"].pop("launch_s") == 0.0
        assert before["summary"].pop("hardware")  # on which no prediction depends any more
        # It names a file that it does not hold; no job is told of it any more.
        assert before["variables"].pop("MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE")
    for decision in after["summary"]["gate"]:
        assert decision.pop("why", "budget") == "budget"  # of which the reason told before
    assert after == before


def test_the_figures_of_a_tuning_of_before_are_there() -> None:
    measured = load_tuning(RECORDED / "measured").summary
    assert (measured.speedup.estimate, measured.speedup.low) == pytest.approx((1.1632, 1.1513))
    assert [len(measured.having(verdict)) for verdict in Verdict] == [1, 0, 3, 0, 16]
    assert (measured.reproducible, measured.job, measured.added_to) == (("reduce",), (1, 2), True)
    assert measured.budget == Budget(60.0, pytest.approx(10.747, abs=1e-3), pytest.approx(63.685, abs=1e-3))
    ended = load_tuning(RECORDED / "ended")
    assert ended.left_out == 1
    assert [runs.rules for runs in ended.summary.application] == [("bcast", "reduce"), ("bcast",)]
    assert ended.summary.application[1].failure == "was not done after 60 s"
    predicted = load_tuning(RECORDED / "predicted").summary.prediction
    assert predicted.guesses == (Guess(Scenario("allgather", 1, 2, 64), Choice("ring"), 0.912, "9 of 10 clusters"),)
    assert tuned_sizes(RECORDED / "predicted") == {"allgather": [64, 128]}


def entry(**changed: object) -> dict[str, object]:
    like = {"scenario": ["bcast", 1, 2, 8], "choice": "ring", "verdict": "refused", "ratios": [1.2, 1.1], "reason": ""}
    return {**like, **changed}


def test_entries_of_earlier_releases_mean_what_they_meant() -> None:
    late, apart = entry(reason="the budget ended after 3 fresh groups"), entry(reason=Why.CUT_APART.text)
    proven = entry(reason="proven in its region; nobody looked whether other programs disturbed it", slow_file=True)
    read = read_summary({"gate": [entry(low=1.15), entry(), late, apart, proven]}).decisions
    stated, silent, untried = read[:3]
    assert [one.why for one in read[1:]] == [Why.MEASURED, Why.BUDGET, Why.CUT_APART, Why.SLOW_FILE]
    assert read[4].reason == "nobody looked whether other programs disturbed it"
    assert (stated.speedup.low, silent.speedup.low) == (1.15, 1.1)
    assert untried.verdict is Verdict.NOT_TRIED
    assert read_summary({}) == Summary()
    # What a later release says besides is passed over.
    assert read_summary({"gate": [entry(audited=True)], "mood": "good"}) == read_summary({"gate": [entry()]})


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda m: m["summary"]["gate"][2].update(verdict="maybe"), "'maybe' - at `$.summary.gate[2].verdict`"),
        (lambda m: m["summary"]["gate"][0].update(choice="ring("), "choice 'ring(' - at `$.summary.gate[0]`"),
        (lambda m: m["summary"]["gate"][0].update(scenario=["bcast", 0, 2, 8]), "nodes=0, ppn=2, size_bytes=8) - at"),
        (lambda m: m["summary"]["gate"][0].update(scenario=["bcast", 1, 2]), "got 3 - at `$.summary.gate[0].scenario`"),
        (lambda m: m["summary"]["gate"][0]["ratios"].insert(1, "fast"), "got `str` - at `$.summary.gate[0].ratios[1]`"),
        (lambda m: m["summary"]["gate"][0].update(ratios=[-1.0]), ">= 0.0 - at `$.summary.gate[0].ratios[0]`"),
        (lambda m: m["summary"]["gate"][0].pop("scenario"), "required field `scenario` - at `$.summary.gate[0]`"),
        (lambda m: m["summary"].update(samples=1.5), "Expected `int`, got `float` - at `$.summary.samples`"),
        (lambda m: m["summary"].update(reasons=["x"]), "Expected `object`, got `array` - at `$.summary.reasons`"),
        (lambda m: m["summary"].update(total_s=1e300), "out of range"),
        (lambda m: m["summary"].update(samples=10**30), "out of range"),
        (lambda m: m["summary"]["share"].update(wall_s=float("nan")), "it holds NaN, which is no number"),
        (lambda m: m["summary"].update(predicted=True, guesses=[[1]]), "at `$.summary.guesses[0]`"),
        (lambda m: m["rules"]["bcast"].update(basis="speed"), "'speed' - at `$.rules[...].basis`"),
        (lambda m: m["rules"]["bcast"][COLUMNS][1].append(1), f"got 5 - at `$.rules[...].{COLUMNS}[1]`"),
        (lambda m: m["rules"]["bcast"][COLUMNS][1].__setitem__(3, "ring("), "rules.bcast does not fit: cannot read"),
        (lambda m: m["rules"]["bcast"][COLUMNS].pop(), "rules.bcast does not fit: the last rule of bcast has a bound"),
        (lambda m: m["files"].update({"live/colltune-live.rules": 7}), "Expected `str`, got `int` - at `$.files[...]`"),
    ],
)  # fmt: skip
def test_a_bad_field_is_told_in_one_line(break_it: Callable[[Any], object], words: str, tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "ended", tmp_path / "tuned")
    path = tmp_path / "tuned" / MANIFEST
    manifest = json.loads(path.read_text())
    break_it(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError) as found:
        load_tuning(tmp_path / "tuned")
    assert f"{path}: " in found.value.what
    assert words in found.value.what
    assert "\n" not in str(found.value)
    assert found.value.next_step.startswith("Run `colltune tune` again")


def test_a_speedup_is_told_of_kept_decisions_alone() -> None:
    ring = Choice("ring")
    kept = Decision(Scenario("bcast", 1, 2, 8), ring, Verdict.KEPT, (2.0,) * 8, "")
    assert mean_of_kept([kept, replace(kept, verdict=Verdict.REFUSED, ratios=(0.5,) * 8)]) == Interval(2.0, 2.0, 2.0)
    assert mean_of_kept([replace(kept, verdict=Verdict.PROVISIONAL)]) is None
    # Too few ratios to give a bound.
    assert mean_of_kept([kept, replace(kept, ratios=(2.0,))]) == Interval(2.0, 0.0, math.inf)
