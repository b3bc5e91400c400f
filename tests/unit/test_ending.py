"""The end of a tuning in a dozen lines, what counts in it, and what is said of the heap."""

import math
import platform
import re
from dataclasses import replace

import pytest
from test_report import BUDGET, GATE, HERE, RING, RULES, SAMPLES, findings

from colltune.cli import display
from colltune.cli.display import Display
from colltune.core.heap import page_faults_of, setting_text
from colltune.core.interval import Interval, SpeedVerdict
from colltune.core.proven import Budget, Decision, Summary, TimeShare, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import (
    DEFAULT,
    Choice,
    Environment,
    Heaps,
    Sample,
    Scenario,
    SizeBasis,
    Status,
    log_speedup,
    parse_choice,
)
from colltune.judge.verdict import compare
from colltune.machine.compile import source_directory
from colltune.report.ending import MOST_LINES, WIDTH, changed_text, ending, headline
from colltune.report.findings import Findings
from colltune.report.job import shares_of_calls, speedups_of_calls
from colltune.report.tables import comparisons_table
from commands import run_to_end
from compiled import program

_LONG = parse_choice("k_reduce_scatter_allgather(k=16,single_phase_recv=1)")
_NAMES = ["reduce_scatter_block", "allgatherv", "allreduce", "alltoall"]
_VERDICTS = [Verdict.KEPT, Verdict.PROVISIONAL, Verdict.REFUSED, Verdict.NOT_TRIED]


def test_it_says_what_was_gained_where_how_sure_what_it_took_and_what_would_be_enough() -> None:
    late = {**GATE[1], "scenario": ["allreduce", 2, 2, 16384], "verdict": "not tried", "reason": "no time"}
    text = "\n".join(ending(findings(gate=[*GATE, late], **BUDGET)))
    words = " ".join(text.split())
    assert words.startswith("this job 2 nodes x 2 ranks per node: 1 collective faster collective from to")
    assert "allreduce 4 KiB 4 KiB 2.00x 1.90x 4 KiB: 20 us -> 10 us, 2.00x" in words
    assert "1 of 3 shapes and sizes changed, with 99.5% confidence; the least bound is 1.90x" in words
    assert "not tried  1 shape and size: --budget 12m would be enough for all" in text
    assert "50% outside the collectives" in words
    assert "1 core-hours" in words
    assert ending(findings(gate=[]))[0].startswith("this job   The library's own choice stands everywhere")


def test_what_share_of_the_calls_is_decided_counts_the_whole_job_most() -> None:
    """Of one size: the job's own shape is proven, its halves refused; of the rest a part was measured."""
    whole, half, node = (Scenario("allreduce", nodes, 2, 64) for nodes in (8, 4, 1))
    made = [
        Decision(whole, RING, Verdict.KEPT, (), "why", Interval(2.0, 1.9, 2.1)),
        Decision(half, RING, Verdict.REFUSED, (), "why"),
    ]
    summary = Summary(samples=3, total_s=90.0, decisions=tuple(made), job=(8, 2))
    samples = [Sample(one, DEFAULT, Status.OK, (1e-5,)) for one in (whole, half, node)]
    found = Findings(HERE, {"allreduce": RULES}, summary, samples)
    third = 0.4 / 3  # of the halves, one node, and one rank of each node
    assert shares_of_calls(found) == pytest.approx((0.5 + third, third, 0.1 + third))
    assert "its calls  63% of what the job calls is decided, 13% refused, 23% open" in ending(found)
    profiled = replace(found, shares={whole: 0.1, half: 0.2, Scenario("bcast", 8, 2, 8): 0.1})
    assert shares_of_calls(profiled) == pytest.approx((0.25, 0.5, 0.25))
    every = [Sample(Scenario("allreduce", n, p, 64), DEFAULT, Status.OK, (1e-5,)) for n in range(1, 9) for p in (1, 2)]
    assert sum(shares_of_calls(replace(found, samples=every))) == pytest.approx(1.0)  # 5, 6 and 7 nodes too


