"""Writes a tuning in the format of another release, or as thresholds, as far as its measurements support that."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from colltune.bench.backends.mpich import MpichBackend
from colltune.catalog import load
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.core.errors import InputError, on_os_error
from colltune.core.medians import medians_of
from colltune.core.proven import Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.space import shapes
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter, cut_named_trees, holds_named_trees
from colltune.emit.next.mpich_named_grammar import VARIABLE
from colltune.emit.next.openmpi_json import OpenMpiJsonEmitter
from colltune.emit.ranges import IntelMpiEmitter, Mvapich2Emitter
from colltune.emit.thresholds import CVARS_FILE, MODELS, fit, format_fits
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Installation, Library
from colltune.mpi.reads import Asked, refusal_of
from colltune.store.earlier import measurements
from colltune.store.tuning import Tuning, load_tuning, write_files

FORMATS = ("openmpi", "mpich", "intelmpi", "mvapich", "cvars")
# The library whose measurements a format needs.
_MEASURED_UNDER = {"cvars": "mpich"}
# MVAPICH 4 is assumed to have the names and parameters of this MPICH: its documentation names the control variables.
_MPICH_OF_MVAPICH_4 = "4.3"
_WithoutPpn = OpenMpiJsonEmitter | IntelMpiEmitter | Mvapich2Emitter | MpichNamedEmitter


@dataclass(frozen=True)
class Exported:
    """Files by name, and remarks for people, a sentence each."""

    files: Mapping[str, bytes]
    remarks: tuple[str, ...]


def export(directory: Path, target: str, reader: Installation | None = None) -> Exported:
    """The tuning in ``directory`` in the format ``target``, for ``reader`` where that is not the MPI that was tuned.

    Raises InputError for an unknown format, for one that needs measurements of another library, and for a reader whose
    format is that of the tuning already.
    """
    if target not in FORMATS:
        raise InputError(f"--to {target} is no format", f"There are {', '.join(FORMATS)}")
    tuning = load_tuning(directory)
    needed = _MEASURED_UNDER.get(target, target)
    measured = tuning.environment.mpi
    if measured != needed:
        raise InputError(
            f"{directory} was measured under {measured} {tuning.environment.mpi_version}, and --to {target} needs "
            f"times of {needed}: algorithms of one name are other code in another library, and so is its default",
            f"Tune {needed} itself, or export --to {measured}",
        )
    if reader is not None:
        return _for_reader(tuning, target, reader)
    if target == "cvars":
        return _thresholds(directory, tuning)
    files = dict(_own_files(tuning))
    remarks = [_what_is_lost(tuning)] if tuning.environment.mpi != "mpich" else []
    if target == "openmpi":
        json_emitter = OpenMpiJsonEmitter(cast(OpenMpiCatalogue, load("openmpi", tuning.environment.mpi_version)))
        files |= json_emitter.emit(_expressible(tuning, json_emitter))
        remarks.append("the .conf is for Open MPI 4.1 and 5.0, the .json for 6.0 and later, which was not at hand")
    if target == "intelmpi":
        emitter = IntelMpiEmitter(load("intelmpi", tuning.environment.mpi_version))
        files |= emitter.emit(_expressible(tuning, emitter))
    if target == "mvapich" and _is_mvapich_4(tuning.environment):
        files |= _mvapich_4_files(tuning)
        remarks.append("no MVAPICH 4 was at hand: its own trees, with the names and parameters of MPICH 4.3")
    elif target == "mvapich":
        emitter2 = Mvapich2Emitter(load("mvapich", tuning.environment.mpi_version))
        files |= emitter2.emit(_expressible(tuning, emitter2))
    return Exported(files, tuple(text for text in remarks if text))


def export_to(
    directory: Path, target: str, out: Path | None = None, mpiexec: str | None = None
) -> tuple[Path, Exported]:
    """Writes the same into ``out``, by default a folder of the tuning, and returns the folder.

    ``mpiexec``: of the MPI that is to read the files, where that is not the one that was tuned; its library is asked
    whether it takes them. Raises InputError where it does not.
    """
    reader = None if mpiexec is None else find_mpi(mpiexec, os.environ, compiles=False)
    exported = export(directory, target, reader)
    place = out if out is not None else directory / "export" / target
    with on_os_error(f"cannot write to {place}", "Give another directory by --out"):
        write_files(place, exported.files)
    if reader is not None and NAMED_FILE in exported.files:
        _require_taken(reader, place)
    return place, exported


def _for_reader(tuning: Tuning, target: str, reader: Installation) -> Exported:
    """Named trees around those of another MPICH than the one that was tuned."""
    if target != "mpich" or reader.library is not Library.MPICH:
        raise InputError(
            f"--to {target} --mpiexec {reader.mpiexec}: another reader is told apart for MPICH alone",
            "Leave --mpiexec out",
        )
    if not holds_named_trees(reader.libmpi):
        raise InputError(
            f"{reader.libmpi} reads the format that the tuning has already, and its algorithms have other speeds",
            f"Tune it: colltune tune --mpiexec {reader.mpiexec}",
        )
    measured = tuning.environment.mpi_version
    emitter = MpichNamedEmitter(load("mpich", measured), cut_named_trees(reader.libmpi))
    rule_sets = _expressible(tuning, emitter)
    files = emitter.emit(rule_sets)
    (variable,) = emitter.environment(Path())
    files["mpich-named.env"] = _sourced("mpich-named.env", {variable: f"$PWD/{NAMED_FILE}"})
    lost = _lost(tuning, {rules.collective: rules for rules in rule_sets})
    why = "the format knows no ranks per node and no compositions, and this library no live selector" if lost else ""
    measured_by = f"measured under MPICH {measured}, not under {reader.libmpi}: compare your application with and "
    return Exported(
        files,
        (
            *([f"{lost}: {why}"] if lost else []),
            f"{measured_by}without the file before you rely on it",
            "MPIR_CVAR_DUMP_COLL_ALGO_COUNTERS=0 makes the library print which algorithms ran on rank 0",
        ),
    )


def _require_taken(reader: Installation, place: Path) -> None:
    """Raises InputError where ``reader`` would ignore the file of named trees, or end a job at it."""
    asked = Asked([VARIABLE], files={VARIABLE: str((place / NAMED_FILE).resolve())})
    refused, _ = refusal_of(reader.libmpi, reader.build, asked, os.environ)
    if refused:
        raise InputError(f"{reader.libmpi} {refused}", "Report this: the file was written for that library")


def _is_mvapich_4(environment: Environment) -> bool:
    """From 3.0 on MVAPICH is made from MPICH with ch4, and reads its selection files."""
    return int(environment.mpi_version.partition(".")[0]) >= 3


def _mvapich_4_files(tuning: Tuning) -> dict[str, bytes]:
    """MPICH's files around the trees of the MVAPICH that was tuned. Raises InputError where that is not here."""
    emitter = MpichBackend.recalled(replace(tuning.environment, mpi_version=_MPICH_OF_MVAPICH_4)).emitter
    files = emitter.emit(list(tuning.rule_sets.values()))
    named = {name: path for name, path in emitter.environment(Path("$PWD")).items() if Path(path).name in files}
    return {**files, "mvapich4.env": _sourced("mvapich4.env", named)}


