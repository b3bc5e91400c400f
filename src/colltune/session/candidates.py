"""The conformance check of what the proof left open. What `colltune verify --results --candidates` does."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colltune.bench.contract import LibraryBench
from colltune.bench.workbench import MachineOptions, open_tuned_workbench
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.scenario import NONBLOCKING, Scenario
from colltune.core.space import Space
from colltune.deploy.explored import Candidates, save_candidates
from colltune.deploy.live_selector import by_selector_alone
from colltune.distill.minimal_rules import distill_proven
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis
from colltune.prove.replay.on_workbench import departing, make_safe
from colltune.store.tuning import Tuning, load_deployable

_OPEN = frozenset({Verdict.NOT_TRIED, Verdict.PROVISIONAL})


@dataclass(frozen=True)
class Replayed:
    """``rules``: those of the candidates that passed. ``notes``: what did not, a line each."""

    candidates: Candidates
    rules: Mapping[str, RuleSet]
    notes: tuple[str, ...]


def replay_candidates(directory: Path, machine: MachineOptions) -> Replayed:
    """Runs every collective in every form under what the proof left open, and keeps what gives right results.

    It is kept in the directory, for `run --explore`. Raises ColltuneError; InputError where nothing was left open.
    """
    tuning = load_deployable(directory)
    open_choices = require_open(directory, tuning)
    bench = open_tuned_workbench(machine, tuning.environment, os.environ)
    rules = {name: _rules(bench, name, choices) for name, choices in open_choices.items()}

    def alone(rule_sets: Mapping[str, RuleSet]) -> Tuning:
        """The candidates by themselves, each as the rule for all the calls that it may be tried in."""
        return by_selector_alone(bench, tuning, rule_sets, os.environ)

    with tempfile.TemporaryDirectory(dir=directory) as workplace:
        safe, notes = make_safe(bench, alone(rules), Path(workplace), alone)
    passed = {name: rules[name] for name in rules.keys() & departing(safe.rule_sets)}
    files = LiveEmitter(bench.catalogue, bench.settings).emit(list(passed.values()))
    return Replayed(save_candidates(directory, {LIVE_FILE: files[LIVE_FILE]}), passed, tuple(notes))


def require_open(directory: Path, tuning: Tuning) -> dict[str, dict[Scenario, Choice]]:
    """As ``left_open``. Raises InputError where a run of an application can try nothing, with what can be done then."""
    found = left_open(tuning)
    if found:
        return found
    beside = sorted({one.scenario.collective for one in tuning.summary.decisions if _may_pay(one)})
    if beside:
        raise InputError(
            f"the proof of {directory} left open only calls that do not block ({', '.join(beside)}), which --explore"
            " cannot time",
            f"Prove them: colltune tune {' '.join(beside)} --out {directory} --resume, with a larger --budget",
        )
    raise InputError(f"the proof of {directory} left nothing open", "Use it with: colltune run")


def left_open(tuning: Tuning) -> dict[str, dict[Scenario, Choice]]:
    """By collective, the choice of each scenario that may be faster than the default, and was not decided.

    Scenarios of other verdicts keep the default there: so rules do not reach over them. Calls that do not block are
    left out: what a program sees of them is not in the call, so `run --explore` could not time them.
    """
    found: defaultdict[str, dict[Scenario, Choice]] = defaultdict(dict)
    for one in (one for one in tuning.summary.decisions if one.scenario.collective not in NONBLOCKING):
        found[one.scenario.collective][one.scenario] = one.choice if _may_pay(one) else DEFAULT
    return {name: choices for name, choices in found.items() if set(choices.values()) - {DEFAULT}}


def _may_pay(decision: Decision) -> bool:
    return decision.verdict in _OPEN and (decision.speedup > 1.0 or not decision.has_evidence)


def _rules(bench: LibraryBench, collective: str, choices: Mapping[Scenario, Choice]) -> RuleSet:
    legal = {scenario: choice if choice in bench.legal(scenario) else DEFAULT for scenario, choice in choices.items()}
    space = Space(collective, tuple(legal), bench.legal)
    return distill_proven(legal, space, live_basis(bench.catalogue, collective))
