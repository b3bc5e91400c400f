"""Why a tuning changes nothing, or meets the user's own settings: said in a line, for nobody sees it from outside."""

from collections.abc import Collection, Mapping, Sequence

from colltune.core.sample import DEFAULT
from colltune.core.units import format_count
from colltune.deploy.applied import AppliedTuning
from colltune.machine.compile import PRELOAD
from colltune.mpi.launch_line import job_shape
from colltune.mpi.mpich_settings import overriding


def settings_line(environ: Mapping[str, str], collectives: Collection[str], others: Mapping[str, str | None]) -> str:
    """What of ``environ`` goes before the rules of ``collectives``, or gives way; "" for nothing.

    ``others``: what a variable is set to instead, None where it is left out.
    """
    parts = []
    if before := overriding(environ, collectives):
        parts.append(f"your own {', '.join(before)} goes before every rule; unset it to use them")
    changed = {name: value for name, value in others.items() if environ.get(name, value) != value}
    # A library that is preloaded stands beside the user's own.
    if replaced := sorted(name for name, value in changed.items() if value is not None and name != PRELOAD):
        parts.append(f"your own {', '.join(replaced)} gives way to the tuning's")
    if dropped := sorted(name for name, value in changed.items() if value is None):
        parts.append(f"your own {', '.join(dropped)} is left out while this measures")
    return "; ".join(parts)


def silent_rules(force: AppliedTuning, command: Sequence[str] = ()) -> str:
    """Why no rule of ``force`` decides a call of the whole job of ``command``; "" where some does, or nobody knows."""
    rule_sets = [rules for rules in force.tuning.rule_sets.values() if rules.departs]
    if not rule_sets:
        return f"{force.directory} has no rules: the library decides every call as before"
    shape = job_shape(force.around, command)
    if shape is None:
        return ""
    nodes, ppn, ranks = shape
    meets = any(
        rule.choice != DEFAULT and region.ppn.holds(ppn) and region.ranks.holds(ranks)
        for rules in rule_sets
        for region, rule in rules.regions()
    )
    if meets:
        return ""
    tuned_on = ", ".join(f"{n} x {p}" for n, p in force.tuning.tuned_in)
    where = f"{format_count(ranks, 'rank')} on {format_count(nodes, 'node')}"
    return f"{force.directory} has no rule for {where}: it was tuned on {tuned_on} (nodes x ranks per node)"


def effect_lines(force: AppliedTuning, command: Sequence[str], obstacles: Sequence[str]) -> list[str]:
    """What the user should know before the job starts, a line each.

    ``obstacles``: what is known to keep the files from deciding.
    """
    non_default = [name for name, rules in force.tuning.rule_sets.items() if rules.departs]
    of_mpich = non_default if force.tuning.environment.mpi == "mpich" else ()
    warnings = [*obstacles, settings_line(force.around, of_mpich, force.variables)]
    how = force.tuning.summary.predicted_text
    notes = [f"the rules of {force.directory} are {how}" if how else "", silent_rules(force, command)]
    return [*filter(None, notes), *(f"warning: {text}" for text in warnings if text)]
