"""Measures with the OSU Micro-Benchmarks, for those who trust nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.core.errors import InputError, LaunchError
from colltune.core.scenario import Scenario
from colltune.machine.benchmark_output import parse_output
from colltune.machine.process import run_launch
from colltune.mpi.launch import Command

_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class OsuBenchmarks:
    """The programs of one build, by name: ``osu_bcast`` and so on. ``options``: further words for each."""

    programs: Mapping[str, Path]
    options: Sequence[str] = ()

    @classmethod
    def find(cls, directory: Path, collectives: Sequence[str], options: Sequence[str] = ()) -> OsuBenchmarks:
        """Looks below ``directory``. Raises InputError where a collective's program is not there."""
        programs = {}
        for name in collectives:
            found = sorted(p for p in directory.rglob(f"osu_{name}") if p.is_file() and p.stat().st_mode & 0o111)
            if not found:
                raise InputError(f"there is no program osu_{name} below {directory}", "Give the OSU build's directory")
            programs[name] = found[0]
        return cls(programs, options)

    def medians(
        self,
        command: Callable[..., Command],
        variables: Mapping[str, str],
        environment: Mapping[str, str],
        scenarios: Sequence[Scenario],
    ) -> dict[Scenario, float]:
        """Latency in seconds, as the program reports it (a mean over ranks and iterations).

        One run for each shape and series of sizes, of which each is twice the one before: so the programs walk.
        """
        found: dict[Scenario, float] = {}
        for series in in_series(scenarios):
            first, last = series[0], series[-1]
            sizes = [] if first.collective == "barrier" else ["-m", f"{first.size_bytes}:{last.size_bytes}"]
            arguments = [str(self.programs[first.collective]), *sizes, *self.options]
            start = command(arguments, variables, nodes=first.nodes, ppn=first.ppn)
            try:
                run = run_launch(start.argv, {**environment, **start.environment, **variables}, _TIMEOUT_S)
                run.check_returncode()
            except (OSError, subprocess.SubprocessError) as error:
                raise LaunchError(f"{' '.join(start.argv)} failed: {error}", "Try it by hand") from error
            found |= {scenario: parse_latency(run.stdout, scenario) for scenario in series}
        return found


def in_series(scenarios: Sequence[Scenario]) -> list[list[Scenario]]:
    """The scenarios that one run of a program covers, each with twice the size of the one before."""
    left, found = set(scenarios), list[list[Scenario]]()
    for scenario in sorted(left):
        series: list[Scenario] = []
        while scenario in left:
            left.remove(scenario)
            series.append(scenario)
            scenario = replace(scenario, size_bytes=2 * scenario.size_bytes)
        if series:
            found.append(series)
    return found


def parse_latency(output: str, scenario: Scenario) -> float:
    """Seconds from what a program printed. Raises LaunchError where there is no such time."""
    try:
        return parse_output(output.encode(), Path("it"), (scenario.nodes, scenario.ppn)).times_s[scenario, ""][0]
    except (InputError, KeyError, UnicodeEncodeError):
        raise LaunchError(
            f"no latency for {scenario} in the program's output: {output[-200:]!r}", "Run it by hand"
        ) from None