def _sourced(name: str, variables: Mapping[str, str]) -> bytes:
    """The file ``name`` that a job script sources where the other files are."""
    exports = "".join(f"export {variable}={path}\n" for variable, path in variables.items())
    note = f"# Written by colltune. Source it where the files are, in the job script: . ./{name}\n"
    return (note + exports).encode("ascii")


def _own_files(tuning: Tuning) -> Mapping[str, bytes]:
    """The files that the tuning already holds for its own library."""
    folder = tuning.environment.mpi
    return {Path(name).name: data for name, data in tuning.files.items() if Path(name).parts[0] == folder}


def _expressible(tuning: Tuning, emitter: _WithoutPpn) -> list[RuleSet]:
    looked_at = sorted({shape for job in tuning.tuned_in for shape in shapes(*job)})
    return [emitter.expressible(rules, looked_at) for rules in (tuning.by_shape or tuning.rule_sets).values()]


def _what_is_lost(tuning: Tuning) -> str:
    """Proven decisions that the library's own file does not make."""
    if tuning.environment.mpi not in ("mpich", "openmpi"):
        return ""
    lost = _lost(tuning, tuning.rule_sets)
    return f"{lost}: `colltune run --via live` makes them" if lost else ""


def _lost(tuning: Tuning, rule_sets: Mapping[str, RuleSet]) -> str:
    """How many of the proven decisions ``rule_sets`` do not make; "" for none."""
    kept = tuning.summary.having(Verdict.KEPT)
    lost = 0
    for one in kept:
        rules = rule_sets.get(one.scenario.collective)
        lost += rules is not None and rules.evaluate(one.scenario) != one.choice
    return f"{lost} of {len(kept)} proven decisions are not in it" if lost else ""


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
        raise InputError("there is nothing to write: " + "; ".join(remarks), "Export --to mpich")
    version = tuning.environment.mpi_version
    remarks.append(
        f"measured under MPICH {version}; MPICH 3 and Cray MPICH may run the same algorithms at other speeds"
    )
    return Exported({CVARS_FILE: format_fits(fits)}, tuple(remarks))
