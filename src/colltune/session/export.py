"""Writes a tuning as thresholds, as far as its measurements support that, and takes those of a job's shape."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.core.medians import medians_of
from colltune.core.sample import Choice, Scenario
from colltune.emit.thresholds import MODELS, fit, format_fits, parse_thresholds, thresholds_file
from colltune.machine.files import read_file
from colltune.mpi.launch_line import job_shape
from colltune.store.earlier import measurements
from colltune.store.tuning import load_tuning, write_files

# The one format, and the library whose measurements it needs.
_FORMAT, _LIBRARY = "cvars", "mpich"
_COUNTED = re.compile(thresholds_file(1).replace("1", "([0-9]{1,9})"))
Medians = Mapping[tuple[Scenario, Choice], float]


@dataclass(frozen=True)
class Exported:
    """Files by name, and remarks for people, a sentence each."""

    files: Mapping[str, bytes]
    remarks: tuple[str, ...]


def export(directory: Path, target: str, nodes: int = 0, ppn: int = 0) -> Exported:
    """The tuning in ``directory`` in the format ``target``, for ``nodes`` x ``ppn`` processes; 0: for all measured.

    Raises InputError for an unknown format, for one that needs measurements of another library, and for a number of
    processes that was not measured.
    """
    if bool(nodes) != bool(ppn):
        raise InputError("a number of processes needs both --nodes and --ppn", "Give both, or none for all alike")
    if target != _FORMAT:
        raise InputError(f"--to {target} is no format", f"There are {_FORMAT}")
    here = load_tuning(directory).environment
    if here.mpi != _LIBRARY:
        raise InputError(
            f"{directory} was measured under {here.mpi} {here.mpi_version}, and --to {target} needs "
            f"times of {_LIBRARY}: algorithms of one name are other code in another library, and so is its default",
            f"Tune {_LIBRARY} itself; what was tuned reads its own files in {directory}",
        )
    return _thresholds(directory, here.mpi_version, nodes, ppn)


def export_to(
    directory: Path, target: str, out: Path | None = None, nodes: int = 0, ppn: int = 0
) -> tuple[Path, Exported]:
    """Writes the same into ``out``, by default a folder of the tuning, and returns the folder."""
    exported = export(directory, target, nodes, ppn)
    place = out if out is not None else directory / "export" / target
    with on_os_error(f"cannot write to {place}", "Give another directory by --out"):
        write_files(place, exported.files)
    return place, exported


def _of_shape(medians: Medians, nodes: int, ppn: int) -> Medians:
    """Those of ``nodes`` x ``ppn``; where that was not measured, of other shapes with as many processes."""
    ranks = nodes * ppn
    exact = {pair: time_s for pair, time_s in medians.items() if (pair[0].nodes, pair[0].ppn) == (nodes, ppn)}
    if own := exact or {pair: time_s for pair, time_s in medians.items() if pair[0].ranks == ranks}:
        return own
    there = ", ".join(map(str, sorted({scenario.ranks for scenario, _ in medians}))) or "nothing"
    raise InputError(
        f"no call was measured on {nodes} x {ppn}, or on another shape of {ranks} processes; measured: {there}",
        f"Tune in a job of {nodes} nodes with {ppn} ranks on each",
    )


def _thresholds(directory: Path, version: str, nodes: int, ppn: int) -> Exported:
    measured = medians_of(measurements(directory))
    medians = _of_shape(measured, nodes, ppn) if nodes else measured
    fits, remarks = [], []
    for collective in sorted({scenario.collective for scenario, _ in medians}):
        model = MODELS.get(collective)
        if model is None:
            remarks.append(f"{collective}: MPICH 3 has no thresholds of it")
        elif model.remark is not None:
            remarks.append(f"{collective}: {model.remark}")
        elif (fitted := fit(collective, medians)) is None:
            remarks.append(
                f"{collective}: no call was measured with all algorithms of the thresholds; tune without a budget"
            )
        else:
            fits.append(fitted)
            remarks.append(
                f"{collective}: {fitted.loss:.3f} times the best of {fitted.scenarios} measured calls, under MPICH's "
                f"own thresholds {fitted.default_loss:.3f}" + (f"; {fitted.crossings}" if nodes else "")
            )
    if not fits:
        raise InputError("there is nothing to write: " + "; ".join(remarks), "Use the files of the tuning")
    remarks.append(
        f"measured under MPICH {version}; MPICH 3.0 to 3.3 and Cray MPICH, which read thresholds, may run the same "
        f"algorithms at other speeds. MPICH 4 and later read the selection file in {directory}, which tells numbers of "
        "processes apart by itself"
    )
    return Exported({thresholds_file(nodes * ppn): format_fits(fits, nodes * ppn)}, tuple(remarks))


def holds_thresholds(directory: Path) -> bool:
    """Whether ``directory`` is one that ``export_to`` left, and no tuning."""
    return next(directory.glob(thresholds_file()[:-4] + "*.env"), None) is not None


def thresholds_of_job(
    directory: Path, command: Sequence[str], environ: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """The variables of the file for as many processes as ``command`` starts, and a sentence about it.

    Where there is no such file, of the one for all alike. What ``environ`` has already stays. Raises InputError where
    there is neither, and for a file that sets anything else.
    """
    shape = job_shape(environ, command)
    ranks = shape[2] if shape else 0
    counted = sorted(int(match[1]) for path in directory.iterdir() if (match := _COUNTED.fullmatch(path.name)))
    path = directory / thresholds_file(ranks if ranks in counted else 0)
    processes = f"{ranks} processes" if ranks else "an unknown number of processes"
    if not path.exists():
        raise InputError(
            f"{directory} has thresholds for {', '.join(map(str, counted))} processes, and this job has {processes}",
            "Export those too: colltune export TUNED --to cvars --nodes N --ppn P",
        )
    with on_os_error(f"cannot read {path}", "Export it again"):
        thresholds = parse_thresholds(read_file(path), str(path))
    kept = sorted(thresholds.keys() & environ.keys())
    note = f"{path.name} for {processes}" + (f"; as you set them: {', '.join(kept)}" if kept else "")
    return {name: value for name, value in thresholds.items() if name not in environ}, note
