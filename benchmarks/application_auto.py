"""What `colltune run --auto` gains in a program by itself, and what trying costs: --auto of bench_applications.py."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

from applications import Application
from colltune.prove.in_run.in_application import cost_s
from colltune.store.applications import application_runs

RUNS = 10  # at least


def auto_job(one: Application, memory: Path) -> list[str]:
    """The job as `run --auto` starts it, which remembers in ``memory`` what its runs have seen."""
    return [sys.executable, "-m", "colltune", "run", "--auto", str(memory), "--", *one.job]


def lost(memory: Path) -> float:
    """Of the time of all runs, the share that trying and agreeing took, as the runs themselves count it."""
    runs = application_runs(memory)
    jobs = [(run, job) for run in runs for job in run.jobs]
    tried = [(job, cell) for run, job in jobs for cell in job.cells if run.record.is_candidate(cell)]
    whole_s = sum(cost_s([cell]) * cell.ranks / job.ranks for job, cell in tried)
    return whole_s / max(sum(job.elapsed_s for _, job in jobs), 1e-9)


def captured(turns: dict[str, list[float]]) -> float:
    """What the last runs save over what the tuning saves, by the means of runs in turns."""
    default_s, tuned_s, auto_s = (fmean(turns[way]) for way in ("default", "tuned", "auto"))
    return (default_s - auto_s) / (default_s - tuned_s)
