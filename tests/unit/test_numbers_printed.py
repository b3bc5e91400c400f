"""One number, one meaning: what is printed of drawn tunings, runs and comparisons is parsed, and must agree."""

import io
import math
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st
from rich.console import Console

from colltune.cli.compare import exit_code_of, show
from colltune.core.interval import Interval
from colltune.core.proven import Budget, Decision, Summary, TimeShare, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.core.space import Space
from colltune.core.switchback import BlockPair, BlockTimes, Cell, Experiment
from colltune.core.units import parse_duration
from colltune.distill.minimal_rules import distill_proven
from colltune.judge.verdict import compare_all
from colltune.report.ending import ending, facts, headline, steps_text
from colltune.report.explanation import format_explanation
from colltune.report.findings import Findings
from colltune.report.html import _decision_rows
from colltune.report.job import job_shape, shape_gains
from colltune.report.text import print_findings
from colltune.session.application_gain import gain_of
from colltune.session.compare import Verification
from colltune.session.gain_text import gain_line, gain_page, whole_run_text

HERE = Environment("mpich", "5.0.2", "0" * 64, "a machine", 2, 2, "single", {})
CHOICES = [Choice("ring"), Choice("tree", (("k", 4),)), Choice("rd")]
SIZES = [64 << step for step in range(8)]
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
TIME = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?) (us|ms|s)\b"
PAIR = re.compile(rf"{TIME} (?:->|→) {TIME}(?:,\s+(\d\S*)x)?")
WEEK_S = 7 * 86400.0

times = st.floats(-7.0, 0.0).map(lambda power: 10.0**power)
ratios = st.floats(math.log(0.26), math.log(3.9)).map(math.exp)


@st.composite
def tunings(draw: st.DrawFn) -> Findings:
    """Two collectives whose neighbouring sizes were judged together, with times of any magnitude."""
    decisions: list[Decision] = []
    samples: list[Sample] = []
    proofs: list[Sample] = []
    for name in ("allreduce", "bcast"):
        cuts = sorted(draw(st.sets(st.integers(1, len(SIZES) - 1), max_size=3)))
        for place, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(SIZES)], strict=True)):
            choice, speedup = CHOICES[place % 3], draw(st.floats(1.04, 3.9))
            low, high = max(speedup * draw(st.floats(0.3, 1.0)), 1.031), speedup * draw(st.floats(1.0, 9.0))
            region = Interval(speedup, low, high)
            verdict = draw(st.sampled_from([Verdict.KEPT, Verdict.KEPT, Verdict.REFUSED, Verdict.NOT_TRIED]))
            launches = draw(st.integers(3, 40))
            for size in SIZES[start:end]:
                scenario = Scenario(name, 2, 2, size)
                seen = tuple(draw(st.lists(ratios, max_size=3)))
                decisions.append(Decision(scenario, choice, verdict, seen, "", region, launches=launches))
                steady_s, moves = draw(times), draw(st.floats(1.0, 12.0))
                for side, time_s in ((DEFAULT, steady_s), (choice, steady_s / draw(ratios))):
                    samples.append(_sample(scenario, side, time_s, 1))
                    for launch in range(1, 1 + draw(st.integers(0, 3))):
                        proofs.append(_sample(scenario, side, time_s * (moves if launch % 2 else 1.0), launch))
    budget = draw(st.none() | st.builds(Budget, st.just(60.0), st.just(9.0), st.none() | st.floats(1.0, 1e12)))
    measured = Summary(samples=len(samples), share=TimeShare(2, 9.0, 4.0), total_s=50.0)
    summary = replace(measured, decisions=tuple(decisions), budget=budget)
    return Findings(HERE, {name: _rules(name, decisions) for name in ("allreduce", "bcast")}, summary, samples, proofs)


def _sample(scenario: Scenario, choice: Choice, time_s: float, launch: int) -> Sample:
    return Sample(scenario, choice, Status.OK, times_s=(time_s,) * 5, cost_s=5 * time_s, launch=launch, started_s=1.0)


def _rules(name: str, decisions: list[Decision]) -> RuleSet:
    mine = [one for one in decisions if one.scenario.collective == name]
    made = {one.scenario: one.choice if one.verdict is Verdict.KEPT else DEFAULT for one in mine}
    space = Space(name, tuple(made), lambda _scenario: (DEFAULT, *CHOICES))
    return distill_proven(made, space, SizeBasis.MESSAGE)


def _printed(found: Findings) -> Iterator[str]:
    """Every form in which a tuning is told."""
    yield " ".join(" ".join(ending(found)).split())
    yield headline(found)
    yield "; ".join(facts(found))
    yield " ".join(steps_text(found, Path("/tuned")))
    out = io.StringIO()
    print_findings(found, Console(file=out, width=160, markup=False), Path("/tuned"), everything=True)
    yield out.getvalue()
    for row in _decision_rows(found):
        yield " | ".join(row.values())
    for decision in found.decisions:
        yield _explained(found, decision.scenario)


def _explained(found: Findings, scenario: Scenario) -> str:
    return " ".join(format_explanation(found, scenario, "", "", 400).split())


def _agree_in_bounds(text: str) -> None:
    for match in PAIR.finditer(text):
        before, unit, after, other, ratio = match.groups()
        assert ratio is not None, f"two times without their ratio: {match.group()}"
        of_times = float(before) * UNITS[unit] / (float(after) * UNITS[other])
        # Three figures of each time, and two decimals, or two figures, of their ratio.
        rounding = 0.0052 + (0.012 if 0.1 <= of_times < 99.0 else 0.06) * of_times
        assert abs(float(ratio) - of_times) <= rounding, match.group()
    for share in re.findall(r"(\d+(?:\.\d+)?)%", text):
        assert float(share) <= 100.0, text
    for budget in re.findall(r"--budget (\d\w+)", text):
        assert parse_duration(budget) <= WEEK_S + 60.0, text
    assert not re.search(r"\d{8,}", re.sub(r"0{64}", "", text)), text


