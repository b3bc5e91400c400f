"""A directory that somebody else made is data: reading, running, explaining and exporting it runs and loads nothing."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.catalog import load
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Choice, Environment, SizeBasis
from colltune.deploy.faults import faults_in
from colltune.emit.live_rules import LIVE_FILE
from colltune.emit.openmpi.reader import reads_version_2
from colltune.emit.openmpi.rules_file import OpenMpiEmitter
from colltune.store.tuning import MANIFEST, Provisional, Tuning, load_tuning, save_tuning
from commands import colltune, run_to_end, shell_script
from lint_trees import complete_file

VARIABLE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
FILE = "mpich/mpich-coll.json"
HERE = Environment("mpich", "5.0.2", "ab" * 32, "a machine", 1, 2, "single")
RULES = {"bcast": RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, None, Choice("binomial")),))}
TUNING = Tuning(HERE, RULES, {FILE: complete_file()}, {VARIABLE: f"{{directory}}/{FILE}"})


def received(place: Path, variables: dict[str, str], part: str = "") -> Path:
    """A directory whose manifest was edited to set ``variables``."""
    save_tuning(place, replace(TUNING, provisional=Provisional.of(TUNING)))
    manifest = json.loads((place / MANIFEST).read_text())
    (manifest[part] if part else manifest)["variables"] = variables
    (place / MANIFEST).write_text(json.dumps(manifest))
    return place


@pytest.mark.parametrize("part", ["", "provisional"])
@pytest.mark.parametrize(
    "variables",
    [
        {"LD_PRELOAD": "{directory}/mpich/mpich-coll.json"},
        {"A;touch ran;B": f"{{directory}}/{FILE}"},
        {"MPIR_CVAR_DEBUG_HOLD": "1"},
        {"OMPI_MCA_plm_rsh_agent": "/home/eve/agent"},
        {"OMPI_MCA_coll_tuned_dynamic_rules_filename": "{directory}/openmpi/openmpi-coll-tuned.conf"},
        {VARIABLE: "/home/eve/later.json"},
        {VARIABLE: "{directory}/../eve.json"},
        {VARIABLE: "{directory}/mpich/mpich-ch4-coll.json"},
    ],
)
def test_no_variable_but_those_of_its_own_files_is_read(
    variables: dict[str, str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = received(tmp_path / "tuned", variables, part)
    with pytest.raises(InputError, match="variables would set"):
        load_tuning(place)
    (name, *_) = variables
    told = colltune("env", str(place), environ={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert (told.stdout, len(told.stderr.splitlines())) == ("", 1)  # a shell that takes it over runs nothing
    assert name in told.stderr
    for words in (["run", str(place), "--", "true"], ["explain", str(place), "bcast"], ["report", str(place)]):
        monkeypatch.setattr(os, "execvpe", lambda *started: pytest.fail(f"it starts {started}"))
        done = CliRunner().invoke(app, words)
        assert isinstance(done.exception, InputError), done.output


def test_a_file_outside_of_the_directory_is_not_read(tmp_path: Path) -> None:
    save_tuning(tmp_path / "tuned", TUNING)
    path = tmp_path / "tuned" / MANIFEST
    path.write_text(path.read_text().replace(f'"{FILE}": "', '"../private": "'))
    with pytest.raises(InputError, match="outside of its directory"):
        load_tuning(tmp_path / "tuned")


@pytest.mark.parametrize(
    "words",
    [
        ["run", "TUNED", "--", "mpiexec", "-n", "1", "true"],
        ["run", "TUNED", "--", "sh", "-c", "true"],
        ["run", "--via", "live", "TUNED", "--", "true"],
        ["run", "--prove", "TUNED", "--", "true"],
        ["run", "--profile", "TUNED", "--", "true"],
        ["env", "TUNED"],
        ["verify", "TUNED"],
        pytest.param(["verify", "--results", "TUNED"], marks=pytest.mark.slow),
        pytest.param(["verify", "--quick", "TUNED"], marks=pytest.mark.slow),
        ["explain", "TUNED", "bcast"],
        ["export", "TUNED", "--to", "mpich", "--out", "OUT"],
        ["lint", "TUNED"],
        ["report", "TUNED"],
    ],
    ids=" ".join,
)
def test_nothing_that_a_tuning_names_is_run(words: list[str], tmp_path: Path) -> None:
    """Each program leaves a trace where it is run."""
    ran, eve = tmp_path / "ran", tmp_path / "eve"
    eve.mkdir()
    names = {name: str(shell_script(eve / name, f"echo {name} >> {ran}")) for name in ("mpiexec", "mpicc")}
    library = eve / "libmpi.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-xc", "-", "-o", library],
        input='#include <stdlib.h>\n__attribute__((constructor)) static void run(void) { system("echo libmpi >> '
        f'{ran}"); }}\n',
        text=True, check=True,
    )  # fmt: skip
    build = hashlib.sha256(library.read_bytes()).hexdigest()
    here = replace(HERE, facts={**names, "libmpi": str(library)}, mpi_build=build)
    save_tuning(tmp_path / "tuned", replace(TUNING, environment=here, live=RULES))
    said = {"TUNED": str(tmp_path / "tuned"), "OUT": str(tmp_path / "out")}
    subprocess.run(
        [sys.executable, "-m", "colltune", *(said.get(word, word) for word in words)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)},
        capture_output=True, cwd=tmp_path, timeout=120, check=False,
    )  # fmt: skip
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (FILE, b'{"collective=bcast": {}}', "have no rules"),
        ("mpich/later.json", b"{}", "is no file that mpich"),
        ("bin/sh", b"", "is no file that mpich"),
        (f"live/{LIVE_FILE}", b"colltune-rules 2\n", "does not say what the tuning says"),
        (
            f"live/{LIVE_FILE}",
            b"colltune-rules 2\nchoice 0 - MPIR_CVAR_DEBUG_HOLD=1 # bcast binomial\n"
            b"rules bcast message\nrule - - - 0\n",
            "is not chosen by",
        ),
        (f"provisional/live/{LIVE_FILE}", b"\x7fELF", "not as colltune writes it"),
    ],
)
def test_every_file_is_held_against_what_it_is(name: str, data: bytes, why: str) -> None:
    found = list(faults_in(replace(TUNING, files={FILE: complete_file(), name: data}, live=RULES)))
    assert any(why in fault for fault in found), found
    assert list(faults_in(TUNING)) == []


def test_no_module_of_the_working_directory_is_imported_to_ask_a_library(tmp_path: Path) -> None:
    """`python -c` looks there first: in a directory that others write to, too."""
    for name in ("ctypes", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(0)\n")
    script = (
        "import os, sys; sys.path = [p for p in sys.path if p]; from pathlib import Path;"
        "from colltune.mpi.reads import Asked, refusal_of;"
        f"os.chdir({str(tmp_path)!r}); print(refusal_of(Path('/nowhere/libmpi.so'), 'build', Asked(['x']), {{}}))"
    )
    environment = {"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    run_to_end([sys.executable, "-c", script], env=environment, cwd="/", check=True)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("version", ["4.1.4", "5.0.7"])
def test_what_is_written_for_open_mpi_has_no_fault(version: str) -> None:
    catalogue = load("openmpi", version)
    basis = catalogue.collective("bcast").basis
    rules = {"bcast": RuleSet.always("bcast", basis, catalogue.choices("bcast")[1])}
    rules["allreduce"] = RuleSet.always("allreduce", SizeBasis.MESSAGE, catalogue.choices("allreduce")[1])
    written = OpenMpiEmitter(catalogue, wide=reads_version_2(version)).emit(list(rules.values()))
    files = {f"openmpi/{name}": data for name, data in written.items()}
    assert len(files) == (2 if catalogue.has_han else 1)
    tuning = Tuning(replace(HERE, mpi="openmpi", mpi_version=version), rules, files, {})
    assert list(faults_in(tuning)) == []
    for name in files:
        assert list(faults_in(replace(tuning, files={name: b"1\nbcast\n1\n"}))), name
