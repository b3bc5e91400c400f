"""An MPI that its user describes: the description is checked as a whole, and no tuning sets what it does not have."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.bench.backends.described import DescribedBackend
from colltune.catalog.read import catalogue_of
from colltune.cli.app import app
from colltune.core.decision_table import DecisionTable
from colltune.core.errors import InputError
from colltune.core.rules import RuleSet, Steps
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis
from colltune.core.space import shapes
from colltune.deploy.faults import faults_in
from colltune.emit.contract import variables_for
from colltune.emit.described import DescribedEmitter
from colltune.machine.described_file import parse_description
from colltune.machine.described_mpi import VARIABLE, Description
from colltune.mpi.installation import Library
from colltune.mpi.libraries import library_in
from colltune.store.tuning import Tuning, load_tuning, save_tuning
from described_variables import rules_in

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "describe-an-mpi.md"
MADEUP, CRAY, MVAPICH = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
MESSAGE = SizeBasis.MESSAGE


def described(text: str) -> Description:
    found, faults = parse_description(text.encode())
    assert found is not None, faults
    return found


@pytest.mark.parametrize("text", [MADEUP, CRAY, MVAPICH])
def test_the_examples_of_the_page_are_in_order(text: str, tmp_path: Path) -> None:
    assert catalogue_of(described(text)).entries
    (tmp_path / "mpi.toml").write_text(text)
    assert CliRunner().invoke(app, ["lint", str(tmp_path / "mpi.toml")]).exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[mpi]", "[mpi", "Expected"),
        ('title = "Made-up MPI"', "title = 3", "mpi.title"),
        ('version = "3.1"', 'version = "a b"', "mpi.version"),
        ('mark = "Made-up MPI, build "', 'mark = ""', "mpi.mark"),
        ("[form]", "[form]\ncommand = 'rm'", "command"),
        ("MADEUP_TAKES_VARIABLES", "LD_PRELOAD", "LD_PRELOAD is no variable that a tuning may set"),
        ('"MADEUP_{COLLECTIVE}"', '"PATH"', "PATH is no variable that a tuning may set"),
        ('"MADEUP_{COLLECTIVE}"', '"MADEUP_ALL"', "MADEUP_ALL is the variable of bcast too"),
        ("{value}={low}", "{value.__class__}={low}", "needs {value} once"),
        ("{value}={low}", "{size}={low}", "needs {value} once"),
        ("{value}={low}..", "{value}=..", "cannot leave a call to the library"),
        ("/{ranks_low}..{ranks_high}", "/{ranks_low}", "a lower bound without an upper one"),
        ('separator = ","', 'separator = ".."', "the separator '..' has to be there"),
        ("[collectives.bcast]", "[collectives.broadcast]", "there is no such collective"),
        ('[collectives.bcast]\nbasis = "message"', '[collectives.bcast]\nbasis = "none"', "basis none"),
        ('{ key = "wrong" }', '{ key = "linear" }', "have one key or one value"),
        ('{ key = "wrong" }', '{ key = "Wrong Name" }', "key"),
        ('{ key = "wrong" }', '{ key = "wrong", needs = ["luck"] }', "'luck' is not a valid Need"),
    ],
)
def test_a_fault_is_one_line(old: str, new: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert old in MADEUP
    path = tmp_path / "mpi.toml"
    path.write_text(MADEUP.replace(old, new, 1))
    done = CliRunner().invoke(app, ["lint", str(path)])
    assert (done.exit_code, fault in done.output) == (1, True), done.output
    monkeypatch.setenv(VARIABLE, str(path))
    found, _ = parse_description(path.read_bytes())
    with pytest.raises(InputError, match=re.escape(fault)):
        DescribedBackend.of("" if found is None else found.version)


def test_a_file_that_is_not_there_or_has_no_end_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/nowhere/mpi.toml", "/dev/zero"):
        monkeypatch.setenv(VARIABLE, path)
        with pytest.raises(InputError, match=f"cannot read the MPI that COLLTUNE_MPI describes \\({path}\\)"):
            library_in(b"")


def test_its_library_goes_before_those_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\0MPICH Version: 5\0Made-up MPI, build 7\0"
    assert library_in(content) is Library.MPICH
    (tmp_path / "mpi.toml").write_text(MADEUP)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mpi.toml"))
    assert library_in(content) is Library.DESCRIBED
    assert library_in(b"MPICH Version: 5") is Library.MPICH


SAYS = "flat=64..64/0..2"
OF_64_BYTES = Steps.of([(63, DEFAULT), (64, Choice("linear")), (None, DEFAULT)])


def tuned(description: Description, value: str = SAYS) -> Tuning:
    emitter = DescribedEmitter(description)
    table = DecisionTable.of_shapes("bcast", MESSAGE, {(1, 2): OF_64_BYTES})
    rules = emitter.expressible(table.rule_set(), [(1, 2), (2, 2)])
    files = {name: data.replace(SAYS.encode(), value.encode()) for name, data in emitter.emit([rules]).items()}
    here = Environment("described", description.version, "ab" * 32, "a machine", 1, 2, "single")
    named = {f"described/{name}": data for name, data in files.items()}
    return Tuning(here, {"bcast": rules}, named, variables_for(emitter, Path(), files), live={})


def test_a_tuning_holds_variables_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mpi.toml"
    path.write_text(MADEUP)
    monkeypatch.setenv(VARIABLE, str(path))
    tuning = tuned(described(MADEUP))
    assert tuning.variables == {"MADEUP_BCAST": SAYS, "MADEUP_TAKES_VARIABLES": "yes"}
    save_tuning(tmp_path / "tuned", tuning)
    loaded = load_tuning(tmp_path / "tuned")
    assert loaded.variables_at(tmp_path / "tuned") == tuning.variables
    assert list(faults_in(loaded)) == []
    for number, value in enumerate((f"{SAYS};reboot", "steal=64..64/0..2", "$(touch ran)")):
        save_tuning(tmp_path / str(number), tuned(described(MADEUP), value))
        with pytest.raises(InputError, match="does not make"):
            load_tuning(tmp_path / str(number))
    other = tmp_path / "other.toml"
    other.write_text(MADEUP.replace('"yes"', '"no"'))  # which no reader has seen
    monkeypatch.setenv(VARIABLE, str(other))
    with pytest.raises(InputError, match="MADEUP_TAKES_VARIABLES"):
        load_tuning(tmp_path / "tuned")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(InputError, match="COLLTUNE_MPI has to describe"):
        load_tuning(tmp_path / "tuned")


def test_a_variable_without_ranks_says_what_all_shapes_agree_on() -> None:
    text = MADEUP.replace("/{ranks_low}..{ranks_high}", "")
    emitter, job = DescribedEmitter(described(text)), shapes(2, 2)
    small = Steps.of([(64, Choice("linear")), (None, DEFAULT)])
    large = Steps.of([(512, Choice("linear")), (None, DEFAULT)])
    table = {shape: small if shape == (1, 2) else large for shape in job}
    rules = emitter.expressible(DecisionTable.of_shapes("bcast", MESSAGE, table).rule_set(), job)
    assert [rules.evaluate(Scenario("bcast", 2, 2, size)) for size in (64, 65)] == [Choice("linear"), DEFAULT]
    assert emitter.emit([rules]) == {"variables.txt": b"MADEUP_BCAST=flat=0..64\nMADEUP_TAKES_VARIABLES=yes\n"}
    alone = DecisionTable.of_shapes("bcast", MESSAGE, {(1, 2): small}).rule_set()
    assert not emitter.expressible(alone, job).departs


def test_a_value_alone_holds_for_all_calls() -> None:
    emitter = DescribedEmitter(description := described(CRAY))
    rules = emitter.expressible(RuleSet.always("bcast", SizeBasis.NONE, Choice("radix_8")), shapes(4, 2))
    files = emitter.emit([rules])
    assert files == {"variables.txt": b"MPICH_BCAST_INTERNODE_RADIX=8\n"}
    assert rules_in(files, description, "bcast") == rules