@given(tunings())
def test_what_is_printed_of_a_tuning_agrees(found: Findings) -> None:
    texts = list(_printed(found))
    for text in texts:
        _agree_in_bounds(text)
    kept = found.regions(Verdict.KEPT)
    for region in kept:
        low, launches = f"at least {region.speedup.low:.2f}", f"{region.launches} fresh launches"
        for decision in region.decisions:
            told = _explained(found, decision.scenario)
            assert f"{low} times as fast in its region" in told
            assert launches in told
            assert set(re.findall(r"(\d+) fresh launches", told)) == {str(region.launches)}
    if not found.is_steady:
        assert not any("99%" in text or "99.5%" in text for text in texts[:4])
    if kept:
        counts = [int(one) for one in re.findall(r"(\d+) (?:to|fresh launches)", texts[2].rpartition("by ")[2])]
        assert (min(counts), max(counts)) == (min(r.launches for r in kept), max(r.launches for r in kept))
    # What is said to be sorted by gain is.
    speedups = [float(row["speedup"].rstrip("x")) for row in _decision_rows(found)]
    assert speedups == sorted(speedups, reverse=True)
    whole = [one.gain.estimate for one in shape_gains(found) if one.shape == job_shape(found)]
    assert whole == sorted(whole, reverse=True)


@st.composite
def runs(draw: st.DrawFn) -> Experiment:
    """A run in which blocks of several kinds of calls lie in each other, of any magnitude and any ratio."""
    elapsed_s = draw(st.floats(0.1, 100.0))
    cells = []
    for number in range(draw(st.integers(1, 4))):
        pairs = []
        for _ in range(draw(st.integers(3, 12))):
            calls = draw(st.integers(5, 9))
            blocks = []
            for _ in (0, 1):
                call_s, beyond = draw(times) * calls, draw(st.floats(1.0, 30.0))
                blocks.append(BlockTimes(call_s, call_s * beyond))
            pairs.append(BlockPair(calls, draw(st.booleans()), *blocks))
        size, off, tuned = 64 << number, draw(st.integers(0, 1)), draw(st.integers(10, 10**5))
        cells.append(Cell("bcast", 0, size, size, 4, 1, 4, tuned, 50, 1, off, 1e-4, tuple(pairs)))
    return Experiment(4, 1, 5, elapsed_s, tuple(cells))


@given(runs())
def test_what_is_printed_of_a_run_agrees(run: Experiment) -> None:
    gain = gain_of(run, CHOICES)
    assume(gain.cells)
    line = gain_line(gain)
    _agree_in_bounds(line)
    assert "this run took" in line
    # The run without the tuning is the run, and what it saved: no less than nothing, whatever was measured twice.
    assert gain.saved_s.estimate >= -run.elapsed_s * 1.001
    assert gain.saved_in_calls_s.estimate >= -run.elapsed_s * 1.001
    assert not re.search(r"saved -|cost -| cost 0 us", line)
    for cell in gain.cells:
        whole = [one.call_s + one.between_s for one in (cell.by_default, cell.tuned)]
        assert math.isclose(cell.by_default.call_s / cell.tuned.call_s, cell.faster_in_calls.estimate, rel_tol=1e-6)
        assert math.isclose(whole[0] / whole[1], cell.faster.estimate, rel_tol=1e-6)
    page = "\n".join(gain_page(gain))
    assert "their ratio is the speed-up" in page
    assert ("switched off on" in page) == any(cell.off for cell in gain.cells)
    said = whole_run_text(gain, "app", [])
    _agree_in_bounds(said)
    assert (" is faster: " in said or " is slower: " in said) == gain.is_sure


@st.composite
def verifications(draw: st.DrawFn) -> Verification:
    """Points with times of any magnitude, by launches that scatter."""
    launches = draw(st.integers(2, 9))
    sides = {}
    for number in range(draw(st.integers(1, 6))):
        middle_s, ratio = draw(times), draw(ratios)
        of_launch = st.lists(st.floats(0.8, 1.25), min_size=launches, max_size=launches)
        a_s = [middle_s * factor for factor in draw(of_launch)]
        b_s = [middle_s / ratio * factor for factor in draw(of_launch)]
        sides[Scenario("bcast", 2, 2, 64 << number), draw(st.sampled_from([DEFAULT, *CHOICES]))] = a_s, b_s
    return Verification(compare_all(sides), launches)


@given(verifications())
def test_what_is_printed_of_a_comparison_agrees(found: Verification) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        show(found, "use --launches {launches}")
    text = " ".join(out.getvalue().split())
    bounds = r"(?:(\d+\.\d\d|less) to (\d+\.\d\d|more)|not known)"
    rows = re.findall(rf"(\d+\.\d\d) +{bounds} +(faster|same|open|slower)", text)
    assert len(rows) == len(found.comparisons)
    for printed, low, high, verdict in rows:
        ratio = float(printed)
        bounds = ("0" if low in ("", "less") else low, "inf" if high in ("", "more") else high)
        assert float(bounds[0]) <= ratio <= float(bounds[1])
        assert {"faster": ratio >= 1.03, "slower": ratio <= 0.97, "same": 0.97 <= ratio <= 1.03, "open": True}[verdict]
    counts = {verdict: sum(row[3] == verdict for row in rows) for verdict in ("faster", "same", "open", "slower")}
    assert text.endswith(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + ".")
    assert "It may differ from that of the two columns" in text
    assert exit_code_of("verify", found) == (1 if counts["slower"] else 0)