def test_what_more_time_may_bring_is_said_as_far_as_what_was_tried_did_hold() -> None:
    """Half of what was tried, by the weights of a job, was proven; what was not tried looked twice as fast."""
    proven, refused, untried = (Scenario("allreduce", 8, 2, size) for size in (64, 128, 256))
    verdicts = {proven: Verdict.KEPT, refused: Verdict.REFUSED, untried: Verdict.NOT_TRIED}
    made = [
        Decision(one, RING, verdict, (), "", Interval(1.5, 1.4, 1.6) if one == proven else None)
        for one, verdict in verdicts.items()
    ]
    budget = Budget(60.0, 9.0, 700.0)
    summary = Summary(samples=6, total_s=90.0, decisions=tuple(made), job=(8, 2), budget=budget)
    samples = [
        Sample(one, choice, Status.OK, (time_s,))
        for one in verdicts
        for choice, time_s in ((DEFAULT, 2e-5), (RING, 1e-5))
    ]
    found = Findings(HERE, {"allreduce": RULES}, summary, samples)
    sixth = 0.5 / 3
    now, later = speedups_of_calls(found)
    assert now == pytest.approx(1.5**sixth)
    assert later == pytest.approx(now * 2.0 ** (sixth / 2))
    words = " ".join(" ".join(ending(found)).split())
    assert "12m would be enough for all, and may bring 1.13 in place of 1.07 over all of its calls" in words
    assert "may bring" not in " ".join(ending(replace(found, samples=samples[:2])))


@pytest.mark.parametrize("width", [WIDTH, 60])
def test_however_much_there_is_to_say_it_fits_and_no_number_is_cut(width: int) -> None:
    decisions = tuple(
        Decision(Scenario(name, 128, 112, 1 << power), _LONG, verdict, (), "why", Interval(12.34 + at, 10.56, 14.78))
        for name in _NAMES
        for at, verdict in enumerate(_VERDICTS)
        for power in range(4 * at, 4 * at + 3)
    )
    share = TimeShare(launches=12, wall_s=1234.0, inside_collectives_s=1000.0)
    summary = Summary(samples=123456, share=share, total_s=98765.0, decisions=decisions, reproducible=("reduce",))
    found = Findings(HERE, dict.fromkeys(_NAMES, RULES), summary, SAMPLES)
    wide, lines = (ending(found, 400), ending(found, width))
    if width == WIDTH:
        assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= width
    told = re.findall(r"\d+\.\d+", " ".join(lines))
    assert "98.8" not in told
    assert all(number in re.findall(r"\d+\.\d+", " ".join(wide)) for number in told)


def test_the_table_of_the_job_follows_all_that_is_said_of_it() -> None:
    kept = [
        Decision(Scenario(name, 2, 2, 4096), _LONG, Verdict.KEPT, (), "why", Interval(2.0, 1.9, 2.1)) for name in _NAMES
    ]
    summary = Summary(samples=3, total_s=90.0, decisions=tuple(kept))
    words = " ".join(" ".join(ending(Findings(HERE, dict.fromkeys(_NAMES, RULES), summary, SAMPLES), 60)).split())
    assert re.search(r"4 collectives faster; \d more in the report collective from to", words)


def test_phases_and_launches_are_named_with_the_budget_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now_s[0])
    with Display(ends_s=160.0) as shown:
        listener = shown.listener()
        listener.stage("proving")
        now_s[0] += 20.0
        listener.proof([Decision(Scenario("bcast", 2, 2, 64), RING, Verdict.OPEN, (1.2, 1.3), "")])
        now_s[0] += 50.0
        listener.stage("replaying")
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "proving ... (1 min 0 s of the budget left)",
        "  launch 1: 2 comparisons, 0 of 1 region proven, 40 s of the budget left",
        "replaying ... (the budget is spent)",
    ]


ON_OPENMPI = Environment("openmpi", "5.0.11", "0" * 64, "a machine", 2, 2, "single", {})
PROVEN = tuple(
    Decision(Scenario("allreduce", 2, 2, size), RING, Verdict.KEPT, (1.5,) * 4, "", Interval(1.5, 1.4, 1.6), launches=4)
    for size in (64, 128)
)


