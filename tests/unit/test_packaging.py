"""What is shipped: the wheel holds all that the commands need, and the recipes agree with the project's metadata."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from colltune.emit.mpich.selection_file import MpichEmitter
from commands import run_to_end

ROOT = Path(__file__).parents[2]


def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


PROJECT = tomllib.loads(text_of("pyproject.toml"))
METADATA, BUILD = PROJECT["project"], PROJECT["build-system"]["requires"]
CONDA, CITATION = (yaml.safe_load(text_of(name)) for name in ("packaging/conda/recipe.yaml", "CITATION.cff"))
CODEMETA = json.loads(text_of("codemeta.json"))
# What it names is needed at least in this version.
LEAST = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups() for requirement in METADATA["dependencies"])  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return names_in(built(tmp_path_factory.mktemp("wheel")))


def built(place: Path, project: Path = ROOT, kind: str = "wheel") -> Path:
    """The archive of ``project``, which is built into ``place``."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(place)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (made,) = place.iterdir()
    return made


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_study_has_a_wheel_of_its_own_of_which_the_users_has_nothing(wheel: set[str], tmp_path: Path) -> None:
    package = ROOT / "src" / "colltune_study"
    files = {str(path.relative_to(package.parent)) for path in package.rglob("*") if path.is_file()}
    study = names_in(built(tmp_path, ROOT / "packaging" / "study"))
    assert {name for name in files if not name.endswith(".pyc")} <= study
    assert not {name for name in study if not name.startswith("colltune_study")}
    assert not {name for name in wheel if "colltune_study" in name}
    project = tomllib.loads(text_of("packaging/study/pyproject.toml"))
    assert "colltune" in project["project"]["dependencies"]
    versions = {one["tool"]["hatch"]["version"]["fallback-version"] for one in (project, PROJECT)}
    assert len(versions) == 1


def test_the_wheel_holds_every_source_that_users_compile_and_every_file_that_the_package_reads(wheel: set[str]) -> None:
    native = ROOT / "native"
    sources = {path.relative_to(native) for path in native.rglob("*") if path.suffix in {".c", ".h"}}
    assert sources
    assert {f"colltune/_native/{source}" for source in sources} <= wheel
    files = [path for path in (ROOT / "src/colltune").rglob("*") if path.is_file()]
    read = {str(path.relative_to(ROOT / "src")) for path in files if path.suffix not in {".py", ".pyc"}}
    assert {".toml", ".j2"} <= {Path(name).suffix for name in read}
    assert {"colltune/py.typed", *read} <= wheel


def test_the_spack_recipe_asks_for_the_same_packages() -> None:
    recipe = text_of("packaging/spack/package.py")
    # From Spack 1.0 on a recipe imports its build system.
    assert "from spack_repo.builtin.build_systems.python import PythonPackage\n" in recipe
    for name, version in LEAST.items():
        assert f'depends_on("py-{name}@{version}:"' in recipe
    # Spack's own packages lack this one.
    own = text_of("packaging/spack/py_msgspec/package.py")
    assert 'version("0.22.0"' in own
    assert f'depends_on("python@{METADATA["requires-python"].removeprefix(">=")}:"' in recipe


def test_the_debian_package_asks_for_the_same_packages() -> None:
    control = text_of("packaging/debian/control")
    names = {"pyyaml": "yaml"}
    for name, version in LEAST.items():
        epoch = "1:" if name == "numpy" else ""
        assert f" python3-{names.get(name, name)} (>= {epoch}{version})," in control
    for requirement in BUILD:
        assert f" python3-{requirement.replace('>=', ' (>= ')})," in control


def test_the_demo_installs_what_a_plain_install_needs_as_the_tests_do_and_no_test_tools() -> None:
    def pinned(name: str) -> set[str]:
        return {line for line in text_of(name).splitlines() if line[:1] not in ("#", "")}

    demo = pinned("requirements-demo.txt")
    assert demo <= pinned("requirements.txt")
    names = {line.partition("==")[0].lower() for line in demo}
    extras = {one.partition(">")[0] for one in METADATA["optional-dependencies"]["report"]}
    assert not LEAST.keys() & extras, "what is large and seldom used"
    assert LEAST.keys() | extras | {"mpich"} <= names
    assert not names & {"pytest", "scikit-learn", "pandas", "pyarrow", "matplotlib", "optuna"}


