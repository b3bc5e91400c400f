"""Predicts where the options say: finds MPI, hardware and model, and writes. What `colltune predict` does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.collective_names import parse_collectives
from colltune.deploy.application import put_in_force
from colltune.pretrained.features import read_features
from colltune.pretrained.model import load_model
from colltune.pretrained.record import RecordedMachine, RunningMachine
from colltune.pretrained.triad import measure_triad
from colltune.session.predict import PredictResult, existing_tuning, predict, widened
from colltune.store.tuning import save_tuning


@dataclass(frozen=True)
class Predicted:
    """``result``: None where the directory holds what was measured here, which stays as it is."""

    result: PredictResult | None
    mpiexec: str


def predict_here(
    collectives: Sequence[str],
    out: Path,
    machine: MachineOptions,
    *,
    recorded: Path | None = None,
    model: Path | None = None,
    largest_bytes: int = 1 << 20,
    triad: bool = False,
) -> Predicted:
    """Predicts for ``collectives``, or all that the model knows, and writes the tuning ``out``. Measures nothing.

    ``recorded``: a record of other nodes than this one. ``triad`` measures this node's memory bandwidth.
    Raises ColltuneError, also where the library would not read the files.
    """
    parse_collectives(collectives)
    known = load_model(model)
    if recorded is not None:
        hardware = read_features(RecordedMachine.load(recorded))
    else:
        hardware = read_features(RunningMachine(), measure_triad if triad else None)
    # A workbench of two ranks opens anywhere; the prediction is for the job, or for the shape in the options.
    opened = open_workbench(replace(machine, nodes=None, ppn=max(machine.ppn or 2, 2)), os.environ)
    bench = widened(opened, machine.nodes, machine.ppn)
    mpiexec = str(bench.installation.mpiexec)
    if existing_tuning(out, bench.environment) is not None:
        return Predicted(None, mpiexec)
    result = predict(bench, known, hardware, largest_bytes, collectives)
    # No job has loaded these files yet, so the library is asked before anybody gets them.
    with TemporaryDirectory(prefix="colltune-") as place:
        save_tuning(Path(place), result.tuning)
        force = put_in_force(Path(place), result.tuning, os.environ)
        replace(force, directory=out).require_read_by(opened.installation.libmpi)
    save_tuning(out, result.tuning)
    return Predicted(result, mpiexec)
