"""What the job gains: on all its nodes and ranks first, then on fewer of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from colltune.core.interval import Interval
from colltune.core.proven import Decision, Verdict, mean_of_kept
from colltune.core.sample import Scenario, grouped
from colltune.core.space import weights_in_job
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration, format_size, format_times
from colltune.judge.wording import at_least
from colltune.report.curves import CurvePoint, curve_points
from colltune.report.findings import Findings, collective_gains

Shape = tuple[int, int]
HEAD = ("collective", "from", "to", "speed-up", "at least", "one call, by default -> tuned")


@dataclass(frozen=True)
class ShapeGain:
    """What ``collective`` gains on ``shape`` (nodes, ranks per node), by ``decisions`` in the order of their sizes.

    ``sizes``: how many message sizes are known there. ``example``: the call whose own speed-up is nearest to the mean,
    None where none was timed both ways.
    """

    collective: str
    shape: Shape
    decisions: tuple[Decision, ...]
    gain: Interval
    sizes: int
    example: CurvePoint | None

    @property
    def place(self) -> tuple[str, int, int]:
        """Collective, nodes and ranks per node."""
        return self.collective, *self.shape

    @property
    def span(self) -> tuple[int, int]:
        """The least and the largest message size in bytes that changed."""
        return self.decisions[0].scenario.size_bytes, self.decisions[-1].scenario.size_bytes

    @property
    def example_s(self) -> tuple[float, float] | None:
        """What the example takes by default and tuned, in seconds."""
        if self.example is None or self.example.default is None or self.example.tuned is None:
            return None
        return self.example.default.time_s, self.example.tuned.time_s

    @property
    def row(self) -> tuple[str, ...]:
        """Its cells under ``HEAD``."""
        low, high = self.span
        sizes = ("", "") if self.collective == "barrier" else (format_size(low), format_size(high))
        text = ""
        if self.example is not None and self.example_s is not None:
            at = "" if self.collective == "barrier" else f"{format_size(self.example.scenario.size_bytes)}: "
            text = at + format_times(*self.example_s)
        return self.collective, *sizes, f"{self.gain.estimate:.2f}x", f"{self.gain.low:.2f}x", text


def format_calls(count: int) -> str:
    """How many scenarios, as users call them: ``"8 shapes and sizes"``."""
    return format_count(count, "shape and size", "shapes and sizes")


def job_shape(findings: Findings) -> Shape:
    """Nodes and ranks per node of the job that was tuned last.

    Where it was not measured as a whole, as with recorded times, the known shape with the most ranks.
    """
    whole = _tuned_on(findings)
    known = {(scenario.nodes, scenario.ppn) for scenario in known_scenarios(findings)}
    return whole if whole in known else max(known, key=lambda shape: (shape[0] * shape[1], shape), default=whole)


def _tuned_on(findings: Findings) -> Shape:
    here = findings.environment
    return findings.summary.job or (here.nodes, here.ppn)


def shape_text(shape: Shape) -> str:
    """``"8 nodes x 2 ranks per node"``."""
    nodes, ppn = shape
    return (
        f"{nodes} nodes x {format_count(ppn, 'rank')} per node"
        if nodes > 1
        else f"1 node x {format_count(ppn, 'rank')}"
    )


def shape_gains(findings: Findings) -> list[ShapeGain]:
    """Of each shape and collective with a proven decision: the job's own shape first, then those with most ranks."""
    kept = sorted(findings.summary.having(Verdict.KEPT), key=lambda decision: decision.scenario)
    by_place = grouped(kept, lambda d: ((d.scenario.nodes, d.scenario.ppn), d.scenario.collective))
    points, known = curve_points(findings), known_scenarios(findings)
    gains = []
    for (shape, name), decisions in by_place.items():
        gain = mean_of_kept(decisions)
        if gain is None:
            continue
        sizes = {s.size_bytes for s in known if s.collective == name and (s.nodes, s.ppn) == shape}
        timed = [points[decision.scenario] for decision in decisions if decision.scenario in points]
        gains.append(ShapeGain(name, shape, tuple(decisions), gain, len(sizes), _nearest(timed, gain.estimate)))
    whole = job_shape(findings)
    return sorted(
        gains, key=lambda gain: (gain.shape != whole, -gain.shape[0] * gain.shape[1], gain.shape, -gain.gain.estimate)
    )


def _nearest(points: Sequence[CurvePoint], mean: float) -> CurvePoint | None:
    """The call that was timed both ways and whose speed-up is nearest to ``mean``."""
    ratios = {
        point: point.default.time_s / point.tuned.time_s
        for point in points
        if point.default is not None and point.tuned is not None and min(point.default.time_s, point.tuned.time_s) > 0.0
    }
    return min(ratios, key=lambda point: abs(math.log(ratios[point] / mean)), default=None)


def known_scenarios(findings: Findings) -> set[Scenario]:
    """The scenarios that were measured or decided."""
    return {*(sample.scenario for sample in findings.samples), *(d.scenario for d in findings.summary.decisions)}


