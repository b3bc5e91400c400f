"""Why a call gets the algorithm that it gets: the rule, the default, and the measurements around it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from colltune.core.judged_together import JudgedRegion, judged_regions
from colltune.core.medians import pair_median
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status, grouped
from colltune.core.switchback import Standing
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration, format_size, format_times
from colltune.judge.spread import median_interval
from colltune.report.curves import Latency
from colltune.report.diff_text import format_region
from colltune.report.ending import folded
from colltune.report.tables import standing_text

# Rows per measured scenario: with two scenarios and the rest of the page, what a terminal of 40 lines shows.
_MOST_CHOICES = 7
_LABEL = 10
_BELOW = " " * (_LABEL + 2)  # before what goes on beneath a text
WIDTH = 110


@dataclass(frozen=True)
class Explanation:
    """What is known about one call.

    ``runs``, ``default_runs``: what the library runs with the tuning and without it, in its own names. ``samples``:
    of the campaign; ``proofs``: of the gate. ``decisions``: of the gate, None where it was off.
    ``default_equivalent``: the choice that runs what the default runs, None where none is known. ``applications``: what
    its runs say. ``disturbed_text``: the sentence on other programs; ``predicted_text``: on rules without measurements.
    """

    scenario: Scenario
    environment: Environment
    rule_set: RuleSet
    runs: str
    default_runs: str
    samples: Sequence[Sample]
    proofs: Sequence[Sample]
    decisions: Sequence[Decision] | None
    default_equivalent: Callable[[Scenario], Choice | None] = lambda _scenario: None
    applications: Sequence[Standing] = ()
    disturbed_text: str = ""
    predicted_text: str = ""


def format_explanation(explanation: Explanation, width: int = WIDTH) -> str:
    """One screen of text, in lines of at most ``width`` characters; words and numbers are not broken."""
    scenario, rules = explanation.scenario, explanation.rule_set
    rule = rules.rule_for(scenario)
    region = format_region(rules.region_of(rule), scenario.collective, rules.basis)
    here = explanation.environment
    parts = [
        _line("rule", f"{rules.rules.index(rule) + 1} of {len(rules.rules)}: {region}: {rule.choice}"),
        _line("runs", explanation.runs),
        _line("default", explanation.default_runs),
    ]
    notes = {"not calm": explanation.disturbed_text, "rules are": explanation.predicted_text}
    parts += [_line(label, text) for label, text in notes.items() if text]
    parts += [_line("runs say", standing_text(trial)) for trial in explanation.applications if trial.covers(scenario)]
    nearest = nearest_scenarios(scenario, explanation.samples)
    if not nearest:
        parts.append(_line("measured", _nothing_measured(scenario, explanation.samples)))
    call = f"{_format_call(scenario)}; {here.mpi} {here.mpi_version}, thread level {here.thread_level}"
    lines = [line for part in [call, *parts] for line in folded(part, width, rest=_BELOW)]
    for measured in nearest:
        lines += ["", *_measured_lines(measured, rule.choice, explanation, width)]
        lines += [
            line
            for text in _proof_lines(measured, explanation)
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


def _format_call(scenario: Scenario) -> str:
    nodes, ppn = format_count(scenario.nodes, "node"), format_count(scenario.ppn, "rank")
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


def _measured_lines(scenario: Scenario, chosen: Choice, explanation: Explanation, width: int) -> Iterator[str]:
    """The default, what is chosen now and the fastest others, by their medians."""
    times: defaultdict[Choice, list[float]] = defaultdict(list)
    timed: defaultdict[Choice, list[Sample]] = defaultdict(list)
    failed: Counter[tuple[Choice, Status]] = Counter()
    for sample in explanation.samples:
        if sample.scenario == scenario:
            if sample.status is Status.OK:
                times[sample.choice] += sample.times_s
                timed[sample.choice].append(sample)
            else:
                failed[sample.choice, sample.status] += 1
    medians_s = {choice: pair_median(some) for choice, some in timed.items()}
    ranked = sorted(medians_s, key=lambda choice: medians_s[choice])
    default = _default_among(medians_s, explanation.default_equivalent(scenario))
    first = [choice for choice in ranked if choice in (default, chosen)]
    shown = set(first + [choice for choice in ranked if choice not in first][: _MOST_CHOICES - len(first)])
    at = "" if scenario.collective == "barrier" else f" at {format_size(scenario.size_bytes)}"
    table = TextTable((f"measured{at}", "median>", "95% interval>", "repetitions>", "default/it>", ""))
    default_s = medians_s.get(default)
    for choice in (c for c in ranked if c in shown):
        middle = medians_s[choice]
        ratio = f"{default_s / middle:.2f}" if default_s is not None else "?"
        mark = "<- chosen" if choice == chosen else "<- default" if choice == default != DEFAULT else ""
        table.add_row(
            str(choice), format_duration(middle), _interval(times[choice]), str(len(times[choice])), ratio, mark
        )
    for (choice, status), _ in sorted(failed.items(), key=lambda item: str(item[0])):
        table.add_row(str(choice), status.value, "", "", "", "")
    yield from (f"  {line}" for line in table.lines(width - 2))
    if len(ranked) > len(shown):
        yield f"  and {format_count(len(ranked) - len(shown), 'slower one')}"
    if chosen not in (DEFAULT, default) and default_s is not None and chosen in times and default_s < medians_s[chosen]:
        yield from folded(
            f"  These are times of the campaign alone, one after another in few launches: there {chosen} was slower."
            " Its rule rests on the comparisons side by side that follow.",
            width,
            rest=_BELOW,
        )


def _default_among(timed: Collection[Choice], equivalent: Choice | None) -> Choice:
    """The choice that stands for the default: itself where it was timed, else its equivalent."""
    return equivalent if DEFAULT not in timed and equivalent is not None and equivalent in timed else DEFAULT


def _interval(times_s: Sequence[float]) -> str:
    bounds = median_interval(times_s)
    return "too few to tell" if bounds is None else f"{format_duration(bounds[0])} to {format_duration(bounds[1])}"


def _proof_lines(scenario: Scenario, explanation: Explanation) -> Iterator[str]:
    """The decision of the proof on ``scenario``, its ratios, and those of its region."""
    if explanation.decisions is None:
        yield "none: this was tuned without a proof (--gate off)"
        return
    regions = [region for region in judged_regions(explanation.decisions) if scenario in region.scenarios]
    if not regions:
        yield "none was tried: no choice had been measured to be enough faster than the default"
    for region in regions:
        decision = next(decision for decision in region.decisions if decision.scenario == scenario)
        ratios = sorted(decision.ratios)
        yield f"{decision.choice} {decision.verdict}: {decision.explanation}"
        if decision.verdict is Verdict.PROVISIONAL:
            yield "it is left out unless --provisional is given; `colltune tune ... --resume` proves it"
        if decision.region is not None:
            yield _region_text(region)
        if region.by_heap:
            yield f"its calls pay for page faults: {region.by_heap}"
        if ratios:
            compared = "fresh comparison" if decision.verdict is not Verdict.PROVISIONAL else "comparison"
            listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            yield f"default/{decision.choice} in {format_count(len(ratios), compared)}: {listed}"
        elif decision.region is not None:
            yield "it was not compared at this size and shape itself: its region speaks for it"
        times = _proof_times(scenario, decision.choice, explanation)
        if times:
            yield times


def _region_text(region: JudgedRegion) -> str:
    return (
        f"its region, {region.place}: {region.speedup} times as fast on average, at least {region.speedup.low:.2f};"
        f" {format_count(region.comparisons, 'comparison')} in {region.compared} of its"
        f" {format_count(len(region.decisions), 'scenario')}"
    )


def _proof_times(scenario: Scenario, choice: Choice, explanation: Explanation) -> str:
    """What both sides took in the launches that timed both, and the ratio of these times."""
    of_call = [proof for proof in explanation.proofs if proof.scenario == scenario and proof.status is Status.OK]
    timed = grouped(of_call, lambda proof: proof.choice)
    default = _default_among(timed.keys(), explanation.default_equivalent(scenario))
    compared = Latency.side_by_side(timed.get(default, ()), timed.get(choice, ()))
    if compared is None:
        return ""
    times = format_times(compared[0].time_s, compared[1].time_s)
    launches = {proof.launch for proof in timed[default]} & {proof.launch for proof in timed[choice]}
    return f"{default} -> {choice}: {times}; means over {format_count(len(launches), 'launch', 'launches')}"
