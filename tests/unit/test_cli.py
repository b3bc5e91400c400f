"""The command line without an MPI: help, slips of the fingers, and files that are not what they should be."""

import json
import os
import shlex
import subprocess
import sys
from ast import literal_eval
from dataclasses import replace
from pathlib import Path

import pytest
from written_summary import read_summary

import colltune as colltune_api
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
from commands import run_to_end
from lint_trees import complete_file


def colltune(*arguments: str, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The command with only ``path`` on PATH, so that no MPI of the machine is found by chance."""
    told = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return commands.colltune(*arguments, environ=told | environment)


def fails_with_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


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


def test_words_behind_two_dashes_are_the_launch_line_and_go_on_with_the_campaign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    assert options.machine is not None
    assert (options.machine.launch_line, options.collectives) == (line, ["bcast"])
    assert go_on.endswith(f" tune bcast --budget 9s --resume -- {line}")


def test_help_names_the_commands_and_imports_no_heavy_library() -> None:
    done = colltune("--help")
    assert done.returncode == 0
    for command in ("tune", "run", "env", "report", "verify", "doctor"):
        assert f"\n  {command} " in done.stdout
    script = (
        "import sys\nfrom colltune.cli.app import app\nimport colltune.session.site.state\n"
        "print([name for name in ('sklearn', 'scipy', 'numpy', 'pandas', 'matplotlib') if name in sys.modules])"
    )
    loaded = run_to_end([sys.executable, "-c", script], check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_job_does_not_wait_at_its_start_for_libraries_of_the_proof(tmp_path: Path) -> None:
    save_example(tmp_path)
    script = (
        "import os, sys\nfrom colltune.cli.app import app\n"
        "os.execvpe = lambda *_: print([name for name in ('numpy', 'scipy', 'sklearn') if name in sys.modules])\n"
        f"app(['run', {str(tmp_path)!r}, '--', '/bin/true'])"
    )
    loaded = run_to_end([sys.executable, "-c", script], check=True)
    assert loaded.stdout.strip() == "[]"


def test_a_command_imports_neither_the_others_nor_rich() -> None:
    script = (
        "import sys\nfrom colltune.cli.app import app\n"
        "try:\n    app(['env', 'nowhere'])\nexcept Exception:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('colltune.cli.') or name == 'rich'))"
    )
    loaded = run_to_end([sys.executable, "-c", script], check=True)
    names = {name.removeprefix("colltune.cli.") for name in literal_eval(loaded.stdout)}
    assert names >= {"app", "env"}
    assert names.isdisjoint({"tune", "run", "predict", "site", "rich"})


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    done = colltune("verfy")
    assert done.returncode == 2
    assert "Did you mean 'verify'?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune", "bcast", "--budget", "0s"], ["'0s'", "above zero"]),
        (["tune", "bcast", "--budget", "soon"], ["'soon'", "5m"]),
        (["tune", "bcast", "--max-size", "1XB"], ["'1XB'", "64KiB"]),
        (["tune", "bcast", "--gate", "maybe"], ["maybe"]),
        (["tune", "bcast"], ["no mpiexec"]),
        (["tune", "bcast", "--mpiexec", "/nowhere/mpiexec"], ["/nowhere/mpiexec"]),
        (["env", "nowhere"], ["nowhere", "colltune tune"]),
        (["run", "nowhere", "--", "true"], ["nowhere"]),
        (["doctor"], ["no mpiexec"]),
    ],
)
def test_bad_input_gives_one_line_with_what_to_do_next(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    if arguments[0] == "tune":
        arguments = [*arguments, "--out", str(tmp_path / "tuned")]
    # A Python outside of a virtual environment finds no MPI beside itself.
    if "no mpiexec" in words and sys.prefix != sys.base_prefix:
        pytest.skip("the MPI of this virtual environment would be found")
    fails_with_one_line(colltune(*arguments), *words)


def test_what_to_install_is_named_as_pip_finds_it() -> None:
    # There is no release of colltune: an extra of it cannot be installed by name.
    package = Path(colltune_package.__file__).parent
    named = [path.name for path in package.rglob("*.py") if "colltune[" in path.read_text(encoding="utf-8")]
    assert named == []


def test_an_unwritable_directory_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fails_with_one_line(colltune("tune", "bcast", "--out", str(tmp_path / "file" / "tuned")), "cannot write")


def test_a_tuning_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    written = save_example(tmp_path)
    assert load_tuning(tmp_path) == written


def test_env_prints_exports_with_the_place_of_the_files(tmp_path: Path) -> None:
    directory = tmp_path / "with space"
    save_example(directory)
    done = colltune("env", str(directory))
    assert done.returncode == 0
    script = f'{done.stdout}\nprintf %s "$MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"'
    shown = run_to_end(["/bin/sh", "-c", script], check=True)
    assert shown.stdout == str(directory / "mpich" / "mpich-coll.json")


def test_no_encoding_of_the_terminal_makes_a_command_fail(tmp_path: Path) -> None:
    directory = tmp_path / "größe"
    save_example(directory)
    for words in (
        ["report", str(directory), "--diff", str(directory)],
        ["explain", str(directory), "größe"],
        ["lint", "größe"],
    ):
        done = colltune(*words, PYTHONIOENCODING="ascii", LC_ALL="C")
        assert "Traceback" not in done.stderr, done.stderr
        assert done.stdout.isascii()
        assert done.stderr.isascii()


def test_env_gives_the_shell_every_byte_of_a_path(tmp_path: Path) -> None:
    directory = Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xc3\xb6\xff"))
    save_example(directory)
    done = subprocess.run(
        [sys.executable, "-m", "colltune", "env", os.fsencode(directory)],
        capture_output=True,
        env={"PATH": "", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=True,
    )
    assert os.fsencode(directory) in done.stdout


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
    show = ("/bin/sh", "-c", "echo ${MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE-none}")
    file = str(tmp_path / "provisional" / "mpich" / "mpich-coll.json")
    done = colltune("run", str(tmp_path), "--", *show)
    assert done.stdout.strip() == "none"
    assert "1 provisional decision is left out" in done.stderr
    for options in (["--provisional", str(tmp_path)], [str(tmp_path), "--provisional"]):
        done = colltune("run", *options, "--", *show)
        assert (done.stdout.strip(), done.stderr) == (file, "")
    done = colltune("env", str(tmp_path))
    assert (done.stdout, "1 provisional decision is left out" in done.stderr) == ("", True)
    done = colltune("env", str(tmp_path), "--provisional")
    assert file in done.stdout
    api = colltune_api.load(tmp_path)
    assert api.variables == {}
    assert colltune_api.load(tmp_path, provisional=True).variables.popitem()[1] == file


def test_a_provisional_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    save_provisional(tmp_path)
    (tmp_path / "provisional" / "mpich" / "mpich-coll.json").write_text("{")
    fails_with_one_line(colltune("env", str(tmp_path), "--provisional"), "mpich-coll.json")


@pytest.mark.parametrize("harm", ["changed", "cut", "gone"])
def test_run_refuses_a_file_that_is_not_what_was_written(harm: str, tmp_path: Path) -> None:
    save_example(tmp_path)
    file = tmp_path / "mpich" / "mpich-coll.json"
    match harm:
        case "changed":
            file.write_bytes(b'{"collective=bcsat": {}}\n')
        case "cut":
            file.write_bytes(b"{")
        case "gone":
            file.unlink()
    fails_with_one_line(colltune("run", str(tmp_path), "--", "/bin/echo", "started"), "mpich-coll.json")


def test_run_starts_the_command_with_the_files_in_its_environment(tmp_path: Path) -> None:
    save_example(tmp_path)
    done = colltune(
        "run", str(tmp_path), "--", "/bin/sh", "-c", "echo $MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE; exit 7"
    )
    assert done.returncode == 7
    assert done.stdout.strip() == str(tmp_path / "mpich" / "mpich-coll.json")


def test_run_without_a_command_says_how_to_write_one(tmp_path: Path) -> None:
    save_example(tmp_path)
    for words in ([str(tmp_path)], [str(tmp_path), "mpiexec", "-n", "4", "./app"], [str(tmp_path), "--"]):
        fails_with_one_line(colltune("run", *words), "there is no command to run", "mpiexec -n 4 ./app")


def test_run_refuses_an_option_that_it_does_not_have(tmp_path: Path) -> None:
    done = colltune("run", "--masure", str(tmp_path), "--", "true")
    assert done.returncode == 2
    assert "--masure" in done.stderr


def test_run_refuses_an_mpiexec_of_another_mpi(tmp_path: Path) -> None:
    save_example(tmp_path / "tuned")
    other = tmp_path / "mpiexec"
    other.write_text('#!/bin/sh\necho "mpiexec (OpenRTE) 4.1.4"\n')
    other.chmod(0o755)
    done = colltune("run", str(tmp_path / "tuned"), "--", str(other), "-n", "2", "./app", path="/bin:/usr/bin")
    fails_with_one_line(done, "openmpi 4.1.4", "mpich 5.0.2")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1}', "\xff"])
def test_a_manifest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuning.json").write_text(text, encoding="latin-1")
    fails_with_one_line(colltune("env", str(tmp_path)), "tuning.json")


def test_a_manifest_of_another_schema_says_so(tmp_path: Path) -> None:
    save_example(tmp_path)
    manifest = json.loads((tmp_path / "tuning.json").read_text())
    manifest["schema"] = 2
    (tmp_path / "tuning.json").write_text(json.dumps(manifest))
    fails_with_one_line(colltune("env", str(tmp_path)), "schema 2")


def test_the_version_is_the_projects() -> None:
    """As it is now: a build of this tree, which other tests make, writes it anew."""
    command = [sys.executable, "-m", "colltune", "--version"]
    shown = run_to_end(command)
    now = read_version(Path(colltune_package.__file__).parent / "core")
    assert (shown.returncode, shown.stdout) == (0, f"colltune {now}\n")


@pytest.mark.parametrize(
    "option",
    [
        ["--runtime", "1h"],
        ["--check"],
        ["--min-size", "8"],
        ["--sizes", "8,300"],
        ["--gate", "off"],
        ["--reproducible"],
        ["--topology", "serial"],
    ],
)
def test_tune_alltoallv_refuses_what_it_would_ignore(option: list[str], tmp_path: Path) -> None:
    done = colltune("tune", "alltoallv", *option, "--out", str(tmp_path), "--mpiexec", "/nowhere/mpiexec")
    fails_with_one_line(done, f"{option[0]} cannot be used with `tune alltoallv`")


def test_report_writes_its_text_to_a_file_as_asked(tmp_path: Path) -> None:
    save_example(tmp_path / "tuned")
    manifest = tmp_path / "tuned" / "tuning.json"
    content = json.loads(manifest.read_text())
    content["summary"] |= {"total_s": 1.0, "samples": 1, "share": {"launches": 1, "wall_s": 1.0}}
    manifest.write_text(json.dumps(content))
    done = colltune("report", str(tmp_path / "tuned"), "--text", "--out", str(tmp_path / "text"))
    assert done.stdout == f"wrote {tmp_path / 'text'}\n", done.stderr
    assert "MPI: mpich 5.0.2" in (tmp_path / "text").read_text()
    done = colltune("report", str(tmp_path / "tuned"), "--text", "--out", str(tmp_path / "nowhere" / "text"))
    fails_with_one_line(done, "cannot write")


def test_printed_commands_are_quoted_and_start_what_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    here = shlex.split(run_command("a b/tuned", "/opt/mpi/bin/mpiexec", 4))
    assert here[1:] == ["run", "a b/tuned", "--", "mpiexec", "-n", "4", "./app"]
    if (Path(sys.executable).parent / "colltune").is_file():
        assert Path(here[0]) == Path(sys.executable).parent / "colltune"
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert " -- mpiexec -n 4 " in run_command("tuned", str(tmp_path / "mpiexec"), 4)
    assert " -- /opt/mpi/bin/mpiexec -n 4 " in run_command("tuned", "/opt/mpi/bin/mpiexec", 4)


def test_counts_are_for_alltoallv_alone(tmp_path: Path) -> None:
    done = colltune("tune", "bcast", "--counts", "counts.npy", "--out", str(tmp_path))
    fails_with_one_line(done, "--counts is for alltoallv")


@pytest.mark.parametrize("flag", ["--measure", "--prove", "--profile", "--auto", "--provisional"])
def test_run_with_a_table_of_alltoallv_alone_refuses_what_it_would_ignore(flag: str, tmp_path: Path) -> None:
    done = colltune("run", flag, "--alltoallv", str(tmp_path), "--", "true")
    fails_with_one_line(done, f"{flag} says nothing of MPI_Alltoallv")


def test_run_looks_for_the_table_of_alltoallv_in_a_directory(tmp_path: Path) -> None:
    done = colltune("run", "--alltoallv", str(tmp_path), "--", "true")
    fails_with_one_line(done, str(tmp_path / "alltoallv.rules"))


def test_the_help_fits_a_terminal_of_24_lines_and_80_columns() -> None:
    lines = colltune("--help").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "..." not in "".join(lines)  # nothing is cut