def found(*rules: Rule) -> Findings:
    rule_set = RuleSet("allreduce", SizeBasis.MESSAGE, rules)
    return Findings(ON_OPENMPI, {"allreduce": rule_set}, Summary(decisions=PROVEN), [])


def test_decisions_that_the_rules_or_the_live_selector_alone_say_are_counted() -> None:
    none = found(Rule(None, None, None, DEFAULT))
    for one in (found(Rule(None, None, None, RING)), replace(none, only_live=["allreduce"])):
        assert changed_text(one) == "2 of 2 shapes and sizes changed"
    half = found(Rule(None, None, 64, RING), Rule(None, None, None, DEFAULT))
    assert changed_text(half) == "1 of 2 shapes and sizes changed (1 more by --via live alone)"
    assert "allreduce 1.50x" in headline(half)
    # A tuning without any rule does not begin with a gain.
    said = "allreduce: proven faster, in calls that no file of this library can tell apart; run --via live does"
    assert headline(none) == said


SCATTER = Scenario("reduce_scatter", 1, 2, 1 << 18)
PAYS = Sample(SCATTER, DEFAULT, Status.OK, (210e-6,) * 3, faults=96.0, kept_s=26e-6)


def test_what_pays_is_named_with_both_times_and_the_setting() -> None:
    text = page_faults_of([PAYS, replace(PAYS, scenario=Scenario("bcast", 1, 2, 8), faults=0.0, kept_s=None)])
    assert "reduce_scatter of 256 KiB on 1 x 2 (96 page faults in a call: 210 us, 26 us" in text
    assert text.endswith(setting_text())
    assert "bcast" not in text
    # What hardly pays or is not the default is not named.
    for sample in (replace(PAYS, kept_s=205e-6), replace(PAYS, choice=Choice("ring"))):
        assert page_faults_of([sample]) == ""


def test_a_choice_counts_by_the_state_in_which_it_gains_less() -> None:
    chosen = Sample(SCATTER, Choice("ring"), Status.OK, (30e-6,) * 3)
    assert log_speedup(PAYS, chosen) == pytest.approx(math.log(26 / 30))
    assert Heaps.of(PAYS, chosen) == pytest.approx((math.log(210 / 30), math.log(26 / 30)))
    assert Heaps.of(replace(PAYS, kept_s=None), chosen) is None
    assert log_speedup(replace(PAYS, kept_s=None), chosen) == pytest.approx(math.log(210 / 30))


def test_verify_says_slower_of_a_rule_that_is_slower_in_either_state() -> None:
    choice, chosen_s = Choice("ring"), [30e-6 + 1e-8 * n for n in range(8)]
    gives_back = compare(SCATTER, choice, [210e-6 + 1e-8 * n for n in range(8)], chosen_s)
    keeps = compare(SCATTER, choice, [26e-6 + 1e-8 * n for n in range(8)], chosen_s)
    assert gives_back.verdict is SpeedVerdict.FASTER
    both = replace(gives_back, kept=keeps)
    assert both.verdict is SpeedVerdict.SLOWER
    assert replace(keeps, kept=gives_back).verdict is SpeedVerdict.SLOWER
    _, heading, row = comparisons_table([both]).lines(80)
    assert heading.endswith("ring")
    assert {"7.00", "0.87"} <= set(row.split())
    assert "heap keeps" not in "".join(comparisons_table([gives_back]).lines(160))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other C library has these thresholds")
def test_what_was_freed_before_does_not_decide_whether_calls_meet_page_faults() -> None:
    heap = source_directory("heap")
    done = run_to_end([program("cc", "heap_of.c", heap / "heap.c", f"-I{heap}")], env={}, check=True)
    large, faults = map(int, done.stdout.split())
    assert large == 46 * 4096 - 16  # the block that was freed, with its head
    assert faults < 5  # of ten calls
