"""Writes a tuning as thresholds, as far as its measurements support that."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from colltune.core.errors import InputError, on_os_error
from colltune.core.medians import medians_of
from colltune.emit.thresholds import CVARS_FILE, MODELS, fit, format_fits
from colltune.store.earlier import measurements
from colltune.store.tuning import Tuning, load_tuning, write_files

FORMATS = ("cvars",)
# The library whose measurements a format needs.
_MEASURED_UNDER = {"cvars": "mpich"}


@dataclass(frozen=True)
class Exported:
    """Files by name, and remarks for people, a sentence each."""

    files: Mapping[str, bytes]
    remarks: tuple[str, ...]


def export(directory: Path, target: str) -> Exported:
    """The tuning in ``directory`` in the format ``target``.

    Raises InputError for an unknown format, and for one that needs measurements of another library.
    """
    if target not in FORMATS:
        raise InputError(f"--to {target} is no format", f"There are {', '.join(FORMATS)}")
    tuning = load_tuning(directory)
    needed = _MEASURED_UNDER[target]
    measured = tuning.environment.mpi
    if measured != needed:
        raise InputError(
            f"{directory} was measured under {measured} {tuning.environment.mpi_version}, and --to {target} needs "
            f"times of {needed}: algorithms of one name are other code in another library, and so is its default",
            f"Tune {needed} itself; what was tuned reads its own files in {directory}",
        )
    return _thresholds(directory, tuning)


def export_to(directory: Path, target: str, out: Path | None = None) -> tuple[Path, Exported]:
    """Writes the same into ``out``, by default a folder of the tuning, and returns the folder."""
    exported = export(directory, target)
    place = out if out is not None else directory / "export" / target
    with on_os_error(f"cannot write to {place}", "Give another directory by --out"):
        write_files(place, exported.files)
    return place, exported


def _thresholds(directory: Path, tuning: Tuning) -> Exported:
    medians = medians_of(measurements(directory))
    fits, remarks = [], []
    for collective in sorted({scenario.collective for scenario, _ in medians}):
        model = MODELS.get(collective)
        if model is None:
            remarks.append(f"{collective}: MPICH 3 has no thresholds of it")
        elif model.remark is not None:
            remarks.append(f"{collective}: {model.remark}")
        elif (found := fit(collective, medians)) is None:
            remarks.append(
                f"{collective}: no call was measured with all algorithms of the thresholds; tune without a budget"
            )
        else:
            fits.append(found)
            remarks.append(
                f"{collective}: {found.loss:.3f} times the best of {found.scenarios} measured calls, under MPICH's own "
                f"thresholds {found.default_loss:.3f}"
            )
    if not fits:
        raise InputError("there is nothing to write: " + "; ".join(remarks), "Use the files of the tuning")
    version = tuning.environment.mpi_version
    remarks.append(
        f"measured under MPICH {version}; MPICH 3 and Cray MPICH may run the same algorithms at other speeds"
    )
    return Exported({CVARS_FILE: format_fits(fits)}, tuple(remarks))
