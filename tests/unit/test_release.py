"""A release: the archives that a tag makes, and what somebody meets who installs one, without the study or with it."""

import importlib.util
import os
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import typer

from colltune.core import disturbance, extras
from colltune.core.extras import __version__, read_version
from commands import Done, colltune, ended_with, run_to_end

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "packaging" / "man" / "colltune.1"


def module(name: str) -> list[str]:
    """The command of a tool of this environment; skips the test where it is not installed."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed in this environment")
    return [sys.executable, "-m", name]


def run(command: list[str], place: Path, **environment: str) -> Done:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return run_to_end(command, cwd=place, env={**kept, **environment}, timeout=600)


def must(command: list[str], place: Path, **environment: str) -> str:
    return ended_with(0, run(command, place, **environment)).stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The archives of a clone whose newest commit is tagged v7.8.9; the wheel is made from the sdist."""
    build = module("build")
    for needed in ("hatchling", "hatch_vcs"):
        module(needed)
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this source tree is no git repository, so it has no tags")
    place = tmp_path_factory.mktemp("release")
    must(["git", "-c", f"safe.directory={ROOT}", "clone", "--quiet", "--shared", str(ROOT), "source"], place)
    must(["git", "tag", "v7.8.9"], place / "source")
    must([*build, "--no-isolation", "--outdir", str(place / "dist"), str(place / "source")], place)
    (wheel,) = (place / "dist").glob("*.whl")
    (sdist,) = (place / "dist").glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def test_the_version_is_the_tags(release: dict[str, Path]) -> None:
    assert release["wheel"].name == "colltune-7.8.9-py3-none-any.whl"
    assert release["sdist"].name == "colltune-7.8.9.tar.gz"
    with zipfile.ZipFile(release["wheel"]) as archive:
        assert archive.read("colltune/core/version.txt").decode().strip() == "7.8.9"
        assert "\nVersion: 7.8.9\n" in archive.read("colltune-7.8.9.dist-info/METADATA").decode()


