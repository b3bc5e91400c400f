"""What no file of a library can say is not counted among what a tuning changed."""

from dataclasses import replace

from colltune.core.choice import DEFAULT, Choice
from colltune.core.interval import Interval
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.summary import Summary
from colltune.report.findings import Findings
from colltune.report.headline import changed_text, headline

HERE = Environment("openmpi", "5.0.11", "0" * 64, "a machine", 2, 2, "single", {})
RING = Choice("ring")
PROVEN = tuple(
    Decision(Scenario("allreduce", 2, 2, size), RING, Verdict.KEPT, (1.5,) * 4, "", Interval(1.5, 1.4, 1.6), launches=4)
    for size in (64, 128)
)


def found(*rules: Rule) -> Findings:
    return Findings(HERE, {"allreduce": RuleSet("allreduce", SizeBasis.MESSAGE, rules)}, Summary(decisions=PROVEN), [])


def test_decisions_that_the_rules_say_are_counted() -> None:
    all_ = found(Rule(None, None, None, RING))
    assert changed_text(all_) == "2 of 2 shapes and sizes changed"


def test_a_decision_that_no_rule_says_is_told_apart() -> None:
    half = found(Rule(None, None, 64, RING), Rule(None, None, None, DEFAULT))
    assert changed_text(half) == "1 of 2 shapes and sizes changed (1 more by --via live alone)"
    assert "allreduce 1.50x" in headline(half)


def test_a_tuning_without_any_rule_does_not_begin_with_a_gain() -> None:
    none = found(Rule(None, None, None, DEFAULT))
    assert headline(none) == (
        "allreduce: proven faster, in calls that no file of this library can tell apart; run --via live does"
    )


def test_what_the_live_selector_alone_decides_counts() -> None:
    live = replace(found(Rule(None, None, None, DEFAULT)), only_live=["allreduce"])
    assert changed_text(live) == "2 of 2 shapes and sizes changed"