def test_the_module_file_sets_what_env_prints() -> None:
    module = text_of("packaging/modulefiles/colltune-tuned.lua")
    variables = MpichEmitter.environment(object.__new__(MpichEmitter), Path("tuned/mpich"))
    assert set(re.findall(r'^\s*setenv\("(\w+)"', module, re.MULTILINE)) == set(variables)
    for value in variables.values():
        assert value.removeprefix("tuned/") in module


def test_every_file_that_names_the_version_names_the_same() -> None:
    newest, date = re.findall(r"^## \[(\d[\d.]*)\] - (\d{4}-\d\d-\d\d)$", text_of("CHANGELOG.md"), re.MULTILINE)[0]
    assert PROJECT["tool"]["hatch"]["version"]["fallback-version"] == newest
    assert text_of("packaging/debian/changelog").startswith(f"colltune ({newest}-")
    assert CONDA["context"]["version"] == CITATION["version"] == CODEMETA["version"] == newest
    assert str(CITATION["date-released"]) == date
    assert (ROOT / f"examples/easybuild/colltune-{newest}-gfbf-2025a.eb").is_file()


def test_the_recipe_for_conda_asks_for_the_same_packages() -> None:
    run, host = ({line.replace(" ", "") for line in CONDA["requirements"][one]} for one in ("run", "host"))
    assert run == {*METADATA["dependencies"], f"python{METADATA['requires-python']}"}
    assert host == {*BUILD, "pip", f"python{METADATA['requires-python']}"}
    (command,) = CONDA["build"]["python"]["entry_points"]
    assert command == f"colltune = {METADATA['scripts']['colltune']}"


def test_the_citation_and_codemeta_say_what_the_project_says() -> None:
    assert {"cff-version", "message", "title", "authors", "type"} <= CITATION.keys()
    assert CITATION["license"] == METADATA["license"]
    assert CODEMETA["license"] == f"https://spdx.org/licenses/{METADATA['license']}"
    assert CODEMETA["softwareRequirements"] == list(LEAST)
    assert CODEMETA["runtimePlatform"] == f"Python {METADATA['requires-python'].removeprefix('>=')}"
    assert [one["name"] for one in CITATION["authors"]] == [one["name"] for one in CODEMETA["author"]]
    assert CITATION["keywords"] == CODEMETA["keywords"]


