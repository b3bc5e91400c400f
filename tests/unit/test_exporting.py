"""`colltune export`: every format from a tuning of its library, and the refusals."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.bench.backends import open_backend
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.emit.mpich.defaults import holds_named_trees
from colltune.emit.thresholds import CVARS_FILE
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.session.export import FORMATS, export
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from thresholds_file import parse_thresholds


def environment(mpi: str, version: str) -> Environment:
    return Environment(mpi, version, "0" * 64, "a machine", 1, 8, "single", {})


def two_steps(collective: str, basis: SizeBasis, low: Choice, high: Choice = DEFAULT) -> RuleSet:
    """``low`` to 4 KiB, then ``high``."""
    return RuleSet(collective, basis, (Rule(None, None, 4096, low), Rule(None, None, None, high)))


def saved(place: Path, where: Environment, rules: RuleSet, **files: bytes) -> Path:
    written = {f"{where.mpi}/{name}": data for name, data in files.items()}
    save_tuning(place, Tuning(where, {rules.collective: rules}, written, {}))
    return place


def test_an_mpich_with_named_trees_is_not_measured(tmp_path: Path) -> None:
    """It reads the variables that choose an algorithm once: every candidate would be the default, without a word."""
    library = tmp_path / "libmpi.so"
    library.write_bytes(b'\x7fELF\0{ "name=main": {}}\0')
    mpich = Installation(
        Library.MPICH, "5.0.0b1", Launcher.HYDRA, tmp_path / "mpiexec", tmp_path / "mpicc", library, ""
    )
    with pytest.raises(InputError, match="side by side"):
        open_backend(mpich)
    assert not holds_named_trees(tmp_path / "none")


def measured(place: Path) -> Path:
    where = environment("mpich", "5.0.2")
    saved(place, where, two_steps("allreduce", SizeBasis.MESSAGE, Choice("recursive_doubling")))
    with Journal.create(place / JOURNAL, where) as journal:
        for size in (64, 1024, 16384, 262144):
            for name, slope in (("recursive_doubling", 2e-9), ("reduce_scatter_allgather", 1e-9)):
                time_s = 1e-6 * (1 + (name != "recursive_doubling")) + slope * size
                journal.append([Sample(Scenario("allreduce", 1, 8, size), Choice(name), Status.OK, (time_s,) * 3)])
    return place


def test_cvars_come_from_the_journal_with_what_they_lose(tmp_path: Path) -> None:
    exported = export(measured(tmp_path), "cvars")
    (short,) = parse_thresholds(exported.files[CVARS_FILE])["allreduce"]
    assert 64 <= short < 1024  # they cross at 1,000 bytes
    assert any("allreduce: 1.000 times the best of 4 measured calls" in remark for remark in exported.remarks)


@pytest.mark.parametrize("target", FORMATS)
def test_times_of_another_library_are_refused_with_the_reason(tmp_path: Path, target: str) -> None:
    own = {"cvars": "mpich"}[target]
    for other in {"openmpi", "intelmpi"}:
        saved(tmp_path / other, environment(other, "5.0.2"), two_steps("bcast", SizeBasis.MESSAGE, Choice("binomial")))
        with pytest.raises(InputError, match=f"measured under {other} 5.0.2, and --to {target} needs times of {own}"):
            export(tmp_path / other, target)


def test_the_command_writes_beside_the_tuning_or_where_it_is_told_to(tmp_path: Path) -> None:
    measured(tmp_path)
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "cvars"])
    assert (result.exit_code, result.output.splitlines()[0]) == (0, f"{tmp_path}/export/cvars/{CVARS_FILE}")
    CliRunner().invoke(app, ["export", str(tmp_path), "--to", "cvars", "--out", str(tmp_path / "other")])
    assert (tmp_path / "other" / CVARS_FILE).is_file()
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "nothing"])
    assert isinstance(result.exception, InputError)
