"""Calibrates a prediction: a few dozen pairs, measured on the real job within seconds, correct what other clusters say.

What `colltune predict --calibrate` does before it decides.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from colltune.bench.contract import Bench
from colltune.bench.workbench import Workbench, check_collectives
from colltune.core.choice import DEFAULT, Choice
from colltune.core.sample import Sample, Status
from colltune.core.scenario import COLLECTIVES, Scenario
from colltune.core.space import Point, Space
from colltune.core.summary import Guess
from colltune.learn.noise import cautious_sd
from colltune.learn.scenario_columns import Floats
from colltune.measure.contract import Effort, Launch, TimeIsUpError
from colltune.predict.calibration import MOST_PROBABLE, Calibration, Proposal
from colltune.predict.cost import Pair
from colltune.predict.guesses import judged
from colltune.predict.model import TimesModel
from colltune.session.predict import PredictResult, result_of

# What a calibration may take: pairs of all collectives together, and seconds from the start of the launch.
MOST_PAIRS = 40
MOST_S = 10.0
_EFFORT = Effort(relative_width=0.05, box_s=0.02, fewest=10, most=100)
_ROUND_TRIP_S = 2e-3
# The share of the time after which nothing new is measured, but the defaults again.
_NEW_SHARE = 0.8
# Deviation of a log time that has no effect.
_SAYS_NOTHING = 10.0
# Sizes and shapes of the grid on which the loss is expected: more only make the computation slow.
_SIZES, _SHAPES = 7, 8
# Beyond this many times the measured nodes nothing is handed over.
_FURTHEST = 2.0


@dataclass(frozen=True)
class Calibrated:
    """``known``: by collective. ``samples``: what was measured. ``took_s``: from the start of the launch to its end."""

    known: Mapping[str, Calibration]
    samples: Sequence[Sample]
    took_s: float


def calibrate(
    bench: Bench,
    model: TimesModel,
    spaces: Mapping[str, Space],
    *,
    seed: int = 0,
    pairs: int = MOST_PAIRS,
    budget_s: float = MOST_S,
    note: Callable[[str], None] = lambda _text: None,
) -> Calibrated:
    """Measures up to ``pairs`` pairs of ``spaces`` on the bench's job, within ``budget_s``. Raises LaunchError."""
    known = {name: _opened(bench, model, space, seed) for name, space in spaces.items() if space.scenarios}
    source = bench.launch(seed)
    began_s = bench.now_s()
    samples: list[Sample] = []
    asked: dict[str, Proposal | None] = {}
    sure: set[Pair] = set()
    try:
        source.until_s = began_s + budget_s
        source.start()
        while len(samples) < pairs:
            left_s = began_s + _NEW_SHARE * budget_s - bench.now_s()
            name, proposal = _best(known, asked, left_s, pairs - len(samples))
            if proposal is None or left_s <= 0.0:
                break
            del asked[name]
            found = _measured(source, proposal.pairs)
            odd = [one for one in found if _is_odd(known[name], one)]
            if odd:
                # What disturbs a call only ever adds time, so of two looks the shorter one counts.
                again = _measured(source, [(one.scenario, one.choice) for one in odd])
                found = _shorter([*found, *again])
            samples += found
            _tell(known[name], proposal, found)
        _look_again(bench, source, known, samples, sure)
    except TimeIsUpError:
        note("the time was over before all was measured twice; what was measured once says nothing of the default")
        source.kill()
    finally:
        source.close()
    _doubt(bench, known, sure)
    return Calibrated(known, samples, bench.now_s() - began_s)


def _opened(bench: Bench, model: TimesModel, space: Space, seed: int) -> Calibration:
    pairs = _grid(bench, space)
    defaults = {scenario: bench.baseline(scenario) for scenario in dict.fromkeys(scenario for scenario, _ in pairs)}
    return model.calibration(space.collective, pairs, seed, defaults)


def _best(
    known: Mapping[str, Calibration], asked: dict[str, Proposal | None], left_s: float, most: int
) -> tuple[str, Proposal | None]:
    """The collective of which a measurement is worth most, and the measurement.

    ``asked``: proposals of before, of the collectives of which nothing was told since.
    """
    for name, own in known.items():
        if name not in asked or most < 2:
            asked[name] = own.ask(_cost_s, left_s, most)
    worth = {name: proposal for name, proposal in asked.items() if proposal is not None}
    name = max(worth, key=lambda one: worth[one].value, default="")
    return name, worth.get(name)


def _cost_s(time_s: Floats) -> Floats:
    return np.array([_ROUND_TRIP_S + _EFFORT.expected_cost_s(float(value)) for value in time_s])


def _measured(source: Launch, pairs: Sequence[Pair]) -> list[Sample]:
    """Pairs of one scenario, side by side."""
    point = Point(pairs[0][0], tuple(choice for _, choice in pairs))
    return [sample for _, samples in source.measure([point], _EFFORT) for sample in samples]


def _is_odd(known: Calibration, sample: Sample) -> bool:
    good = sample.status is Status.OK and sample.times_s
    return bool(good) and known.excess((sample.scenario, sample.choice), sample.time_s) > 0.0