def test_the_bill_of_materials_names_the_wheel_and_each_package_that_it_needs(tmp_path: Path) -> None:
    wheel = tmp_path / "colltune-7.8.9-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    script = ROOT / "packaging" / "sbom.py"
    bill = json.loads(run_to_end([sys.executable, script, wheel], check=True).stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    product = bill["metadata"]["component"]
    assert product["version"] == "7.8.9"
    assert product["hashes"][0]["content"] == hashlib.sha256(b"a wheel").hexdigest()
    assert {one["name"].lower() for one in bill["components"] if one["scope"] == "required"} == LEAST.keys()
    assert len(bill["dependencies"][0]["dependsOn"]) == len(LEAST)
    references = [one["bom-ref"] for one in bill["components"]]
    assert len(set(references)) == len(references) > len(LEAST)
    absent = run_to_end([sys.executable, script, tmp_path / "no.whl"])
    assert (absent.returncode, absent.stderr.count("\n")) == (1, 1)


def test_the_containers_install_the_wheel_and_a_compiler_and_nothing_of_this_machine() -> None:
    for name in ("Containerfile", "colltune.def"):
        text = text_of(f"packaging/containers/{name}")
        assert "dist/*.whl /opt/" in text
        assert re.search(r"apt-get install -y --no-install-recommends gcc libc6-dev", text)
        base = re.search(r"^(?:FROM|From:) python:(3\.\d+)-slim$", text, re.MULTILINE)
        assert base
        assert base.group(1) == METADATA["requires-python"].removeprefix(">=")
        assert "colltune --version" in text


def test_the_paper_cites_what_its_bibliography_has_and_every_figure_that_it_shows_is_there() -> None:
    _, head, body = text_of("paper/paper.md").split("---\n", 2)
    said = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= said.keys()
    entries = set(re.findall(r"^@\w+\{(\w+),", text_of(f"paper/{said['bibliography']}"), re.MULTILINE))
    assert entries == set(re.findall(r"@(\w+)", body))
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", body):
        assert (ROOT / "paper" / path).is_file(), path
    assert "# Statement of need" in body
    # Each figure of the paper is one of docs/results.md, so that neither can be changed alone.
    results = text_of("docs/results.md")
    figures = re.findall(r"\d+\.\d+(?:%)?|\d{1,3}(?:,\d{3})+", body.split("# Results")[1].split("\n# ")[0])
    assert len(figures) > 20
    assert [one for one in figures if one.rstrip("%") not in results] == []


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_are_equal_byte_by_byte(kind: str, tmp_path: Path) -> None:
    first, second = (built(tmp_path / name, kind=kind) for name in ("first", "second"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_easybuild_installs_it_on_the_system_s_python(tmp_path: Path) -> None:
    lmod = Path("/usr/share/lmod/lmod/libexec")
    if not (lmod / "lmod").exists():
        pytest.skip("Lmod is not installed")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "tools")], check=True)
    python = tmp_path / "tools" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "easybuild", "hatchling", "hatch-vcs"], check=True)
    wheel = built(tmp_path / "dist")
    # A recipe that also predicts for the MPI of this environment, and writes that beside it.
    mpiexec = Path(sys.executable).with_name("mpiexec")
    predicted = mpiexec.parents[1] / "share" / "colltune" / "predicted"
    more = ["--predict", mpiexec] if mpiexec.exists() and not predicted.exists() else []
    write = [python, ROOT / "packaging" / "easyconfig.py", wheel, *more]
    recipe = run_to_end(write, check=True).stdout
    version = re.search(r"^version = '(.*)'", recipe, re.MULTILINE).group(1)  # type: ignore[union-attr]
    (tmp_path / f"colltune-{version}.eb").write_text(recipe)
    environment = {
        **os.environ,
        "PATH": f"{lmod}:{python.parent}:{os.environ['PATH']}",
        "EB_PYTHON": str(python),
        "EASYBUILD_ALLOW_USE_AS_ROOT_AND_ACCEPT_CONSEQUENCES": "1",
    }
    sources = f"--sourcepath={wheel.parent}:{tmp_path / 'sources'}"
    words = ["--modules-tool=Lmod", sources, f"--prefix={tmp_path / 'prefix'}"]
    words += ["--detect-loaded-modules=ignore", f"colltune-{version}.eb"]
    try:
        run_to_end([python.parent / "eb", *words], cwd=tmp_path, env=environment, check=True)
        assert not more or (predicted / "tuning.json").exists()
    finally:
        if more:
            shutil.rmtree(predicted, ignore_errors=True)
    assert shutil.which("colltune", path=str(tmp_path / "prefix" / "software" / "colltune" / version / "bin"))


@pytest.mark.slow
def test_the_debian_package_is_built_and_works(tmp_path: Path) -> None:
    """By the system's tools, with the build system and the dependencies of this environment, which may be newer."""
    tools = ("dpkg-buildpackage", "dh", "dh_python3", "lintian")
    if absent := [tool for tool in tools if shutil.which(tool) is None] or not Path("/usr/bin/python3").exists():
        pytest.skip(f"not here: {absent}")
    packages = sysconfig.get_path("purelib")
    system = {**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": packages}
    same = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]!r})"
    if subprocess.run(["/usr/bin/python3", "-c", same], check=False).returncode:
        pytest.skip("the system's Python is another one, and cannot use these packages")
    build = ["sh", ROOT / "packaging" / "debian.sh", tmp_path / "deb"]
    run_to_end(build, env=system, check=True)
    (package,) = (tmp_path / "deb").glob("*.deb")
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("built; there is no MPI to run its test with")
    environment = {
        **os.environ,
        "PATH": f"{root}/usr/bin:{os.environ['PATH']}",
        "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages:{packages}",
        "COLLTUNE_TEST_MPIEXEC": str(mpiexec),
        "AUTOPKGTEST_TMP": str(tmp_path),
    }
    script = ROOT / "packaging" / "debian" / "tests" / "first-steps"
    run_to_end(["sh", script], env=environment, check=True)