def test_without_a_build_the_version_is_that_of_the_installed_package(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("3.2.1\n")
    assert read_version(tmp_path) == "3.2.1"
    assert re.match(r"\d+(\.\d+)+|0\+unknown", read_version(tmp_path / "nothing"))


def test_twine_finds_nothing_wrong(release: dict[str, Path]) -> None:
    said = must([*module("twine"), "check", "--strict", *map(str, release.values())], ROOT)
    assert said.count("PASSED") == 2


def test_the_sdist_holds_what_the_wheel_is_made_of_and_no_measurements(release: dict[str, Path]) -> None:
    with tarfile.open(release["sdist"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CITATION.cff", "SECURITY.md", "CHANGELOG.md", "LICENSE", "native/agent/main.c"} <= names
    assert not [name for name in names if name.startswith(("benchmarks/data/", ".venv", "build/"))]


@pytest.fixture(scope="module")
def installed(release: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel, and sees the requirements that the tests themselves have."""
    place = tmp_path_factory.mktemp("installed")
    must([sys.executable, "-m", "venv", "--without-pip", str(place)], place)
    pip = [*module("pip"), "--python", str(place / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    must([*pip, str(release["wheel"])], place)
    (packages,) = (place / "lib").glob("python*/site-packages")
    requirements = Path(typer.__file__).parents[1]
    (packages / "requirements.pth").write_text(f"{requirements}\n")
    return place


def test_the_installed_command_works_in_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    said = must([str(installed / "bin" / "colltune"), "--version"], tmp_path, PATH="/nowhere")
    assert said == "colltune 7.8.9\n"
    manual = installed / "share" / "man" / "man1" / "colltune.1"
    assert manual.read_text(encoding="utf-8").startswith(".TH COLLTUNE 1")


def test_without_an_mpi_there_is_one_line(installed: Path, tmp_path: Path) -> None:
    done = run([str(installed / "bin" / "colltune"), "tune", "bcast"], tmp_path, PATH="/nowhere")
    (line,) = ended_with(2, done).stderr.strip().splitlines()
    assert "there is no mpiexec" in line
    assert "pip install" in line


def test_without_a_compiler_there_is_one_line_that_names_it(installed: Path, tmp_path: Path) -> None:
    """An MPI whose mpicc calls a compiler that is not there."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no MPI is installed beside this Python")
    tells_of_the_compiler([str(installed / "bin" / "colltune"), "tune", "bcast", "--mpiexec", str(mpiexec)], tmp_path)


def tells_of_the_compiler(command: list[str], place: Path) -> None:
    """``command``, in an empty directory and with a PATH on which there is no compiler, says so in one line."""
    tools, empty = place / "tools", place / "empty"
    tools.mkdir()
    empty.mkdir()
    for name in ("sh", "bash", "sed", "env", "basename", "dirname", "expr", "uname", "ldd", "cat"):
        if (found := shutil.which(name)) is not None:
            (tools / name).symlink_to(found)
    done = run(command, empty, PATH=str(tools), COLLTUNE_CACHE=str(place / "cache"))
    (line,) = ended_with(2, done).stderr.strip().splitlines()
    assert "calls the C compiler" in line
    assert [path.name for path in empty.iterdir()] in ([], ["tuned"])


@pytest.mark.slow
def test_a_fresh_environment_with_an_mpich_of_its_own_needs_only_a_compiler(
    release: dict[str, Path], tmp_path: Path
) -> None:
    """`pip install 'WHEEL[mpich]'` into a new environment, as a user does, with all requirements from the index."""
    place = tmp_path / "fresh"
    must([sys.executable, "-m", "venv", str(place)], tmp_path)
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    must([str(place / "bin" / "pip"), "install", "--quiet", f"{release['wheel']}[mpich]"], tmp_path, **settings)
    command = str(place / "bin" / "colltune")
    assert must([command, "--version"], tmp_path, PATH="/nowhere") == "colltune 7.8.9\n"
    tells_of_the_compiler([command, "doctor"], tmp_path)
    here = {"COLLTUNE_CACHE": str(tmp_path / "with-a-compiler"), disturbance.VARIABLE: disturbance.ACCEPT}
    assert "test launch    2 ranks" in must([command, "doctor", "--ppn", "2"], tmp_path, **here)
    words = ["allreduce", "--ppn", "2", "--max-size", "64", "--budget", "20s", "--out", "tuned"]
    must([command, "tune", *words], tmp_path, **here)
    must([str(place / "bin" / "mpicc"), str(ROOT / "tests" / "native" / "one_sum.c"), "-o", "one_sum"], tmp_path)
    here["PATH"] = f"{place / 'bin'}:{os.environ['PATH']}"  # as `activate` sets it
    for way in ([], ["--measure"]):
        said = must([command, "run", *way, "tuned", "--", "mpiexec", "-n", "2", "./one_sum"], tmp_path, **here)
        assert said == "sum 1\nsum 1\n"
    must([command, "profile", "--", "mpiexec", "-n", "2", "./one_sum"], tmp_path, **here)
    assert "allreduce" in must([command, "report", "--text", "tuned"], tmp_path, **here)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_tools_for_commands_install_it(release: dict[str, Path], tool: str, tmp_path: Path) -> None:
    """With all its requirements from the package index, as a user does."""
    command = {"pipx": ["install", "--quiet"], "uv": ["tool", "install", "--quiet", "--python", sys.executable]}[tool]
    places = {"PIPX_HOME": "home", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "home", "UV_TOOL_BIN_DIR": "bin"}
    environment = {name: str(tmp_path / place) for name, place in places.items()}
    # Where the index is behind a site's own certificate, pip is told so, and uv by another name.
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    if "PIP_CERT" in os.environ:
        environment["SSL_CERT_FILE"] = os.environ["PIP_CERT"]
    must([*module(tool), *command, str(release["wheel"])], tmp_path, **environment)
    assert must([str(tmp_path / "bin" / "colltune"), "--version"], tmp_path) == "colltune 7.8.9\n"


def test_the_manual_page_is_well_formed() -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    done = run(["groff", "-man", "-Tascii", "-ww", str(MANUAL)], ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "EXIT STATUS" in re.sub(".\b", "", done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(shell: str, tmp_path: Path) -> None:
    """What the scripts of `--show-completion` ask the command."""
    asked = {
        "bash": {"COMP_WORDS": "colltune ver", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "colltune ver"},
        "fish": {"_TYPER_COMPLETE_ARGS": "colltune ver", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    command = [sys.executable, "-c", "from colltune.cli import main; main()"]
    paths = os.pathsep.join(sys.path)
    said = run(command, tmp_path, PYTHONPATH=paths, _COLLTUNE_COMPLETE=f"complete_{shell}", **asked).stdout
    assert "verify" in said
    assert "predict" not in said


def test_the_changelog_keeps_its_form() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^### (.*)$", changelog, re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert changelog.index("## [Unreleased]") < changelog.index("## [0.2.0]")
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        # Lines for users stand below a kind. A merge by union puts them elsewhere, and brings old ones back.
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert "\n- " not in section.partition("\n### ")[0]
        assert len(kinds) == len(set(kinds))


_INSTALL = "Run pip install ./packaging/study"


def test_the_commands_of_the_study_are_listed_and_run() -> None:
    shown = colltune("study", "--help", code=0)
    for name in ("collect", "evaluate", "train"):
        assert f"\n  {name} " in shown.stdout
        assert colltune("study", name, "--help").returncode == 0


@pytest.mark.parametrize("words", [["study"], ["study", "evaluate", "data.csv", "--seeds", "3"]])
def test_without_the_study_one_line_says_how_to_get_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_study_version", lambda: "")
    done = colltune(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("colltune: this needs colltune-study, which is not installed. " + _INSTALL)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "entry", "what"),
    [
        ("9.9.0", "colltune_study.cli:COMMANDS", f"9.9.0 does not fit colltune {__version__}"),
        (__version__, "absent_module:COMMANDS", "cannot be loaded: No module named 'absent_module'"),
        (__version__, "colltune_study.cli:ABSENT", "cannot be loaded: module 'colltune_study.cli' has no attribute"),
    ],
)
def test_a_study_that_does_not_fit_is_named_and_not_run(
    version: str, entry: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / f"colltune_study-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: colltune-study\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[colltune.study]\ncommands = {entry}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    done = colltune("study", "evaluate", "data.csv", code=2)
    assert what in done.stderr
    assert _INSTALL in done.stderr
    assert "Traceback" not in done.stderr
    # The other commands do not care.
    assert colltune("--help").returncode == 0
