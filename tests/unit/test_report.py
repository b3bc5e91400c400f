"""What the report works out from a campaign, and the page that it makes of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from written_summary import read_summary

from colltune.core.disturbance import Disturbance
from colltune.core.interval import Interval
from colltune.core.proven import Decision, StopReason, Summary, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.report.charts import panel_charts
from colltune.report.curves import curve_points, panels
from colltune.report.ending import ending, facts, headline, next_steps
from colltune.report.findings import Findings, spreads
from colltune.report.html import build_page
from colltune.report.job import shape_gains
from colltune.session.explain import load_findings
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from commands import colltune, run_to_end

HERE = Environment("mpich", "5.0.2", "0" * 64, "a machine", 2, 2, "single", {})
RING, TREE = Choice("ring"), Choice("tree", (("k", 4),))
RULES = RuleSet(
    "allreduce",
    SizeBasis.MESSAGE,
    (Rule(2, 4, 4096, RING), Rule(2, 4, None, DEFAULT), Rule(2, None, None, DEFAULT), Rule(None, None, None, DEFAULT)),
)
KEPT = {"verdict": "kept", "ratios": [2.0, 1.9, 2.1], "low": 1.9, "reason": "at least 1.90 times as fast"}
REFUSED = {"verdict": "refused", "ratios": [1.01], "reason": "not 1.03 times as fast in 1 of 1 fresh groups"}
GATE = [
    {"scenario": ["allreduce", 2, 2, 4096], "choice": "ring", **KEPT},
    {"scenario": ["allreduce", 2, 2, 8192], "choice": "tree(k=4)", **REFUSED},
]
BUDGET = {"budget_s": 60.0, "fixed_cost_s": 9.0, "budget_for_all_s": 700.0}
SUMMARY = {
    "seed": 1,
    "gated": True,
    "samples": 5,
    "reasons": {"allreduce": "the whole grid was measured"},
    "share": {"launches": 1, "wall_s": 2.0, "inside_collectives_s": 1.0},
    "total_s": 900.0,
    "gate": GATE,
}


def sample(size: int, choice: Choice, time_us: float, at_s: float, nodes: int = 2, **more: object) -> Sample:
    times = tuple(time_us * 1e-6 * factor for factor in (0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.1))
    fields = {"status": Status.OK, "times_s": times, "cost_s": 1.0, "launch": 1, "started_s": 100.0 + at_s, **more}
    return Sample(Scenario("allreduce", nodes, 2, size), choice, **fields)  # type: ignore[arg-type]


SAMPLES = (
    sample(4096, DEFAULT, 20.0, 0.0, group=1),
    sample(4096, RING, 10.0, 0.0, group=1),
    sample(8192, DEFAULT, 30.0, 2.0, group=2),
    sample(8192, TREE, 29.0, 2.0, group=2),
    Sample(Scenario("allreduce", 2, 2, 8192), RING, Status.CRASHED, launch=1, group=2, started_s=102.0),
)


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    tuning = Tuning(HERE, {"allreduce": RULES}, {"mpich/a.json": b"{}"}, {}, read_summary(SUMMARY))
    save_tuning(tmp_path / "tuned", tuning)
    with Journal.create(tmp_path / "tuned" / JOURNAL, HERE) as journal:
        journal.append(SAMPLES)
    return tmp_path / "tuned"


def findings(*samples: Sample, proofs: Sequence[Sample] = (), **changes: object) -> Findings:
    """``changes``: of the summary."""
    return Findings(HERE, {"allreduce": RULES}, read_summary({**SUMMARY, **changes}), samples or SAMPLES, proofs)


def proof(size: int, *times_us: float) -> list[Sample]:
    """A launch of the proof, in which the default and the ring take ``times_us``."""
    return [sample(size, choice, us, 9.0, launch=2) for choice, us in zip((DEFAULT, RING), times_us, strict=True)]


def test_cells_hold_what_is_in_force_and_every_choice_with_the_fastest_first() -> None:
    small, large = findings().cells("allreduce")
    assert (small.chosen, large.chosen) == (RING, DEFAULT)
    assert [t.choice for t in small.timings] == [RING, DEFAULT]
    assert [t.choice for t in large.timings] == [TREE, DEFAULT, RING]
    assert small.timings[0].median_s == pytest.approx(10e-6)
    assert (small.timings[0].low_s, small.timings[0].high_s) == (pytest.approx(9e-6), pytest.approx(11e-6))
    assert large.timings[-1].status is Status.CRASHED
    assert large.timings[-1].median_s is None


def test_cells_hold_what_is_in_force_where_the_campaign_did_not_come_to() -> None:
    later = {**GATE[0], "scenario": ["allreduce", 2, 2, 2048]}
    never = {**GATE[0], "scenario": ["allreduce", 2, 2, 1024]}
    found = findings(proofs=proof(2048, 40.0, 16.0), gate=[*GATE, later, never])
    cells = found.cells("allreduce")
    assert [cell.scenario.size_bytes for cell in cells] == [1024, 2048, 4096, 8192]
    assert [len(cell.timings) for cell in cells[:2]] == [0, 2]
    assert [cell.chosen for cell in cells] == [RING, RING, RING, DEFAULT]
    assert "allreduce: 3 of 4 shapes and sizes changed" in build_page(found, Path())


def test_drift_is_told_only_where_something_was_measured_again() -> None:
    again = sample(4096, RING, 12.0, 5.0, group=9)
    found = spreads(findings(*SAMPLES, again))
    assert sorted(round(s.drift, 3) for s in found if s.drift is not None) == [0.909, 1.091]
    assert all(0.0 <= s.relative_iqr < 0.3 for s in found)


def told(found: Findings) -> str:
    return " ".join(" ".join(ending(found)).split())


def test_the_whole_job_comes_first_and_smaller_shapes_behind_it() -> None:
    small = {**GATE[0], "scenario": ["allreduce", 1, 2, 4096], "ratios": [3.0, 3.0, 3.0], "low": 2.5}
    found = findings(gate=[*GATE, small])
    assert headline(found).startswith("2 nodes x 2 ranks per node: allreduce 2.00x (at least 1.90) at 4 KiB; 1 smaller")
    assert "1 smaller shape: allreduce 3.00x (at least 2.50)" in told(found)
    alone = findings(gate=[small])
    assert "2 nodes x 2 ranks per node: the library decides as before" in told(alone)
    assert headline(alone).startswith("2 nodes x 2 ranks per node: the library decides as before; 1 smaller shape: ")


def test_the_call_that_stands_for_the_others_gains_as_much_as_they_do_on_average() -> None:
    far = {**GATE[0], "scenario": ["allreduce", 2, 2, 8192], "ratios": [2.0, 1.9, 2.1]}
    [one] = shape_gains(findings(*SAMPLES[:3], sample(8192, RING, 3.0, 3.0), gate=[GATE[0], far]))
    assert one.span == (4096, 8192)
    assert one.example.scenario.size_bytes == 4096


def test_what_was_not_tried_is_told_apart_from_what_was_refused() -> None:
    late = {**GATE[1], "scenario": ["allreduce", 2, 2, 16384], "verdict": "not tried", "reason": "no time"}
    text = told(findings(gate=[*GATE, late], **BUDGET))
    assert "refused 1 shape and size: looked faster, and not proven to be" in text
    assert "not tried 1 shape and size: --budget 12m would be enough for all" in text


def test_what_is_provisional_is_never_told_as_proven() -> None:
    found = findings(gate=[{**GATE[0], "verdict": "provisional"}], interrupted=True)
    text = told(found)
    assert "unproven 1 shape and size, provisional: --provisional loads them" in text
    assert "nothing was proven faster" in text
    busy = replace(found.summary, disturbance=Disturbance(True, 10, 9, "others", 0.5, "n17", disturbed_share=0.9))
    assert "on the busy machine nothing was judged" in told(replace(found, summary=busy))
    assert "2.00x" not in text
    assert found.regions(Verdict.KEPT) == []


def test_the_launches_are_those_of_the_decisions_wherever_they_are_told() -> None:
    """And not those of all campaigns that lie in the journal, which number theirs from one each."""
    proofs = [sample(4096, RING, 10.0, float(launch), launch=launch) for launch in (1, 2, 3)]
    audited = {**GATE[0], "region": [2.0, 1.9, 2.1], "low": 1.9, "launches": 7}
    found = findings(proofs=proofs, gate=[audited])
    for text in (facts(found), ending(found), [found.summary.decisions[0].explanation]):
        assert "by 7 fresh launches" in " ".join(" ".join(text).split())
    assert "fresh launches" not in told(findings())


def test_without_a_proof_the_summary_says_so() -> None:
    assert "tuned without a proof, so calls may be slower" in told(findings(gated=False, gate=[]))


def test_the_text_report_shows_what_runs_gains_refusals_and_environment(tuned: Path) -> None:
    shown = colltune("report", str(tuned), "--text", "--all", code=0).stdout
    for part in ("A ring", "A 4 KiB; . 8 KiB", "tree(k=4): not 1.03 times", "MPI: mpich 5.0.2"):
        assert part in " ".join(shown.split())
    assert not (tuned / "report.html").exists()


def test_the_page_stands_alone_and_holds_the_numbers(tuned: Path) -> None:
    colltune("report", str(tuned), code=0)
    page = (tuned / "report.html").read_text(encoding="utf-8")
    assert "src=" not in page.split("<main")[1].split('<script id="cells"')[0]
    assert "<link" not in page
    cells = json.loads(page.split('<script id="cells" type="application/json">')[1].split("</script>")[0])
    told = next(cell for cell in cells.values() if cell["title"] == "allreduce 2 x 2, 4 KiB")
    assert told["rows"][0] == ["ring", "10 us", "2.00", True]
    assert "not 1.03 times as fast in 1 of 1 fresh groups" in page
    assert page.count("<svg role=") == 1
    assert "20 us → 10 us" in page


def test_without_what_draws_the_page_has_its_tables_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colltune.report.html.can_draw", lambda: False)
    page = build_page(findings(), Path())
    assert "pip install vl-convert-python" in page
    assert "<figure>" not in page
    assert "Regions in force" in page


@pytest.mark.slow
def test_a_page_of_a_large_campaign_fits_a_telephone() -> None:
    """14 collectives on 20 shapes and 21 sizes, all of them decided."""
    sizes = [1 << power for power in range(21)]
    names = [f"collective{number}" for number in range(14)]
    shapes = [(nodes, ppn) for nodes in (1, 2, 4, 8, 16) for ppn in (2, 4, 8, 16)]
    places = [Scenario(name, *shape, size) for name in names for shape in shapes for size in sizes]
    samples = [replace(sample(4, choice, 9.0, 0.0), scenario=s) for s in places for choice in (DEFAULT, RING, TREE)]
    rules = {name: RuleSet.always(name, SizeBasis.MESSAGE, RING) for name in names}
    gate = tuple(Decision(s, RING, Verdict.KEPT, (), "why", Interval(1.5, 1.3, 1.7)) for s in places)
    page = build_page(Findings(HERE, rules, Summary(decisions=gate), samples), Path())
    assert len(page.encode()) < 600_000
    assert page.count("<td class=") >= len(places)


def test_the_headline_says_what_where_and_how_much_of_it() -> None:
    where = "2 nodes x 2 ranks per node"
    text = f"{where}: allreduce 2.00x (at least 1.90) at 4 KiB; 1 of 2 shapes and sizes changed"
    assert headline(findings()) == text
    shares = {Scenario("allreduce", 2, 2, 4096): 0.1}
    assert headline(replace(findings(), shares=shares)).endswith("; expected 5.0% of the application's time")
    assert headline(findings(gate=[])).startswith("The library's own choice stands everywhere for allreduce")


def test_the_first_screen_says_what_to_do_next() -> None:
    found, place = findings(), Path("/a place")
    [(label, line)] = next_steps(found, place)
    assert label == "use it"
    assert line.startswith('eval "$(')
    assert line.endswith("colltune env '/a place')\"")
    live = replace(found, only_live=["gather"])
    assert "run --via live '/a place' -- mpiexec" in next_steps(live, place)[0][1]
    late = {**GATE[1], "verdict": "not tried"}
    step = "tune again with --budget 12m: it also tries 1 shape and size that looked faster"
    assert next_steps(findings(gate=[GATE[0], late], **BUDGET), place)[1] == ("next", step)
    nothing = {"allreduce": RuleSet.always("allreduce", SizeBasis.MESSAGE)}
    spent = {"reasons": {"allreduce": StopReason.BUDGET_SPENT}}
    for gate, changes, words in (
        ([], {"interrupted": True}, "the same command with --resume"),
        ([GATE[1]], {}, "nothing to do"),
        ([GATE[1]], spent, "tune again with a larger --budget"),
    ):
        [(_, step)] = next_steps(replace(findings(gate=gate, **changes), rule_sets=nothing), place)
        assert words in step
    page = build_page(found, place)
    assert page.index("colltune env &#39;/a place&#39;") < page.index("<main")


def test_the_line_to_copy_works_as_printed_from_any_directory(tuned: Path, tmp_path: Path) -> None:
    [(_, line), *_] = next_steps(load_findings(tuned), tuned)
    done = run_to_end(["bash", "-c", f"cd / && {line}"])
    assert "command not found" not in done.stderr, done.stderr
    assert "no tuning" not in done.stderr


def test_the_collective_that_gains_the_most_is_drawn_first() -> None:
    shapes = {"allreduce": 1.2, "bcast": 2.4}
    gate = tuple(
        Decision(Scenario(name, 2, 2, 4), RING, Verdict.KEPT, (), "", Interval(gain, gain, gain))
        for name, gain in shapes.items()
    )
    samples = [replace(sample(4, DEFAULT, 9.0, 0.0), scenario=Scenario(name, 2, 2, 4)) for name in (*shapes, "barrier")]
    rules = {name: RuleSet.always(name, SizeBasis.MESSAGE, RING) for name in (*shapes, "barrier")}
    found = Findings(HERE, rules, Summary(decisions=gate), samples)
    assert [panel.collective for panel in panels(found)] == ["bcast", "allreduce", "barrier"]


@pytest.mark.parametrize("size", [1, 3, 20, 4096, 5000])
@pytest.mark.parametrize("time_us", [0.7, 2.1, 2100.0])
def test_the_axes_of_a_single_call_have_ticks_whatever_its_size_and_time(size: int, time_us: float) -> None:
    chart = panel_charts(panels(findings(sample(size, DEFAULT, time_us, 0.0, group=1))))[0]
    axes = [layer["encoding"][axis]["axis"] for layer in chart["vconcat"][0]["layer"] for axis in "xy"]
    assert all(axis["values"] for axis in axes)


def test_times_of_the_proof_count_where_both_sides_were_compared_in_it() -> None:
    points = curve_points(findings(proofs=[*proof(4096, 40.0, 16.0), sample(8192, TREE, 1.0, 9.0)]))
    small, large = (points[Scenario("allreduce", 2, 2, size)] for size in (4096, 8192))
    assert (small.default.time_s, small.tuned.time_s) == (pytest.approx(40e-6), pytest.approx(16e-6))
    assert small.default.low_s < small.default.time_s < small.default.high_s
    assert large.tuned == large.default
    assert large.tuned.time_s == pytest.approx(30e-6)


def test_times_side_by_side_agree_with_the_speed_up_where_launches_differ_by_more_than_choices() -> None:
    """The middle launch of the default is not the middle launch of the rule."""
    times_us = {2: (10.0, 9.0), 3: (30.0, 15.0), 4: (32.0, 31.0)}
    proofs = [replace(one, launch=launch) for launch, sides in times_us.items() for one in proof(4096, *sides)]
    alone = sample(4096, DEFAULT, 500.0, 9.0, launch=5)
    point = curve_points(findings(proofs=[*proofs, alone]))[Scenario("allreduce", 2, 2, 4096)]
    speedup = (10.0 / 9.0 * 30.0 / 15.0 * 32.0 / 31.0) ** (1 / 3)
    assert point.default.time_s / point.tuned.time_s == pytest.approx(speedup)
    assert point.default.high_s < 100e-6


def test_a_default_that_was_timed_as_a_candidate_is_the_default() -> None:
    found = replace(findings(*SAMPLES[1:2], sample(4096, TREE, 25.0, 0.0)), default_equivalent=lambda _scenario: TREE)
    [cell] = found.cells("allreduce")
    assert cell.default == TREE
    assert curve_points(found)[cell.scenario].default is not None


def test_an_application_is_told_its_profile_and_what_each_region_saves_it() -> None:
    shares = {Scenario("allreduce", 2, 2, 4096): 0.1, Scenario("allreduce", 2, 2, 8192): 0.2}
    page = build_page(replace(findings(), shares=shares), Path())
    rows = " ".join(page.split("The application</h3>")[1].split("</table>")[0].split())
    assert '<td>allreduce</td><td class="n">30.0%</td><td class="n">5.00%</td>' in rows
    assert '<td class="n">5.00%</td></tr>' in page.split("The application</h3>")[0]
    assert "The application</h3>" not in build_page(findings(), Path())


@pytest.mark.parametrize(("suffix", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_the_summary_is_a_picture_for_a_ticket(tuned: Path, suffix: str, begin: bytes) -> None:
    colltune("report", str(tuned), "--picture", str(tuned / f"summary.{suffix}"), code=0)
    picture = (tuned / f"summary.{suffix}").read_bytes()
    assert picture.startswith(begin)
    if suffix == "svg":
        assert b"allreduce 2.00x (at least 1.90)" in picture
    colltune("report", str(tuned), "--picture", str(tuned / "summary.gif"), code=2)


def test_names_in_a_tuning_cannot_leave_the_page() -> None:
    evil = "</script><script>alert(1)</script>"
    assert evil not in build_page(findings(reasons={"allreduce": evil}), Path())


def test_an_unwritable_page_is_said_in_one_line(tuned: Path) -> None:
    shown = colltune("report", str(tuned), "--out", str(tuned / "absent" / "r.html"), code=2).stderr
    assert "Give another file by --out" in shown
    assert shown.count("\n") == 1
