"""The command line without an MPI: help, slips of the fingers, and files that are not what they should be."""

import os
import shlex
import subprocess
import sys
from ast import literal_eval
from dataclasses import replace
from pathlib import Path

import pytest
from written_summary import read_summary

import colltune as colltune_package
import colltune.cli.tune as cli_tune
import commands
from colltune.cli import main
from colltune.core.extras import read_version
from colltune.core.proven import Summary
from colltune.core.rules import RuleSet
from colltune.core.sample import Choice, Environment, SizeBasis
from colltune.machine.command_lines import run_command
from colltune.session.tuning.options import TuneOptions
from colltune.store.tuning import Provisional, Tuning, load_tuning, save_tuning
from commands import run_to_end, shell_script
from lint_trees import complete_file
from terminals import TABLE


def colltune(
    *arguments: str, path: str = "", code: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command with only ``path`` on PATH, so that no MPI of the machine is found by chance."""
    told = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return commands.colltune(*arguments, environ=told | environment, code=code)


def fails_with_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr


def save_example(directory: Path, choice: str = "ring") -> Tuning:
    tuning = Tuning(
        Environment("mpich", "5.0.2", "abc", "a machine", 1, 4, "single"),
        {"allgather": RuleSet.always("allgather", SizeBasis.TOTAL, Choice(choice))},
        {"mpich/mpich-coll.json": complete_file()},
        {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "{directory}/mpich/mpich-coll.json"},
        Summary(seed=1),
    )
    save_tuning(directory, tuning)
    return tuning


def test_words_behind_dashes_are_the_launch_line_and_go_on_with_the_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with_one_line(colltune("tune", "bcast", "--", "./app"), "'./app' begins with no launcher that is known")
    tuned: list[tuple[TuneOptions, str]] = []

    def note(options: TuneOptions, _out: Path, _began_s: float, go_on: str, **_more: object) -> None:
        tuned.append((options, go_on))

    monkeypatch.setattr(cli_tune, "tune_and_show", note)
    line = "srun -n 2 ./wrap.sh './my app' --resume"
    monkeypatch.setattr("sys.argv", ["colltune", "tune", "bcast", "--budget", "9s", "--", *shlex.split(line)])
    with pytest.raises(SystemExit):
        main()
    [(options, go_on)] = tuned
    assert (options.machine.launch_line, options.collectives) == (line, ["bcast"])
    assert go_on.endswith(f" tune bcast --budget 9s --resume -- {line}")


# What a new Python does until it shows its modules, and those that it must not have by then.
IMPORTS = {
    "import colltune.session.site.state\nshow()": {"sklearn", "scipy", "numpy", "pandas", "matplotlib"},
    "os.execvpe = show\napp(['run', 'TUNED', '--', '/bin/true'])": {"numpy", "scipy", "sklearn"},
    "try:\n    app(['env', 'nowhere'])\nexcept Exception:\n    assert 'colltune.cli.env' in sys.modules\n    show()": {
        "rich", *(f"colltune.cli.{name}" for name in ("tune", "run", "predict", "site"))
    },
}  # fmt: skip


@pytest.mark.parametrize("script", IMPORTS, ids=["site", "run", "env"])
def test_nothing_is_imported_that_is_not_needed(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_example(Path("TUNED"))
    head = "import os, sys\nfrom colltune.cli.app import app\nshow = lambda *_: print([*sys.modules])\n"
    shown = run_to_end([sys.executable, "-c", head + script], check=True).stdout
    assert IMPORTS[script].isdisjoint(literal_eval(shown))


# A command line, and what the one line says that it is answered with. In its directory are FILE, a tuning TUNED with a
# provisional one, a recorded TABLE and a PROGRAM.
BAD_INPUT = [
    ("verfy", "Did you mean 'verify'?"),
    ("tune bcast --budget 0s", "'0s' is not above zero"),
    ("tune bcast --budget soon", "'soon'"),
    ("tune bcast --max-size 1XB", "'1XB'"),
    ("tune bcast --gate maybe", "maybe"),
    ("tune bcast", "no mpiexec"),
    ("tune bcast --mpiexec /nowhere/mpiexec", "/nowhere/mpiexec"),
    ("tune bcast --out FILE/tuned", "cannot write"),
    ("tune bcast --counts counts.npy", "--counts is for alltoallv"),
    ("tune bcast --min-size 1MiB --max-size 4", "--min-size 1 MiB is above --max-size 4 B"),
    ("tune --profile PROGRAM", "is a program or other binary file, and no profile. Make one: colltune profile"),
    *((f"{command} bcats --mpiexec /nowhere/mpiexec", "there is no collective 'bcats'. Did you mean bcast?")
      for command in ("tune", "tune bcast,", "study collect --out x.csv", "predict")),
    ("study tune dragonfly:2x2 bcats", "there is no collective 'bcats'. Did you mean bcast?"),
    *((f"tune alltoallv {option}", f"{option.split()[0]} cannot be used with `tune alltoallv`")
      for option in ("--runtime 1h", "--check", "--min-size 8", "--sizes 8,300", "--gate off", "--reproducible",
                     "--topology serial")),
    ("plan bcast --min-size 1MiB --max-size 4", "--min-size 1 MiB is above --max-size 4 B"),
    ("predict bcast ibcast --mpiexec /nowhere/mpiexec", "no other cluster says anything of ibcast"),
    ("profile show PROGRAM", "is a program or other binary file"),
    ("report absent", "absent does not exist (tuning.json). Make one: colltune tune"),
    ("report TUNED --text --out FILE", "--out is for the page"),
    ("verify .", ". holds no tuning"),
    ("env nowhere", "nowhere does not exist (tuning.json). Make one: colltune tune"),
    ("env PROGRAM", "is a program or other binary file, and no tuning. Give the directory of one"),
    ("run nowhere -- true", "nowhere"),
    ("run TUNED", "there is no command to run"),
    ("run TUNED mpiexec -n 4 ./app", "mpiexec -n 4 ./app"),
    ("run TUNED --", "there is no command to run"),
    ("run --masure TUNED -- true", "--masure"),
    *((f"run {flag} --alltoallv . -- true", f"{flag} says nothing of MPI_Alltoallv")
      for flag in ("--measure", "--prove", "--profile", "--auto", "--provisional")),
    ("run --alltoallv . -- true", "cannot read the look-up table alltoallv.rules"),
    ("doctor", "no mpiexec"),
    ("site status absent", "absent is no store of a site: No such file"),
    ("study evaluate absent", "there is no file absent. Give a CSV"),
    ("study evaluate TABLE --strategies oracle", "there is no strategy 'oracle'"),
    ("study evaluate TABLE --scaling loud", "there is no scaling 'loud'"),
    ("study evaluate TABLE --significant ten", "cannot read --significant"),
    ("study evaluate TABLE --campaign --good 1.1", "--good has no effect with --campaign"),
    ("study evaluate TABLE --budgets 1m", "--budgets has no effect without --campaign"),
    ("study evaluate TABLE --campaign --budgets soon", "cannot read the duration 'soon'"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "says"), BAD_INPUT)
def test_bad_input_is_answered_by_a_line(line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A Python outside of a virtual environment finds no MPI beside itself.
    if says == "no mpiexec" and sys.prefix != sys.base_prefix:
        pytest.skip("the MPI of this virtual environment would be found")
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("")
    save_example(Path("TUNED"))
    places = {"PROGRAM": str(Path(sys.executable).resolve()), "TABLE": str(TABLE)}
    done = colltune(*(places.get(word, word) for word in line.split()), code=2)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 or line == "verfy" or "--masure" in line, done.stderr
    assert says in done.stderr
    # The folder for what would have been measured may be there, empty.
    assert {path.name for path in tmp_path.iterdir()} <= {"FILE", "TUNED", "tuned", "evaluation"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1}', '{"schema": 2}', "\xff"])
def test_a_manifest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(text, encoding="latin-1")
    fails_with_one_line(colltune("env", str(tmp_path)), "tuning.json")


@pytest.mark.parametrize("data", [b'{"collective=bcsat": {}}\n', b"{", None])
@pytest.mark.parametrize("provisional", [False, True])
def test_a_file_that_is_not_what_was_written_is_refused(provisional: bool, data: bytes | None, tmp_path: Path) -> None:
    save_provisional(tmp_path)
    file = tmp_path / ("provisional" if provisional else "") / "mpich" / "mpich-coll.json"
    file.unlink() if data is None else file.write_bytes(data)
    options = ["--provisional"] * provisional
    for words in (["env", str(tmp_path), *options], ["run", *options, str(tmp_path), "--", "/bin/echo", "started"]):
        fails_with_one_line(colltune(*words), "mpich-coll.json")


def test_what_to_install_is_named_as_pip_finds_it() -> None:
    # There is no release of colltune: an extra of it cannot be installed by name.
    package = Path(colltune_package.__file__).parent
    named = [path.name for path in package.rglob("*.py") if "colltune[" in path.read_text(encoding="utf-8")]
    assert named == []


def test_env_prints_exports_that_give_the_shell_every_byte_of_the_path(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/with space gr\xc3\xb6\xff"))
    save_example(directory)
    command = [sys.executable, "-m", "colltune", "env", os.fsencode(directory)]
    environment = {"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"}
    exports = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=True).stdout
    script = exports + b'\nprintf %s "$MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"'
    shown = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout
    assert shown == os.fsencode(directory / "mpich" / "mpich-coll.json")


def test_no_encoding_of_the_terminal_makes_a_command_fail(tmp_path: Path) -> None:
    directory = tmp_path / "größe"
    save_example(directory)
    for words in (["report", str(directory), "--diff", str(directory)], ["explain", str(directory), "größe"],
                  ["lint", "größe"]):  # fmt: skip
        done = colltune(*words, PYTHONIOENCODING="ascii", LC_ALL="C")
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout.isascii()
        assert done.stderr.isascii()


def save_provisional(directory: Path) -> Tuning:
    """As a job leaves it that was ended: the default stands, and ring is provisional."""
    held = save_example(directory)
    entry = {"scenario": ["allgather", 1, 4, 64], "choice": "ring", "verdict": "provisional", "ratios": [2.0]}
    tuning = replace(
        held,
        rule_sets={"allgather": RuleSet.always("allgather", SizeBasis.TOTAL)},
        summary=read_summary({"gate": [entry]}),
        provisional=Provisional.of(held),
    )
    save_tuning(directory, tuning)
    return tuning


def test_what_is_provisional_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    written = save_provisional(tmp_path)
    assert load_tuning(tmp_path) == written
    show = ("/bin/sh", "-c", "echo ${MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE-none}; exit 7")
    file = str(tmp_path / "provisional" / "mpich" / "mpich-coll.json")
    done = colltune("run", str(tmp_path), "--", *show, code=7)
    assert done.stdout.strip() == "none"
    assert "1 provisional decision is left out" in done.stderr
    for options in (["--provisional", str(tmp_path)], [str(tmp_path), "--provisional"]):
        done = colltune("run", *options, "--", *show, code=7)
        assert (done.stdout.strip(), done.stderr) == (file, "")
    done = colltune("env", str(tmp_path))
    assert (done.stdout, "1 provisional decision is left out" in done.stderr) == ("", True)
    done = colltune("env", str(tmp_path), "--provisional")
    assert file in done.stdout
    assert colltune_package.load(tmp_path).variables == {}
    assert colltune_package.load(tmp_path, provisional=True).variables.popitem()[1] == file


def test_run_refuses_an_mpiexec_of_another_mpi(tmp_path: Path) -> None:
    save_example(tmp_path / "tuned")
    other = shell_script(tmp_path / "mpiexec", 'echo "mpiexec (OpenRTE) 4.1.4"')
    done = colltune("run", str(tmp_path / "tuned"), "--", str(other), "-n", "2", "./app", path="/bin:/usr/bin")
    fails_with_one_line(done, "openmpi 4.1.4", "mpich 5.0.2")


def test_the_version_is_the_projects() -> None:
    """As it is now: a build of this tree, which other tests make, writes it anew."""
    shown = run_to_end([sys.executable, "-m", "colltune", "--version"], check=True)
    assert shown.stdout == f"colltune {read_version(Path(colltune_package.__file__).parent / 'core')}\n"


def test_printed_commands_are_quoted_and_start_what_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    here = shlex.split(run_command("a b/tuned", mpiexec="/opt/mpi/bin/mpiexec"))
    assert here[1:] == ["run", "a b/tuned", "--", "mpiexec", "./app"]
    if (Path(sys.executable).parent / "colltune").is_file():
        assert Path(here[0]) == Path(sys.executable).parent / "colltune"
    shell_script(tmp_path / "mpiexec", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert " -- mpiexec ./app" in run_command("tuned", mpiexec=str(tmp_path / "mpiexec"))
    assert " -- /opt/mpi/bin/mpiexec ./app" in run_command("tuned", mpiexec="/opt/mpi/bin/mpiexec")


def test_the_help_names_the_commands_and_fits_a_terminal_of_24_lines_and_80_columns() -> None:
    lines = colltune("--help", code=0).stdout.splitlines()
    assert {"tune", "run", "env", "report", "verify", "doctor"} <= {line[2:].partition(" ")[0] for line in lines}
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(lines)  # nothing is cut
