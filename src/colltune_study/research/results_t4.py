"""What simulated tunings measured, in the common format of autotuning results: T4, schema 1.1.0, a file for each run.

The schema is that of github.com/AutoTuningAssociation/autotuning_methodology, which reads such files; Kernel Tuner and
KTT write them. All times are seconds of the replayed machine.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from colltune.core.extras import __version__
from colltune.core.sample import Sample, Status, format_choice
from colltune_study.research.simulate import Run

_INVALIDITY = {"ok": "correct", "inapplicable": "constraints", "wrong": "correctness", "hung": "timeout"}  # by Status


def write_t4(directory: Path, runs: Iterable[Run]) -> None:
    """Writes a file for each of ``runs`` that kept its samples; the others are left out."""
    for run in runs:
        if not run.told:
            continue
        directory.mkdir(exist_ok=True)
        tuner = {"autotuner": run.strategy, "autotuner_version": __version__, "device": run.grid, "timeunit": "seconds"}
        results = [_result(sample) for sample in run.told]
        text = json.dumps({"schema_version": "1.1.0", "metadata": tuner, "results": results})
        name = re.sub(r"[^\w.@-]", "-", f"{run.strategy}-{run.grid}-{run.seed}.json")
        (directory / name).write_text(text, encoding="utf-8")


def _result(sample: Sample) -> dict[str, object]:
    at, runtimes = sample.scenario, list(sample.times_s)
    where = {"collective": at.collective, "nodes": at.nodes, "ppn": at.ppn, "size_bytes": at.size_bytes}
    measured = [{"name": "time", "value": sample.time_s, "unit": "seconds"}] if runtimes else []
    return {
        "configuration": {**where, "choice": format_choice(sample.choice)},
        "objectives": ["time"],
        "times": {"runtimes": runtimes, "framework": max(0.0, sample.cost_s - sum(runtimes))},
        "invalidity": _INVALIDITY.get(sample.status, "runtime"),
        "correctness": int(sample.status is Status.OK),
        "measurements": measured,
    }
