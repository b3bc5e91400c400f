"""Why a call gets the algorithm that it gets: the rule, the default, and the measurements around it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from colltune.core.choice import DEFAULT, Choice
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.units import format_duration, format_size
from colltune.report.interval import median_interval
from colltune.report.regions import format_region

# Rows per measured scenario: with two scenarios and the rest of the page, what a terminal of 40 lines shows.
_MOST_CHOICES = 7
_LABEL = 10


@dataclass(frozen=True)
class Explanation:
    """What is known about one call.

    ``runs``, ``default_runs``: what the library runs with the tuning and without it, in its own names. ``samples``:
    of the campaign; ``proofs``: of the gate. ``gate``: the gate's entries in the summary of the tuning, None where the
    gate was off.
    """

    scenario: Scenario
    environment: Environment
    rule_set: RuleSet
    runs: str
    default_runs: str
    samples: Sequence[Sample]
    proofs: Sequence[Sample]
    gate: Sequence[Mapping[str, Any]] | None


def format_explanation(explanation: Explanation) -> str:
    """One screenful of text."""
    scenario, rules = explanation.scenario, explanation.rule_set
    rule = rules.rule_for(scenario)
    region = format_region(rules.region_of(rule), scenario.collective, rules.basis)
    here = explanation.environment
    lines = [
        f"{_format_call(scenario)}; {here.mpi} {here.mpi_version}, thread level {here.thread_level}",
        _line("rule", f"{rules.rules.index(rule) + 1} of {len(rules.rules)}: {region}: {rule.choice}"),
        _line("runs", explanation.runs),
        _line("default", explanation.default_runs),
    ]
    nearest = nearest_scenarios(scenario, explanation.samples)
    if not nearest:
        return "\n".join([*lines, _line("measured", _nothing_measured(scenario, explanation.samples))])
    for measured in nearest:
        lines += ["", *_measured_lines(measured, rule.choice, explanation.samples)]
        lines += [_line("proof", text) for text in _proof_lines(measured, explanation)]
    return "\n".join(lines)


def nearest_scenarios(scenario: Scenario, samples: Sequence[Sample]) -> list[Scenario]:
    """The measured scenarios of the same shape: this one, else the next smaller and the next larger size."""
    sizes = {
        s.scenario.size_bytes
        for s in samples
        if (s.scenario.collective, s.scenario.nodes, s.scenario.ppn)
        == (scenario.collective, scenario.nodes, scenario.ppn)
    }
    if scenario.size_bytes in sizes:
        return [scenario]
    below = max((size for size in sizes if size < scenario.size_bytes), default=None)
    above = min((size for size in sizes if size > scenario.size_bytes), default=None)
    found = [size for size in (below, above) if size is not None]
    return [Scenario(scenario.collective, scenario.nodes, scenario.ppn, size) for size in found]


def _format_call(scenario: Scenario) -> str:
    nodes = "1 node" if scenario.nodes == 1 else f"{scenario.nodes} nodes"
    ppn = "1 rank" if scenario.ppn == 1 else f"{scenario.ppn} ranks"
    size = "" if scenario.collective == "barrier" else f" of {format_size(scenario.size_bytes)}"
    return f"{scenario.collective}{size} on {nodes} x {ppn}"


def _line(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{text}"


def _nothing_measured(scenario: Scenario, samples: Sequence[Sample]) -> str:
    shapes = sorted(
        {(s.scenario.nodes, s.scenario.ppn) for s in samples if s.scenario.collective == scenario.collective}
    )
    if not shapes:
        return f"nothing of {scenario.collective}"
    shown = ", ".join(f"{nodes} x {ppn}" for nodes, ppn in shapes)
    return f"nothing on {scenario.nodes} x {scenario.ppn}; measured were {shown} (nodes x ranks per node)"


def _measured_lines(scenario: Scenario, chosen: Choice, samples: Sequence[Sample]) -> Iterator[str]:
    """The default, what is chosen now and the fastest others, by their medians over all repetitions."""
    times: defaultdict[Choice, list[float]] = defaultdict(list)
    failed: Counter[tuple[Choice, Status]] = Counter()
    for sample in samples:
        if sample.scenario == scenario:
            if sample.status is Status.OK:
                times[sample.choice] += sample.times_s
            else:
                failed[sample.choice, sample.status] += 1
    ranked = sorted(times, key=lambda choice: median(times[choice]))
    first = [choice for choice in ranked if choice in (DEFAULT, chosen)]
    shown = set(first + [choice for choice in ranked if choice not in first][: _MOST_CHOICES - len(first)])
    at = "" if scenario.collective == "barrier" else f" at {format_size(scenario.size_bytes)}"
    yield f"  {'measured' + at:<44}{'median':>10}{'95% interval':>24}{'repetitions':>13}{'default/it':>12}"
    default_s = median(times[DEFAULT]) if DEFAULT in times else None
    for choice in (c for c in ranked if c in shown):
        mark = " <- chosen" if choice == chosen else ""
        middle = median(times[choice])
        ratio = f"{default_s / middle:.2f}" if default_s is not None else "?"
        yield (
            f"    {choice!s:<42}{format_duration(middle):>10}{_interval(times[choice]):>24}"
            f"{len(times[choice]):>13}{ratio:>12}{mark}"
        )
    if len(ranked) > len(shown):
        yield f"    and {len(ranked) - len(shown)} that were slower than those"
    for (choice, status), _ in sorted(failed.items(), key=lambda item: str(item[0])):
        yield f"    {choice!s:<42}{status.value:>10}"


def _interval(times_s: Sequence[float]) -> str:
    bounds = median_interval(times_s)
    return "too few to tell" if bounds is None else f"{format_duration(bounds[0])} to {format_duration(bounds[1])}"


def _proof_lines(scenario: Scenario, explanation: Explanation) -> Iterator[str]:
    """What the gate found for ``scenario``."""
    if explanation.gate is None:
        yield "none: the gate was off when this was tuned"
        return
    wanted = [scenario.collective, scenario.nodes, scenario.ppn, scenario.size_bytes]
    entries = [entry for entry in explanation.gate if list(entry["scenario"]) == wanted]
    if not entries:
        yield "none was tried: no choice had been measured to be enough faster than the default"
    for entry in entries:
        ratios = sorted(entry["ratios"])
        yield f"{entry['choice']} {entry['verdict']}: {entry['reason']}"
        if entry["verdict"] == "provisional":
            yield "it is left out unless --provisional is given; `colltune tune ... --resume` proves it"
        if ratios:
            group = "fresh group" if entry["verdict"] != "provisional" else "group"
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            yield f"default/{entry['choice']} per {group}: {shown}"
        times = _proof_times(scenario, entry["choice"], explanation.proofs)
        if times:
            yield times


def _proof_times(scenario: Scenario, choice: str, proofs: Sequence[Sample]) -> str:
    """The medians over the fresh groups of both sides."""
    medians: defaultdict[str, list[float]] = defaultdict(list)
    for sample in proofs:
        if sample.scenario == scenario and sample.status is Status.OK:
            medians[str(sample.choice)].append(sample.time_s)
    sides = [(name, medians[name]) for name in (str(DEFAULT), choice) if medians[name]]
    return "; ".join(
        f"{name} {format_duration(median(some))} ({format_duration(min(some))} to {format_duration(max(some))})"
        f" over {len(some)} {'group' if len(some) == 1 else 'groups'}"
        for name, some in sides
    )
