"""Why a call gets the algorithm that it gets: the rule, the default, and the measurements around it."""

from collections.abc import Iterator, Sequence

from colltune.core.judged_together import judged_regions
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Choice, Sample, Scenario, Status, grouped
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration, format_size, format_times
from colltune.report.curves import Latency
from colltune.report.diff_text import format_region
from colltune.report.ending import folded
from colltune.report.findings import ChoiceTiming, Findings, timings_of
from colltune.report.tables import standing_text

# Rows per measured scenario: with two scenarios and the rest of the page, what a terminal of 40 lines shows.
_MOST_CHOICES = 7
_LABEL = 10
_BELOW = " " * (_LABEL + 2)  # before what goes on beneath a text
WIDTH = 110


def format_explanation(findings: Findings, scenario: Scenario, runs: str, default_runs: str, width: int = WIDTH) -> str:
    """One screen of text about a call, in lines of at most ``width`` characters; words and numbers are not broken.

    ``runs``, ``default_runs``: what the library runs with the tuning and without it, in its own names.
    """
    rules, here = findings.rule_sets[scenario.collective], findings.environment
    rule = rules.rule_for(scenario)
    region = format_region(rules.region_of(rule), scenario.collective, rules.basis)
    parts = [
        _line("rule", f"{rules.rules.index(rule) + 1} of {len(rules.rules)}: {region}: {rule.choice}"),
        _line("runs", runs),
        _line("default", default_runs),
    ]
    notes = {"not calm": findings.summary.disturbed_text, "rules are": findings.summary.predicted_text}
    parts += [_line(label, text) for label, text in notes.items() if text]
    parts += [_line("runs say", standing_text(trial)) for trial in findings.applications if trial.covers(scenario)]
    nearest = nearest_scenarios(scenario, findings.samples)
    if not nearest:
        parts.append(_line("measured", _nothing_measured(scenario, findings.samples)))
    size = "" if scenario.collective == "barrier" else f" of {format_size(scenario.size_bytes)}"
    where = f"{format_count(scenario.nodes, 'node')} x {format_count(scenario.ppn, 'rank')}"
    of_mpi = f"{here.mpi} {here.mpi_version}, thread level {here.thread_level}"
    call = f"{scenario.collective}{size} on {where}; {of_mpi}"
    lines = [line for part in [call, *parts] for line in folded(part, width, rest=_BELOW)]
    for measured in nearest:
        lines += ["", *_measured_lines(measured, rule.choice, findings, width)]
        lines += [
            line
            for text in _proof_lines(measured, findings)
            for line in folded(_line("proof", text), width, rest=_BELOW)
        ]
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
    nearest = [size for size in (below, above) if size is not None]
    return [Scenario(scenario.collective, scenario.nodes, scenario.ppn, size) for size in nearest]


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


def _measured_lines(scenario: Scenario, chosen: Choice, findings: Findings, width: int) -> Iterator[str]:
    """The default, what is chosen now and the fastest others, by their medians."""
    here = [sample for sample in findings.samples if sample.scenario == scenario]
    timings = timings_of(here)
    medians_s = {timing.choice: timing.median_s for timing in timings if timing.median_s is not None}
    default = findings.default_of(scenario, medians_s)
    first = [choice for choice in medians_s if choice in (default, chosen)]
    shown = set(first + [choice for choice in medians_s if choice not in first][: _MOST_CHOICES - len(first)])
    at = "" if scenario.collective == "barrier" else f" at {format_size(scenario.size_bytes)}"
    table = TextTable((f"measured{at}", "median>", "95% interval>", "repetitions>", "default/it>", ""))
    default_s = medians_s.get(default)
    for timing in timings:
        if timing.choice in shown and (median_s := timing.median_s) is not None:
            ratio = f"{default_s / median_s:.2f}" if default_s is not None else "?"
            mark = "<- chosen" if timing.choice == chosen else ""
            mark = mark or ("<- default" if timing.choice == default != DEFAULT else "")
            times = format_duration(median_s), _interval(timing), str(timing.repetitions)
            table.add_row(str(timing.choice), *times, ratio, mark)
    for choice, status in sorted({(str(s.choice), s.status) for s in here if s.status is not Status.OK}):
        table.add_row(choice, status.value, "", "", "", "")
    yield from (f"  {line}" for line in table.lines(width - 2))
    if len(medians_s) > len(shown):
        yield f"  and {format_count(len(medians_s) - len(shown), 'slower one')}"
    if chosen not in (DEFAULT, default) and default_s is not None and default_s < medians_s.get(chosen, 0.0):
        yield from folded(
            f"  These are times of the campaign alone, one after another in few launches: there {chosen} was slower."
            " Its rule rests on the comparisons side by side that follow.",
            width,
            rest=_BELOW,
        )


def _interval(timing: ChoiceTiming) -> str:
    if timing.low_s is None or timing.high_s is None:
        return "too few to tell"
    return f"{format_duration(timing.low_s)} to {format_duration(timing.high_s)}"


def _proof_lines(scenario: Scenario, findings: Findings) -> Iterator[str]:
    """The decision of the proof on ``scenario``, its ratios, and those of its region."""
    if not findings.summary.gated:
        yield "none: this was tuned without a proof (--gate off)"
        return
    regions = [region for region in judged_regions(findings.summary.decisions) if scenario in region.scenarios]
    if not regions:
        yield "none was tried: no choice had been measured to be enough faster than the default"
    for region in regions:
        decision = next(decision for decision in region.decisions if decision.scenario == scenario)
        ratios = sorted(decision.ratios)
        yield f"{decision.choice} {decision.verdict}: {decision.explanation}"
        if decision.verdict is Verdict.PROVISIONAL:
            yield "it is left out unless --provisional is given; `colltune tune ... --resume` proves it"
        if decision.region is not None:
            yield (
                f"its region, {region.place}: {region.speedup} times as fast on average, at least"
                f" {region.speedup.low:.2f}; {format_count(region.comparisons, 'comparison')} in {region.compared}"
                f" of its {format_count(len(region.decisions), 'scenario')}"
            )
        if region.by_heap:
            yield f"its calls pay for page faults: {region.by_heap}"
        if ratios:
            compared = "fresh comparison" if decision.verdict is not Verdict.PROVISIONAL else "comparison"
            listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            yield f"default/{decision.choice} in {format_count(len(ratios), compared)}: {listed}"
        elif decision.region is not None:
            yield "it was not compared at this size and shape itself: its region speaks for it"
        times = _proof_times(scenario, decision.choice, findings)
        if times:
            yield times


def _proof_times(scenario: Scenario, choice: Choice, findings: Findings) -> str:
    """What both sides took in the launches that timed both, and the ratio of these times."""
    of_call = [proof for proof in findings.proofs if proof.scenario == scenario and proof.status is Status.OK]
    timed = grouped(of_call, lambda proof: proof.choice)
    default = findings.default_of(scenario, timed)
    compared = Latency.side_by_side(timed.get(default, ()), timed.get(choice, ()))
    if compared is None:
        return ""
    times = format_times(compared[0].time_s, compared[1].time_s)
    launches = {proof.launch for proof in timed[default]} & {proof.launch for proof in timed[choice]}
    return f"{default} -> {choice}: {times}; means over {format_count(len(launches), 'launch', 'launches')}"
