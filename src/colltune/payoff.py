"""Tuning for one application: what is at stake, what it saved, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from colltune.catalog import Catalogue
from colltune.core.collective_names import parse_collectives
from colltune.core.errors import InputError
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.core.units import format_duration
from colltune.learn.stakes import Stakes
from colltune.profile.application import Profile, stakes
from colltune.store.tuning import Tuning
from colltune.tune_contract import TuneOptions, TuneResult, gate_summary
from colltune.verify.application import Checked
from colltune.verify.gate import GateResult, Verdict

# A launch, a handful of points and their proof take about this long; nothing less than that is worth to be begun.
_LEAST_S = 10.0


@dataclass(frozen=True, slots=True)
class Payoff:
    """Core-seconds: what the proven decisions are expected to save over the run time to come, and what tuning took."""

    saving_core_s: float
    saving_low_core_s: float
    cost_core_s: float
    runtime_s: float

    def text(self) -> str:
        low, mean, cost = (_hours(value) for value in (self.saving_low_core_s, self.saving_core_s, self.cost_core_s))
        if self.saving_core_s <= 0.0:
            return f"Saves nothing over {format_duration(self.runtime_s)} of this application; cost {cost} core-hours."
        return (
            f"Saves about {mean} core-hours (at least {low}) over {format_duration(self.runtime_s)} of this "
            f"application; cost {cost}."
        )


def stakes_of(profile: Profile, runtime_s: float, catalogue: Catalogue) -> Stakes:
    """The scenarios of ``profile`` that can be tuned, with what is at stake at each.

    Raises InputError where measuring could not save what it takes: there is nothing to do then, and that is fine.
    """
    tunable = {name for name in COLLECTIVES if catalogue.collective(name).nothing_to_tune is None}
    share = {scenario: part for scenario, part in stakes(profile).items() if scenario.collective in tunable}
    found = Stakes(share, runtime_s, _call_s(profile))
    if found.budget_s() < _LEAST_S:
        raise InputError(
            f"tuning cannot pay: of {format_duration(runtime_s)} the collectives that can be tuned take "
            f"{format_duration(sum(share.values()) * runtime_s)}, of which about "
            f"{format_duration(found.budget_s())} might be saved",
            "Give the time of all runs to come by --runtime, if there are more; else leave the MPI as it is",
        )
    return found


def for_application(options: TuneOptions, profile: Profile, runtime_s: float, catalogue: Catalogue) -> TuneOptions:
    """``options`` for what ``profile`` calls: its collectives (of those named, if any), within what can be saved."""
    at_stake = stakes_of(profile, runtime_s, catalogue)
    called = {scenario.collective for scenario in at_stake.share}
    wanted = sorted(called & set(parse_collectives(options.collectives) or called))
    if not wanted:
        raise InputError(
            f"the application does not spend time in {', '.join(options.collectives)}",
            f"It does in {', '.join(called)}",
        )
    return replace(options, collectives=wanted, budget_s=min(options.budget_s, at_stake.budget_s()), stakes=at_stake)


def after_check(result: TuneResult, checked: Checked, tuning: Tuning, took_s: float) -> TuneResult:
    """``result`` with what the application was better without refused. ``tuning``: what is left of it in force."""
    gate = [
        replace(one, verdict=Verdict.REFUSED, reason=checked.withdrawn[one.scenario.collective])
        if one.verdict is Verdict.KEPT and one.scenario.collective in checked.withdrawn
        else one
        for one in result.gate
    ]
    summary = {name: value for name, value in result.tuning.summary.items() if not name.startswith("speedup")}
    summary |= gate_summary(gate)
    summary["total_s"] += took_s
    summary["application"] = [
        {"rules": sorted(one.side), "default_s": one.default_s, "tuned_s": one.tuned_s, "failure": one.failure}
        for one in checked.rounds
    ]
    return replace(result, tuning=replace(tuning, summary=summary), gate=gate)


def payoff_of(result: TuneResult, at_stake: Stakes, ranks: int) -> Payoff:
    """What ``result`` is worth to the application."""
    kept = [one for one in result.gate if one.verdict is Verdict.KEPT]
    cost_s = float(result.tuning.summary["total_s"])
    saved = _saved(kept, at_stake, {one.scenario: one.speedup for one in kept})
    low = _saved(kept, at_stake, {one.scenario: one.low for one in kept})
    return Payoff(saved * ranks, low * ranks, cost_s * ranks, at_stake.runtime_s)


def _saved(kept: Sequence[GateResult], at_stake: Stakes, speedup: Mapping[Scenario, float]) -> float:
    return sum(at_stake.saving_s(one.scenario, 1.0 - 1.0 / speedup[one.scenario]) for one in kept)


def _call_s(profile: Profile) -> dict[Scenario, float]:
    found: dict[Scenario, float] = {}
    for one, scenarios in profile.tunable():
        for scenario in scenarios:
            found[scenario] = max(found.get(scenario, 0.0), one.own_time_s / max(one.rank_calls, 1))
    return found


def _hours(core_s: float) -> str:
    return f"{core_s / 3600.0:.3g}"
