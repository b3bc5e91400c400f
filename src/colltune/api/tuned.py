"""A tuning directory in Python: looked at, drawn, as frames, verified, run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Unpack

from colltune.core.extras import extra
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, parse_collective
from colltune.core.units import format_count, parse_duration
from colltune.session.arguments import MachineArguments, PathLike, machine_options
from colltune.session.explain import explain_call, load_findings, make_page, scenario_of
from colltune.session.export import export_to
from colltune.store.tuning import Tuning, load_tuning

if TYPE_CHECKING:
    import pandas

    from colltune.prove.replay.conformance import ConformanceResult
    from colltune.report.diff_text import TuningDifference
    from colltune.report.picture import Picture
    from colltune.session.compare import Verification
    from colltune.session.drift import DriftReport


@dataclass(frozen=True)
class Tuned:
    """A tuning directory. Made by `tune` and `load`."""

    directory: Path
    tuning: Tuning

    def __repr__(self) -> str:
        here, gain = self.environment, self.tuning.summary.speedup
        counts = {n: sum(r.choice != DEFAULT for r in rules.rules) for n, rules in self.rule_sets.items()}
        rules = ", ".join(f"{name} ({format_count(count, 'rule')})" for name, count in counts.items() if count)
        proven = ""
        if gain is not None:
            proven = f"; {gain.estimate:.2f} times as fast where proven, at least {gain.low:.2f}"
        return (
            f"<Tuned {str(self.directory)!r}: {here.mpi} {here.mpi_version},"
            f" {here.nodes} x {here.ppn} ranks; {rules or 'no rule'}{proven}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the headline, what is known of the tuning, what to do next, and the curves."""
        from colltune.report.ending import facts, headline, steps_text

        findings = load_findings(self.directory)
        lines = [f"<b>{escape(headline(findings))}</b>", escape("; ".join(facts(findings)))]
        lines += [escape(step) for step in steps_text(findings, self.directory)]
        return f"<div>{'<br>'.join(lines)}</div>{self.plot(heading=False).svg if findings.samples else ''}"

    def plot(
        self, *collectives: str, nodes: int | None = None, ppn: int | None = None, heading: bool = True
    ) -> Picture:
        """Latency against message size, default and tuned, and the speed-up with its bounds below; a notebook shows it.

        ``collectives``: all that were tuned where none is named. ``nodes``, ``ppn``: the largest shape of each by
        default. ``save("curves.png")`` of what is returned writes it as .png or .svg. Raises InputError for what was
        not measured, or where what draws is not installed.
        """
        from colltune.report.picture import curves_picture

        names = [parse_collective(name) for name in collectives]
        return curves_picture(load_findings(self.directory), names, nodes, ppn, heading=heading)

    @property
    def environment(self) -> Environment:
        """The MPI, machine and job that the tuning holds for."""
        return self.tuning.environment

    @property
    def rule_sets(self) -> Mapping[str, RuleSet]:
        """The decisions, by collective."""
        return self.tuning.rule_sets

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that make the MPI use the tuning."""
        return self.tuning.variables_at(self.directory)

    @cached_property
    def measured(self) -> tuple[Sample, ...]:
        """Every sample of the campaign, in the order in which it was taken."""
        return tuple(load_findings(self.directory).samples)

    def choose(
        self, collective: str, size: str | int | None = None, nodes: int | None = None, ppn: int | None = None
    ) -> Choice:
        """The choice that is in force for a call; arguments as of `explain`."""
        here = self.environment
        scenario = scenario_of(self.tuning, collective, size, nodes or here.nodes, ppn or here.ppn)
        return self.rule_sets[scenario.collective].evaluate(scenario)

    def explain(
        self, collective: str, size: str | int | None = None, nodes: int | None = None, ppn: int | None = None
    ) -> str:
        """Why a call gets the algorithm that it gets, as one screenful of text.

        ``size`` such as "64KiB" or 65536 (bytes); None for a barrier. ``nodes``, ``ppn``: by default those
        of the tuning.
        """
        return explain_call(self.directory, collective, size, nodes, ppn)

    def samples(self) -> pandas.DataFrame:
        """One row per sample.

        Columns: collective, nodes, ppn, size_bytes, choice, status, repetitions, median_s, fastest_s, cost_s, launch,
        started_s. Times in seconds; NaN where a choice could not be timed.
        """
        rows = [
            {
                **asdict(s.scenario),
                "choice": str(s.choice),
                "status": s.status.value,
                "repetitions": len(s.times_s),
                "median_s": median(s.times_s) if s.times_s else float("nan"),
                "fastest_s": min(s.times_s, default=float("nan")),
                "cost_s": s.cost_s,
                "launch": s.launch,
                "started_s": s.started_s,
            }
            for s in self.measured
        ]
        return _frame(rows)

    def decisions(self) -> pandas.DataFrame:
        """One row per candidate that was put to the proof.

        Columns: collective, nodes, ppn, size_bytes, choice, verdict, kept, region, speedup, low, high, comparisons,
        reason. ``verdict``: kept, refused, or not tried, where the budget ended before there were enough comparisons.
        ``region``: a number that all scenarios share that were judged together. ``speedup``: time of the default over
        that of the choice, the mean of the region over fresh launches; ``low`` and ``high`` are its bounds. NaN, 0 and
        infinity where too little was compared to tell. ``comparisons``: in this very scenario; 0 where its region alone
        speaks for it.
        """
        rows = [
            {
                **asdict(d.scenario),
                "choice": str(d.choice),
                "verdict": d.verdict.value,
                "kept": d.verdict is Verdict.KEPT,
                "region": number,
                "speedup": d.speedup.estimate if d.has_evidence else float("nan"),
                "low": d.speedup.low,
                "high": d.speedup.high,
                "comparisons": len(d.ratios),
                "reason": d.explanation,
            }
            for number, region in enumerate(judged_regions(load_findings(self.directory).decisions))
            for d in region.decisions
        ]
        return _frame(rows)

    def report(self, path: PathLike | None = None) -> Path:
        """Writes the HTML page, by default into the directory, and returns where it is."""
        return make_page(self.directory, None if path is None else Path(path))

    def to(self, library: str, out: PathLike | None = None, *, nodes: int = 0, ppn: int = 0) -> list[Path]:
        """Writes the tuning in another format, and returns the files.

        ``library``: cvars (thresholds of MPICH 3 and Cray MPICH). ``nodes``, ``ppn``: of jobs of this shape alone; 0:
        of all alike. Raises InputError where the measurements do not support it.
        """
        directory, exported = export_to(self.directory, library, None if out is None else Path(out), nodes, ppn)
        return [directory / name for name in exported.files]

    def verify(
        self,
        *,
        launches: int = 8,
        seed: int = 1,
        via: str = "file",
        note: Callable[[str], None] = lambda _text: None,
        **machine: Unpack[MachineArguments],
    ) -> Verification:
        """Compares the library's default with the files, also at sizes that were not tuned, as `colltune verify` does.

        Starts ``launches`` launches with the files and as many without. ``slower`` of what is returned lists the points
        that lose.
        """
        from colltune.session.compare import verify

        return verify(self.directory, machine_options(machine), launches=launches, seed=seed, via=via, note=note)

    def check(
        self, *, short: bool = False, via: str = "file", **machine: Unpack[MachineArguments]
    ) -> ConformanceResult:
        """Runs every collective in every form under the files, and compares results: `colltune verify --results`."""
        from colltune.session.drift import check

        return check(self.directory, machine_options(machine), short=short, via=via)

    def drift(self, *, budget: str | float = "100s", seed: int = 1, **machine: Unpack[MachineArguments]) -> DriftReport:
        """Measures the rules again beside the default: `colltune verify --quick`. ``lost``: what pays no longer."""
        from colltune.session.drift import drift

        return drift(self.directory, machine_options(machine), budget_s=parse_duration(budget), seed=seed)

    def diff(self, other: Tuned | PathLike) -> TuningDifference:
        """Where another tuning decides differently, as `colltune report --diff` does."""
        from colltune.session.explain import diff

        return diff(self.directory, other.directory if isinstance(other, Tuned) else Path(other))

    def run(self, command: Sequence[str]) -> int:
        """Runs ``command`` with the tuning in force, and returns its exit code; `colltune.run` can find out more.

        Signals are handed on; the code is 128 + the signal that ended it.
        Raises InputError where it would use another build of the MPI than the one that was tuned.
        """
        from colltune.deploy.applied import put_in_force
        from colltune.session.application.run_child import run_child

        force = put_in_force(self.directory, self.tuning, os.environ)
        force.check_mpi(command)
        return run_child(force.command(command), force.environment)


def load(directory: PathLike, *, provisional: bool = False) -> Tuned:
    """The tuning that `tune` left in ``directory``. Raises InputError where there is none.

    ``provisional``: also put in force what a job that was ended left unproven; else it is left out.
    """
    path = Path(directory)
    tuning = load_tuning(path)
    return Tuned(path, tuning.with_provisional() if provisional else tuning)


def _frame(rows: Sequence[Mapping[str, object]]) -> pandas.DataFrame:
    return extra("pandas", "a frame").DataFrame(rows)
