"""`colltune export`: every format from a tuning of its library, and the refusals."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from mpich_trees import default_trees
from named_trees import own_trees, write_library
from typer.testing import CliRunner

from colltune.bench.backends import open_backend
from colltune.catalog import load
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.cli.app import app
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.summary import Summary
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.emit.mpich.tree import format_tree
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter
from colltune.emit.next.mpich_named_grammar import VARIABLE
from colltune.emit.next.openmpi_json import OpenMpiJsonEmitter
from colltune.emit.openmpi.rules_file import OpenMpiEmitter
from colltune.emit.ranges import IntelMpiEmitter, Mvapich2Emitter
from colltune.emit.thresholds import CVARS_FILE
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.session.export import FORMATS, export
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from thresholds_file import parse_thresholds

SIZES = (1, 4095, 4096, 4097, 1 << 20)


def environment(mpi: str, version: str) -> Environment:
    return Environment(mpi, version, "0" * 64, "a machine", 1, 8, "single", {})


def two_steps(collective: str, basis: SizeBasis, low: Choice, high: Choice = DEFAULT) -> RuleSet:
    """``low`` to 4 KiB, then ``high``."""
    return RuleSet(collective, basis, (Rule(None, None, 4096, low), Rule(None, None, None, high)))


def saved(place: Path, where: Environment, rules: RuleSet, **files: bytes) -> Path:
    written = {f"{where.mpi}/{name}": data for name, data in files.items()}
    save_tuning(place, Tuning(where, {rules.collective: rules}, written, {}))
    return place


def same(parsed: RuleSet, rules: RuleSet) -> bool:
    return all(
        parsed.evaluate(Scenario(rules.collective, 1, 8, size))
        == rules.evaluate(Scenario(rules.collective, 1, 8, size))
        for size in SIZES
    )


def test_openmpi_gets_its_own_file_and_that_of_6(tmp_path: Path) -> None:
    rules = two_steps("bcast", SizeBasis.MESSAGE, Choice("binomial"))
    catalogue = load("openmpi", "5.0.11")
    assert isinstance(catalogue, OpenMpiCatalogue)
    files = OpenMpiEmitter(catalogue).emit([rules])
    save_tuning(
        tmp_path,
        Tuning(environment("openmpi", "5.0.11"), {"bcast": rules},
               {f"openmpi/{name}": data for name, data in files.items()}, {}),
    )  # fmt: skip
    exported = export(tmp_path, "openmpi")
    assert {name: exported.files[name] for name in files} == files
    assert same(OpenMpiJsonEmitter(catalogue).parse(exported.files, "bcast"), rules)
    assert any("6.0" in text for text in exported.remarks)


def test_mpich_gets_what_was_tuned(tmp_path: Path) -> None:
    rules = two_steps("allreduce", SizeBasis.MESSAGE, Choice("ring"))
    saved(tmp_path, environment("mpich", "5.0.2"), rules, a=b"{}")
    assert export(tmp_path, "mpich").files == {"a": b"{}"}


def reader(place: Path) -> Installation:
    """An MPICH with named trees; it calls itself 5.0."""
    write_library(place / "libmpi.so")
    bin_ = place / "bin"
    return Installation(
        Library.MPICH, "5.0.0b1", Launcher.HYDRA, bin_ / "mpiexec", bin_ / "mpicc", place / "libmpi.so", "1" * 64
    )


def kept(collective: str, nodes: int, ppn: int, choice: Choice) -> Decision:
    where = Scenario(collective, nodes, ppn, 1024)
    return Decision(where, choice, Verdict.KEPT, (1.5,) * 8, "at least 1.20 times as fast")


def test_an_mpich_with_named_trees_gets_them_around_its_own(tmp_path: Path) -> None:
    """Whatever the tuned release reads; what the format cannot say is counted, and never handed over as something."""
    ring, alpha = RuleSet.always("allreduce", SizeBasis.MESSAGE, Choice("ring")), Choice("alpha")
    summary = Summary(decisions=(kept("allreduce", 1, 8, Choice("ring")), kept("bcast", 1, 8, alpha)))
    rule_sets = {"allreduce": ring, "bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, alpha)}
    save_tuning(tmp_path, Tuning(environment("mpich", "5.0.2"), rule_sets, {"mpich/a": b"{}"}, {}, summary))
    exported = export(tmp_path, "mpich", reader(tmp_path))
    emitter = MpichNamedEmitter(load("mpich", "5.0.2"), own_trees())
    assert same(emitter.parse(exported.files, "allreduce"), ring)
    assert not emitter.parse(exported.files, "bcast").departs
    assert set(exported.files) == {NAMED_FILE, "mpich-named.env"}
    assert f"export {VARIABLE}=$PWD/{NAMED_FILE}" in exported.files["mpich-named.env"].decode()
    assert any("1 of 2 proven decisions are not in it" in remark for remark in exported.remarks)
    assert any("measured under MPICH 5.0.2, not under" in remark for remark in exported.remarks)
    assert not any("--via live" in remark for remark in exported.remarks)


def test_another_reader_is_refused_where_its_format_is_no_other(tmp_path: Path) -> None:
    saved(tmp_path, environment("mpich", "5.0.2"), two_steps("allreduce", SizeBasis.MESSAGE, Choice("ring")))
    named = reader(tmp_path)
    with pytest.raises(InputError, match="told apart for MPICH alone"):
        export(tmp_path, "cvars", named)
    (tmp_path / "libmpi.so").write_bytes(b"an MPICH that holds other trees")
    with pytest.raises(InputError, match="the format that the tuning has already"):
        export(tmp_path, "mpich", named)


def test_an_mpich_with_named_trees_is_not_measured(tmp_path: Path) -> None:
    """It reads the variables that choose an algorithm once: every candidate would be the default, without a word."""
    with pytest.raises(InputError, match="side by side") as refused:
        open_backend(reader(tmp_path))
    assert "--to mpich --mpiexec" in str(refused.value)


def test_intelmpi_gets_exports_for_the_job(tmp_path: Path) -> None:
    rules = two_steps("allreduce", SizeBasis.MESSAGE, Choice("ring"), Choice("rabenseifner"))
    saved(tmp_path, environment("intelmpi", "2021.18"), rules)
    files = export(tmp_path, "intelmpi").files
    assert same(IntelMpiEmitter(load("intelmpi", "2021.18")).parse(files, "allreduce"), rules)
    assert "export I_MPI_ADJUST_ALLREDUCE='8:0-4096;2:4097-2147483647'" in files["intelmpi.env"].decode()


def test_mvapich_2_gets_exports_for_the_job(tmp_path: Path) -> None:
    rules = two_steps("bcast", SizeBasis.MESSAGE, parse_choice("number(n=3)"))
    saved(tmp_path, environment("mvapich", "2.3"), rules)
    assert same(Mvapich2Emitter(load("mvapich", "2.3")).parse(export(tmp_path, "mvapich").files, "bcast"), rules)


def test_mvapich_4_gets_mpichs_files_around_its_own_trees(tmp_path: Path) -> None:
    trees = default_trees()
    library = tmp_path / "libmpi.so"
    library.write_bytes(b"\0".join([b"code", format_tree(trees.general), format_tree(trees.ch4), b"more"]) + b"\0")
    where = replace(
        environment("mvapich", "4.0"), mpi_build=hashlib.sha256(library.read_bytes()).hexdigest(),
        facts={"libmpi": str(library)},
    )  # fmt: skip
    rules = two_steps("allreduce", SizeBasis.MESSAGE, Choice("ring"))
    saved(tmp_path / "tuned", where, rules)
    exported = export(tmp_path / "tuned", "mvapich")
    emitter = MpichEmitter(load("mpich", "4.3"), trees)
    assert same(emitter.parse(exported.files, "allreduce"), rules)
    text = exported.files["mvapich4.env"].decode()
    exported_names = [line.rpartition("/")[2] for line in text.splitlines() if line.startswith("export MPIR_CVAR_")]
    assert {*exported_names, "mvapich4.env"} == set(exported.files)
    assert any("no MVAPICH 4 was at hand" in remark for remark in exported.remarks)
    library.write_bytes(b"another build")
    with pytest.raises(InputError, match="not the build that was tuned"):
        export(tmp_path / "tuned", "mvapich")


def test_cvars_come_from_the_journal_with_what_they_lose(tmp_path: Path) -> None:
    where = environment("mpich", "5.0.2")
    saved(tmp_path, where, two_steps("allreduce", SizeBasis.MESSAGE, Choice("recursive_doubling")))
    with Journal.create(tmp_path / JOURNAL, where) as journal:
        for size in (64, 1024, 16384, 262144):
            for name, slope in (("recursive_doubling", 2e-9), ("reduce_scatter_allgather", 1e-9)):
                time_s = 1e-6 * (1 + (name != "recursive_doubling")) + slope * size
                journal.append([Sample(Scenario("allreduce", 1, 8, size), Choice(name), Status.OK, (time_s,) * 3)])
    exported = export(tmp_path, "cvars")
    (short,) = parse_thresholds(exported.files[CVARS_FILE])["allreduce"]
    assert 64 <= short < 1024  # they cross at 1,000 bytes
    assert any("allreduce: 1.000 times the best of 4 measured calls" in remark for remark in exported.remarks)


@pytest.mark.parametrize("target", FORMATS)
def test_times_of_another_library_are_refused_with_the_reason(tmp_path: Path, target: str) -> None:
    own = {"cvars": "mpich"}.get(target, target)
    for other in {"openmpi", "mpich"} - {own}:
        saved(tmp_path / other, environment(other, "5.0.2"), two_steps("bcast", SizeBasis.MESSAGE, Choice("binomial")))
        with pytest.raises(InputError, match=f"measured under {other} 5.0.2, and --to {target} needs times of {own}"):
            export(tmp_path / other, target)


def test_the_command_writes_beside_the_tuning_or_where_it_is_told_to(tmp_path: Path) -> None:
    saved(tmp_path, environment("mpich", "5.0.2"), two_steps("bcast", SizeBasis.MESSAGE, Choice("binomial")), a=b"{}")
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "mpich"])
    assert (result.exit_code, result.output) == (0, f"{tmp_path}/export/mpich/a\n")
    assert json.loads((tmp_path / "export" / "mpich" / "a").read_text()) == {}
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "mpich", "--out", str(tmp_path / "other")])
    assert (tmp_path / "other" / "a").is_file()
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "nothing"])
    assert isinstance(result.exception, InputError)
