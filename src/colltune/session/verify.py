"""Compares the library's default with a tuning, also at sizes that were not tuned. What `colltune verify` does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from colltune.bench.workbench import MachineOptions, Workbench, open_tuned_workbench
from colltune.core.disturbance import Disturbance
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.deploy.faults import require_sound
from colltune.deploy.live_selector import in_force_via, require_way
from colltune.measure.contract import Convention
from colltune.measure.osu import OsuBenchmarks
from colltune.prove.compare.default_against_tuned import scenarios_to_verify
from colltune.prove.compare.default_against_tuned import verify as compare_launches
from colltune.prove.compare.two_sides import EFFORT, Medians
from colltune.prove.compare.verdict import Comparison, PointVerdict
from colltune.store.earlier import tuned_sizes
from colltune.store.tuning import load_deployable


@dataclass(frozen=True)
class Verification:
    """The points that were compared, by ``launches`` launches with the files and as many without.

    None where other programs had the processors, as ``disturbance`` says: then there is no verdict.
    """

    comparisons: Sequence[Comparison]
    launches: int
    disturbance: Disturbance = field(default_factory=Disturbance)

    @property
    def counts(self) -> dict[PointVerdict, int]:
        """How many points are faster, the same, and slower."""
        found = Counter(one.verdict for one in self.comparisons)
        return {verdict: found[verdict] for verdict in PointVerdict}

    @property
    def slower(self) -> list[Comparison]:
        """The points at which the tuning is slower beyond the interval."""
        return [one for one in self.comparisons if one.verdict is PointVerdict.SLOWER]


def verify(
    directory: Path,
    machine: MachineOptions,
    *,
    launches: int = 8,
    osu: Path | None = None,
    convention: str = Convention.SLOWEST_RANK,
    seed: int = 1,
    via: str = "file",
    note: Callable[[str], None] = lambda _text: None,
) -> Verification:
    """Measures every collective of the tuning with its files and without, in launches of their own.

    ``osu``: the directory of an OSU build that measures in place of colltune. Raises ColltuneError.
    """
    if launches < 2:
        raise InputError(f"{launches} launch of each kind says nothing of how launches differ", "Give 2 or more")
    if convention not in list(Convention):
        raise InputError(f"there is no convention {convention!r}", f"Use {' or '.join(Convention)}")
    require_way(via)
    tuning = load_deployable(directory)
    require_sound(tuning, str(directory))
    bench = open_tuned_workbench(machine, tuning.environment, os.environ)
    tuning = in_force_via(tuning, via, os.environ, lambda: bench.installation.mpicc)
    comparisons = compare_launches(
        bench,
        tuning,
        directory,
        scenarios_to_verify(tuning, tuned_sizes(directory), bench),
        launches,
        seed,
        osu=None if osu is None else _osu_medians(OsuBenchmarks.find(osu, list(tuning.rule_sets)), bench),
        effort=replace(EFFORT, convention=Convention(convention)),
        note=note,
    )
    found = bench.watch.tally.found(names=bench.watch.nodes)
    return Verification(() if found.is_busy else comparisons, launches, found)


def _osu_medians(programs: OsuBenchmarks, bench: Workbench) -> Medians:
    def medians(variables: Mapping[str, str], scenarios: Sequence[Scenario]) -> Mapping[Scenario, float]:
        return programs.medians(bench.command, variables, bench.process_environment, scenarios)

    return medians
