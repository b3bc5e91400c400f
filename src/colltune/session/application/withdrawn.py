"""Leaves out of a run the rules that earlier runs of the same program found slower in it.

A rule is proven by its calls alone, and may slow what follows them. `run --measure` times both, `tune --check` times
whole runs, and both remember.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from colltune.core.decision_table import DecisionTable
from colltune.core.interval import SpeedVerdict
from colltune.core.rules import Region, RuleSet, Span
from colltune.core.sample import DEFAULT, Choice, Environment
from colltune.core.switchback import Standing
from colltune.deploy.applied import AppliedTuning
from colltune.deploy.explored import kept_rules, size_class
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, with_fewer_rules
from colltune.mpi.application import Application
from colltune.store.applications import application_runs


def withdrawn_from(directory: Path, environment: Environment, application: Application) -> dict[str, Standing | str]:
    """What the history of ``directory`` says that ``application`` is better without, by its name for people.

    That is one choice in calls of one kind, or a collective, of which the latest comparison of whole runs counts.
    """
    runs = [
        run.proven_alone
        for run in application_runs(directory)
        if run.record.application.is_same(application)
        and replace(run.record.environment, nodes=environment.nodes, ppn=environment.ppn) == environment
    ]
    if not runs:
        return {}
    from colltune.prove.in_run.in_application import standings

    checked = {name: reason for run in reversed(runs) for name, reason in run.record.checked.items()}
    return {
        **{f"{rule.choice} at {rule.place}": rule for rule in standings(runs) if rule.verdict is SpeedVerdict.SLOWER},
        **{f"every rule of {name}": name for name, reason in checked.items() if reason},
    }


def without_slower_rules(
    force: AppliedTuning, withdrawn: Mapping[str, Standing | str], listener: Callable[[str], None]
) -> AppliedTuning:
    """``force``, which is by way of the live selector, without ``withdrawn``; ``listener`` hears what is left out.

    Raises ColltuneError where the rules that are left cannot be written.
    """
    rule_sets = dict(force.tuning.rule_sets)
    for name, slower in withdrawn.items():
        collective = slower if isinstance(slower, str) else slower.collective
        rules = rule_sets.get(collective)
        if rules is None or not rules.departs:
            continue
        left = RuleSet.always(collective, rules.basis) if isinstance(slower, str) else _without(rules, slower)
        if left != rules:
            rule_sets[collective] = left
            listener(f"{name} is left out: earlier runs of this program were slower with it")
    if rule_sets == force.tuning.rule_sets or LIVE_VARIABLE not in force.variables:
        return force
    name = next(name for name in force.tuning.files if name.endswith(LIVE_FILE))
    data = with_fewer_rules(force.tuning.files[name].decode("ascii"), rule_sets.values())
    live = {LIVE_VARIABLE: str(kept_rules(data, force.environment))}
    return replace(force, variables={**force.variables, **live}, exported={**force.exported, **live})


def _without(rules: RuleSet, slower: Standing) -> RuleSet:
    """``rules`` with the default in the calls of ``slower``, of which sizes of one power of two are one."""
    if rules.basis is not slower.basis:
        return rules
    ranks, size = slower.nodes * slower.ppn, size_class(slower.size_most.bit_length())
    region = Region(Span(slower.ppn, slower.ppn), Span(ranks, ranks), size)
    table = DecisionTable.of(rules)

    def left(here: Choice, inside: Choice) -> Choice:
        return DEFAULT if inside == slower.choice else here

    return table.combine(table.restrict(region), left).rule_set()