def _shorter(samples: Sequence[Sample]) -> list[Sample]:
    """The fastest sample of each choice; a failed one where there is no other."""
    found: dict[Choice, Sample] = {}
    for sample in sorted(samples, key=lambda one: one.time_s if one.times_s else np.inf):
        found.setdefault(sample.choice, sample)
    return list(found.values())


def _tell(known: Calibration, proposal: Proposal, samples: Sequence[Sample]) -> None:
    """A pair that could not be measured is never asked for again."""
    good = [sample for sample in samples if sample.status is Status.OK and sample.times_s]
    for sample in good:
        pair = (sample.scenario, sample.choice)
        known.tell(pair, sample.time_s, cautious_sd(sample) + known.excess(pair, sample.time_s))
    told = {(sample.scenario, sample.choice) for sample in good}
    known.leave_out([pair for pair in proposal.pairs if pair not in told])


def _look_again(
    bench: Bench, source: Launch, known: Mapping[str, Calibration], samples: Sequence[Sample], sure: set[Pair]
) -> None:
    """Measures the defaults again, at another moment: one that was disturbed makes every other choice look fast.

    Of two times the shorter one counts; how far they are apart is how little both say. Adds to ``sure`` what was looked
    at. Raises TimeIsUpError.
    """
    for sample in samples:
        pair = (sample.scenario, sample.choice)
        own = known[sample.scenario.collective]
        if sample.choice == bench.baseline(sample.scenario) and pair in own.told:
            found = [one for one in _measured(source, [pair]) if one.status is Status.OK and one.times_s]
            if found:
                shorter = min(sample, found[0], key=lambda one: one.time_s)
                apart = abs(float(np.log(sample.time_s / found[0].time_s)))
                own.correct(pair, shorter.time_s, cautious_sd(shorter) + apart)
                sure.add(pair)


def _doubt(bench: Bench, known: Mapping[str, Calibration], sure: Collection[Pair]) -> None:
    """A default that nobody looked at twice says nothing."""
    for own in known.values():
        for pair, time_s in own.told.items():
            if pair[1] == bench.baseline(pair[0]) and pair not in sure:
                own.correct(pair, time_s, _SAYS_NOTHING)


def _grid(bench: Bench, space: Space) -> list[Pair]:
    """Pairs at some sizes and shapes, from the least to the greatest; the default in the form of its algorithm."""
    scenarios = space.scenarios
    sizes = _spread(sorted({scenario.size_bytes for scenario in scenarios}), _SIZES)
    shapes = _spread(sorted({(s.ranks, s.nodes, s.ppn) for s in scenarios}), _SHAPES)
    return [
        (scenario, choice)
        for scenario in scenarios
        if scenario.size_bytes in sizes and (scenario.ranks, scenario.nodes, scenario.ppn) in shapes
        for choice in _arms(bench, scenario)
    ]


def _arms(bench: Bench, scenario: Scenario) -> list[Choice]:
    baseline = bench.baseline(scenario)
    return [baseline, *(choice for choice in bench.legal(scenario) if choice not in (baseline, DEFAULT))]


def _spread(values: Sequence[object], most: int) -> set[object]:
    places = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int))
    return {values[place] for place in places}


def decided(bench: Bench, calibrated: Calibrated, space: Space, risk: float = MOST_PROBABLE) -> list[Guess]:
    """Of each scenario the choice that is expected to be fastest, or the default.

    The default stays where a loss of more than LOSS is more probable than ``risk``, where nothing is expected to be
    gained, and on more than twice the nodes that were measured.
    """
    known = calibrated.known[space.collective]
    reached = _FURTHEST * max((scenario.nodes for scenario, _ in known.told), default=0)
    groups = []
    for scenario in space.scenarios:
        baseline, *others = _arms(bench, scenario)
        groups.append((scenario, baseline, others if scenario.nodes <= reached else []))
    reasons = ["nothing near it was measured, or there is no other choice"] * len(groups)
    return judged(known, groups, reasons, risk)


def predict_calibrated(
    bench: Workbench,
    job: Workbench,
    model: TimesModel,
    largest_bytes: int,
    collectives: Sequence[str] = (),
    note: Callable[[str], None] = lambda _text: None,
    risk: float = MOST_PROBABLE,
) -> PredictResult:
    """Rules for the workbench ``bench``, after a few measurements on ``job``. Raises InputError and LaunchError."""
    known = [name for name in COLLECTIVES if model.knows(name) and name in bench.catalogue.entries]
    names, nothing = check_collectives(collectives or known, bench.catalogue)
    for name, reason in nothing.items():
        note(f"{name}: {reason}")
    calibrated = calibrate(job, model, {name: job.space(name, 1, largest_bytes) for name in names}, note=note)
    spaces, count = (bench.space(name, 1, largest_bytes) for name in calibrated.known), len(calibrated.samples)
    reason = f"predicted, from {count} measured pairs"
    found = result_of(bench, spaces, lambda space: decided(bench, calibrated, space, risk), reason)
    tuning = replace(found.tuning, summary=replace(found.tuning.summary, samples=count))
    return replace(found, tuning=tuning, measured=count, measuring_s=calibrated.took_s)
