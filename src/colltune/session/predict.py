"""Rules without any measurement: a model of other clusters' times, and the same emitters as after tuning.

What `colltune predict` and the Python API do. The model says how fast each choice is expected to be, and how
likely it loses against the default.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.errors import InputError
from colltune.core.hardware import Fabric
from colltune.core.proven import Guess, PredictedSizes, StopReason, Summary
from colltune.core.rules import RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, NONBLOCKING, Environment, Scenario, grouped, parse_collectives
from colltune.core.space import Space, message_sizes, shapes
from colltune.deploy.applied import put_in_force
from colltune.distill.minimal_rules import distill_proven
from colltune.machine.hardware_features import read_features
from colltune.machine.record import Machine, RecordedMachine, RunningMachine
from colltune.predict.guesses import MOST_PROBABLE, judged
from colltune.predict.model import Group, TimesModel, load_model
from colltune.session.arguments import LARGEST_BYTES
from colltune.store.tuning import MANIFEST, Tuning, load_tuning, save_tuning

# Beyond even odds a rule is no better than a coin.
_MOST_RISK = 0.5
# Beside an MPI: for jobs of so many nodes, where nobody says how many, with a rank on each core.
_NODES_OF_SITE = 32


@dataclass(frozen=True)
class PredictResult:
    """``took_s``: for all collectives, from features to the bytes of the files."""

    tuning: Tuning
    guesses: Sequence[Guess]
    took_s: float


def existing_tuning(out: Path, here: Environment) -> Tuning | None:
    """The measured tuning of this machine in ``out``; None where there is none.

    Raises InputError where ``out`` holds a tuning of another machine or MPI, which is not to be overwritten.
    """
    if not (out / MANIFEST).exists():
        return None
    tuning = load_tuning(out)
    was = tuning.environment
    same = ("mpi", "mpi_version", "mpi_build", "machine")
    if any(getattr(was, name) != getattr(here, name) for name in same):
        raise InputError(
            f"{out} holds a tuning of {was.mpi} {was.mpi_version} on {was.machine}, not of this machine",
            "Give another directory by --out",
        )
    return None if tuning.summary.prediction is not None else tuning


def predict(
    bench: Workbench,
    model: TimesModel,
    largest_bytes: int,
    collectives: Sequence[str] = (),
    risk: float = MOST_PROBABLE,
) -> PredictResult:
    """Rules for all shapes of the workbench's nodes and ranks per node; runs no MPI. Raises InputError.

    ``risk``: with no greater probability may a rule lose more than LOSS against the default.
    """
    started_s = time.monotonic()
    guesses: list[Guess] = []
    rule_sets: dict[str, RuleSet] = {}
    for name in _known(collectives, model, bench):
        space = _space(bench, name, largest_bytes)
        guesses += (own := _guesses(bench, model, space, risk))
        basis = bench.catalogue.collective(name).basis
        chosen = {guess.scenario: guess.choice for guess in own}
        rule_sets[name] = bench.expressible(distill_proven(chosen, space, basis))
    tuning = bench.tuning(rule_sets)
    took_s = time.monotonic() - started_s
    return PredictResult(replace(tuning, summary=_summary_of(guesses, took_s)), guesses, took_s)


def widened(bench: Workbench, nodes: int | None, ppn: int | None) -> Workbench:
    """The workbench as if its job had ``nodes`` x ``ppn``: to predict for more of the machine than this job has."""
    wide = replace(bench, nodes=nodes or bench.nodes, ppn=ppn or max(bench.job.ppn, 1))
    return replace(wide, environment=replace(bench.environment, nodes=wide.nodes, ppn=wide.ppn))


def _known(collectives: Sequence[str], model: TimesModel, bench: Workbench) -> list[str]:
    names, entries = parse_collectives(collectives) or COLLECTIVES, bench.catalogue.entries
    known = [name for name in COLLECTIVES if name in names and name in entries and model.knows(name)]
    return [name for name in known if entries[name].nothing_to_tune is None]


def _space(bench: Workbench, collective: str, largest_bytes: int) -> Space:
    sizes = message_sizes(collective, 1, largest_bytes)
    grid = tuple(Scenario(collective, n, p, size) for n, p in shapes(bench.nodes, bench.ppn) for size in sizes)
    return Space(collective, grid, lambda scenario: bench.catalogue.legal(scenario, bench.thread_level))


def _guesses(bench: Workbench, model: TimesModel, space: Space, risk: float) -> list[Guess]:
    """The default stays where other clusters say nothing: of its own algorithm, of any other, of such a scenario."""
    scenarios, times = space.scenarios, model.of(space.collective)
    inside = times.trained.holds(scenarios).tolist()
    # The library's own choice is looked up only where there is something to compare it with.
    equivalents = [
        (bench.backend.default_equivalent(scenario, bench.thread_level) if is_inside else None) or DEFAULT
        for scenario, is_inside in zip(scenarios, inside, strict=True)
    ]
    known = times.knows(list(zip(scenarios, equivalents, strict=True))).tolist()
    defaults = dict(compress(zip(scenarios, equivalents, strict=True), known))
    pairs = [(s, c) for s, equivalent in defaults.items() for c in space.choices(s) if c not in (equivalent, DEFAULT)]
    others = grouped(compress(pairs, times.knows(pairs)), itemgetter(0))
    groups: list[Group] = [(s, defaults[s], [choice for _, choice in some]) for s, some in others.items()]
    decided = {guess.scenario: guess for guess in judged(model, space.collective, groups, risk)}

    def kept(scenario: Scenario, is_inside: bool) -> Guess:
        reason = "there is no other choice"
        if not is_inside:
            reason = "no cluster that was trained on is like this"
        elif scenario not in defaults:
            reason = "of what the library runs by itself no other cluster says anything"
        return Guess(scenario, DEFAULT, 0.0, reason)

    return [decided.get(s) or kept(s, is_inside) for s, is_inside in zip(scenarios, inside, strict=True)]


def _summary_of(guesses: Sequence[Guess], took_s: float) -> Summary:
    names = dict.fromkeys(guess.scenario.collective for guess in guesses)
    made = tuple(guess for guess in guesses if guess.choice != DEFAULT)
    sizes = {n: sorted({g.scenario.size_bytes for g in guesses if g.scenario.collective == n}) for n in names}
    return Summary(
        gated=False,
        reasons=dict.fromkeys(names, StopReason.PREDICTED),
        total_s=took_s,
        prediction=PredictedSizes({name: tuple(some) for name, some in sizes.items()}, made),
    )


@dataclass(frozen=True)
class Predicted:
    """``result``: None where ``out`` holds what was measured here, which stays as it is."""

    result: PredictResult | None
    out: Path
    mpiexec: str


def predict_here(
    collectives: Sequence[str],
    out: Path | None,
    machine: MachineOptions,
    *,
    install: bool = False,
    hardware: Path | None = None,
    model: Path | None = None,
    largest_bytes: int = LARGEST_BYTES,
    risk: float = MOST_PROBABLE,
) -> Predicted:
    """Predicts for ``collectives``, or all that the model knows, and writes the tuning ``out``; None: beside the MPI.

    With ``install`` it is for jobs of 32 nodes with a rank on each core, unless ``machine`` says otherwise, and refused
    for Ethernet, which no cluster had; ``hardware`` is the record of a compute node, by `colltune doctor --record`, in
    place of this node, and asks for the same. ``risk``: with no greater probability may a rule lose more than 3%.
    Raises ColltuneError, also where the library would not read the files.
    """
    unknown = [name for name in parse_collectives(collectives) if name in NONBLOCKING]
    if unknown:
        named = ", ".join(unknown)
        raise InputError(f"no other cluster says anything of {named}", f"Measure: colltune tune {' '.join(unknown)}")
    if not 0.0 < risk <= _MOST_RISK:
        raise InputError(
            f"a risk of {risk:g} is not above 0 and at most {_MOST_RISK:g}", "Give a probability, such as 0.01"
        )
    if install or hardware is not None:
        machine = _of_site(machine, RunningMachine() if hardware is None else RecordedMachine.load(hardware))
    known = load_model(model)
    # A workbench of two ranks opens anywhere; the prediction is for the job, or for the shape in the options.
    where = replace(machine, nodes=None, ppn=max(machine.ppn or 2, 2))
    opened = open_workbench(where, os.environ)
    bench = widened(opened, machine.nodes, machine.ppn)
    mpiexec = bench.installation.mpiexec
    out = out or bench.installation.predicted
    if existing_tuning(out, bench.environment) is not None:
        return Predicted(None, out, str(mpiexec))
    result = predict(bench, known, largest_bytes, collectives, risk)
    # No job has loaded these files yet, so the library is asked before anybody gets them.
    with TemporaryDirectory(prefix="colltune-") as place:
        save_tuning(Path(place), result.tuning)
        force = put_in_force(Path(place), result.tuning, os.environ)
        replace(force, directory=out).mpi.check_read(opened.installation.libmpi)
    save_tuning(out, result.tuning)
    return Predicted(result, out, str(mpiexec))


def _of_site(machine: MachineOptions, node: Machine) -> MachineOptions:
    """The shape of the jobs on such nodes. Raises InputError for a fabric that no cluster had."""
    features = read_features(node)
    if features.fabric is Fabric.ETHERNET:
        raise InputError(
            "these nodes have Ethernet, and no cluster of the model had",
            "Measure: colltune tune. For other compute nodes: --hardware RECORD, by colltune doctor --record there",
        )
    return replace(machine, nodes=machine.nodes or _NODES_OF_SITE, ppn=machine.ppn or features.cores)