def _shares(findings: Findings) -> dict[Scenario, float]:
    """What share of what the job calls each scenario is: by the profile's times, else by the weights of a job."""
    shares, least = findings.shares, 1e-12
    if not shares:
        known = known_scenarios(findings)
        weight = weights_in_job(*(findings.summary.job or job_shape(findings)))
        sizes = {(scenario.collective, scenario.size_bytes) for scenario in known}
        # What is not known is open; counts of nodes between those of the grid weigh something too.
        shares, least = {scenario: weight(scenario) / len(sizes) for scenario in known}, 1.0
    total = max(sum(shares.values()), least)
    return {scenario: share / total for scenario, share in shares.items()}


def shares_of_calls(findings: Findings) -> tuple[float, float, float]:
    """Of what the job calls, what is decided, refused and open.

    Decided is what is proven to be faster, and where the default stands since nothing looked faster.
    """
    shares, undecided = _shares(findings), known_scenarios(findings)
    for decision in findings.summary.decisions:
        undecided.discard(decision.scenario)
    parts = _by_verdict(findings, lambda decision: shares.get(decision.scenario, 0.0))
    left = sum(shares.get(scenario, 0.0) for scenario in undecided)
    decided, refused = parts.get(Verdict.KEPT, 0.0) + left, parts.get(Verdict.REFUSED, 0.0)
    return decided, refused, max(1.0 - decided - refused, 0.0)


def speedups_of_calls(findings: Findings) -> tuple[float, float]:
    """The speed-up over all that the job calls, and what it may become once what was not tried is.

    Of what looked faster and was not tried, as much is taken to hold as did of what was tried.
    """
    shares = _shares(findings)
    cells = {cell.scenario: cell for name in findings.rule_sets for cell in findings.cells(name)}

    def looked(decision: Decision) -> float:
        """The log speed-up that the campaign saw; 0 where it did not time both."""
        cell = cells.get(decision.scenario)
        times = {} if cell is None else {timing.choice: timing.median_s for timing in cell.timings}
        default_s, time_s = (times.get(cell.default) if cell else None), times.get(decision.choice)
        return max(math.log(default_s / time_s), 0.0) if default_s and time_s else 0.0

    weights = _by_verdict(findings, lambda decision: shares.get(decision.scenario, 0.0))
    proven = _by_verdict(findings, lambda d: shares.get(d.scenario, 0.0) * math.log(d.speedup.estimate))
    more = _by_verdict(findings, lambda d: shares.get(d.scenario, 0.0) * looked(d))
    kept, refused = weights.get(Verdict.KEPT, 0.0), weights.get(Verdict.REFUSED, 0.0)
    now, hold = proven.get(Verdict.KEPT, 0.0), kept / (kept + refused) if kept else 0.0
    return math.exp(now), math.exp(now + hold * more.get(Verdict.NOT_TRIED, 0.0))


def _by_verdict(findings: Findings, value: Callable[[Decision], float]) -> dict[Verdict, float]:
    """The sum of ``value`` over the decisions with each verdict."""
    groups = grouped(findings.summary.decisions, lambda decision: decision.verdict)
    return {verdict: sum(map(value, some)) for verdict, some in groups.items()}


def gains_table(gains: Sequence[ShapeGain]) -> TextTable:
    """A row for each of ``gains``, which are of one shape."""
    headers = [f"{name}>" if place in (1, 2, 3, 4) else name for place, name in enumerate(HEAD)]
    return TextTable(headers, rows=[gain.row for gain in gains])


def other_shapes_text(gains: Sequence[ShapeGain], whole: Shape, most: int) -> str:
    """What the shapes beside ``whole`` gain, ``most`` by name: ``"5 smaller shapes: bcast 1.17x (at least 1.10)"``."""
    others = [gain for gain in gains if gain.shape != whole]
    if not others:
        return ""
    shapes = {gain.shape for gain in others}
    size = "smaller" if all(nodes * ppn <= whole[0] * whole[1] for nodes, ppn in shapes) else "other"
    ranked = collective_gains(decision for gain in others for decision in gain.decisions)
    parts = [f"{name} {at_least(gain)}" for name, gain in list(ranked.items())[:most]]
    parts += [format_count(len(ranked) - most, "more collective")] if len(ranked) > most else []
    return f"{format_count(len(shapes), f'{size} shape')}: {', '.join(parts)}"


def cost_text(findings: Findings) -> str:
    """``"473 measurements; 4 min 57 s with the proof, 1.32 core-hours"``."""
    summary, (nodes, ppn) = findings.summary, _tuned_on(findings)
    hours = summary.total_s * nodes * ppn / 3600.0
    priced = f"{hours:,.0f}" if hours >= 100.0 else f"{hours:.3g}"
    proof = " with the proof" if summary.gated else ""
    took = f"{format_duration(summary.total_s)}{proof}, {priced} core-hours"
    return f"{format_count(summary.samples, 'measurement')}; {took}"
