"""Predicts where the options say: finds MPI and model, and writes. What `colltune predict` does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.collective_names import parse_collectives
from colltune.core.errors import InputError
from colltune.core.hardware import Fabric
from colltune.core.scenario import NONBLOCKING
from colltune.deploy.applied import put_in_force
from colltune.machine.hardware_features import read_features
from colltune.machine.record import Machine, RecordedMachine, RunningMachine
from colltune.predict.guesses import MOST_PROBABLE
from colltune.predict.model import load_model
from colltune.session.arguments import LARGEST_BYTES
from colltune.session.predict import PredictResult, existing_tuning, predict, widened
from colltune.store.tuning import save_tuning

# Beyond even odds a rule is no better than a coin.
_MOST_RISK = 0.5
# Beside an MPI: for jobs of so many nodes, where nobody says how many, with a rank on each core.
_NODES_OF_SITE = 32
_BESIDE_MPI = Path("share", "colltune", "predicted")


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
    out = out or mpiexec.parents[1] / _BESIDE_MPI
    if existing_tuning(out, bench.environment) is not None:
        return Predicted(None, out, str(mpiexec))
    result = predict(bench, known, largest_bytes, collectives, risk)
    # No job has loaded these files yet, so the library is asked before anybody gets them.
    with TemporaryDirectory(prefix="colltune-") as place:
        save_tuning(Path(place), result.tuning)
        force = put_in_force(Path(place), result.tuning, os.environ)
        replace(force, directory=out).check_read_by(opened.installation.libmpi)
    save_tuning(out, result.tuning)
    return Predicted(result, out, str(mpiexec))


def _of_site(machine: MachineOptions, node: Machine) -> MachineOptions:
    """The shape of the jobs on such nodes. Raises InputError for a fabric that no cluster had."""
    found = read_features(node)
    if found.fabric is Fabric.ETHERNET:
        raise InputError(
            "these nodes have Ethernet, and no cluster of the model had",
            "Measure: colltune tune. For other compute nodes: --hardware RECORD, by colltune doctor --record there",
        )
    return replace(machine, nodes=machine.nodes or _NODES_OF_SITE, ppn=machine.ppn or found.cores)
