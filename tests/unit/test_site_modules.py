"""Modules of a release in Lmod and in Tcl, and the MPI modules of examples/ that name the store and find them."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from test_site_release import FILES, NOW, lint, store_of_two, tuned
from test_site_store import HERE, NOW_S, entry

from colltune.core.sample import Choice
from colltune.site.release import Release, activate, publish
from colltune.site.store import SiteStore
from commands import Done, ended_with, run_to_end
from pip_environment import environment_with

NAME = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
needs_lmod = pytest.mark.skipif(not LMOD.exists(), reason="no Lmod (apt: lmod)")
# Debian installs one of both; beside Lmod the other may be unpacked under /opt.
_TCL = next(
    (str(one) for root in ("/usr", "/opt/environment-modules/usr") for one in Path(root).glob("lib/*/modulecmd.tcl")),
    shutil.which("modulecmd") or "",
)
needs_tcl = pytest.mark.skipif(
    not _TCL or shutil.which("tclsh") is None, reason="no Tcl modules (apt: environment-modules, tcl)"
)
Load = Callable[..., dict[str, str]]


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    return store_of_two(tmp_path)


def published(store: SiteStore, when_s: float = NOW) -> Release:
    """It is active, too."""
    return activate(store, publish(store, "root", "1", lint, when_s).name)


def after(program: str | Path, verb: str, name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that ``module VERB NAME`` makes of ``environment``."""
    lines = run_to_end([program, "bash", verb, name], env=environment).stdout
    done = run_to_end(["bash", "-c", f"{lines}\nenv -0"], check=True, env=environment)
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)


@pytest.fixture(
    params=[
        pytest.param((LMOD, "lmod"), marks=needs_lmod, id="lmod"),
        pytest.param((LMOD, "tcl"), marks=needs_lmod, id="tcl-in-lmod"),
        pytest.param((_TCL, "tcl"), marks=needs_tcl, id="tcl"),
    ]
)
def load_module(request: pytest.FixtureRequest, store: SiteStore) -> Load:
    """Makes of the variables of a job its environment after ``module load`` of a tuning, or after another verb."""
    program, kind = request.param

    def load(job: Mapping[str, str], verb: str = "load") -> dict[str, str]:
        around = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **job}
        around["MODULEPATH"] = str(store.outbox / "active/modules" / kind)
        return after(program, verb, "colltune-tuned/mpich-5.0.2", around)

    return load


@pytest.mark.parametrize(
    ("nodes", "tasks", "chosen"),
    [("", "", "4x2"), ("2", "2", "2x2"), ("3", "2", "4x2"), ("2", "2(x2)", "2x2"), ("1", "1", "2x2"), ("64", "2", "")],
)
def test_the_module_loads_the_tuning_of_the_jobs_shape(
    store: SiteStore, load_module: Load, nodes: str, tasks: str, chosen: str
) -> None:
    release = published(store)
    job = {"SLURM_JOB_NUM_NODES": nodes, "SLURM_TASKS_PER_NODE": tasks} if nodes else {}
    found = load_module(job)
    if not chosen:
        assert NAME not in found
        return
    path = Path(found[NAME])
    assert path.read_bytes() == FILES["mpich/mpich-coll.json"]
    assert path.is_relative_to(release.place.resolve())  # its own release, and not what is active later
    assert path.parts[-3] == chosen
    assert found["COLLTUNE_RELEASE"] == str(release.place.resolve())
    assert found["COLLTUNE_TUNED"] == str(release.place.resolve() / release.tunings[chosen == "4x2"].directory)


def test_the_module_refuses_another_build_of_the_library(store: SiteStore, load_module: Load, tmp_path: Path) -> None:
    published(store)
    (tmp_path / "libmpi.so").write_bytes(b"upgraded")
    assert NAME not in load_module({})


def test_a_value_of_the_users_own_comes_back(store: SiteStore, load_module: Load) -> None:
    published(store)
    found = load_module({NAME: "/home/me/own.json"})
    assert found[NAME].endswith("4x2/mpich/mpich-coll.json")
    left = load_module(found, verb="unload")
    assert left[NAME] == "/home/me/own.json"
    assert not {"COLLTUNE_RELEASE", "COLLTUNE_TUNED"} & left.keys()


def test_module_files_say_who_signed_them_and_nothing_that_a_shell_would_run(store: SiteStore, tmp_path: Path) -> None:
    wild = replace(tuned(tmp_path, 2), environment=replace(HERE, nodes=2, mpi_version='../9"]] [exec touch owned] $x'))
    store.add(wild)
    release = publish(store, "root", "1", lint, NOW)
    for path in [*release.place.glob("modules/*/*/*"), *release.place.glob("modules/shapes/*")]:
        text = path.read_text()
        assert "[exec touch" not in text
        assert '9"]' not in text
        assert "/.." not in text
    for path in release.place.glob("modules/*/*/*"):
        assert str(release.place.resolve()) in path.read_text()
        assert "ssh-keygen -Y verify" in path.read_text()
    assert json.loads((release.place / "manifest.json").read_text())["by"] == "root"


def test_what_was_loaded_is_unloaded_whatever_is_active_by_then(
    store: SiteStore, load_module: Load, tmp_path: Path
) -> None:
    """The release that the job has loaded sets a variable of which the later one does not know."""
    first = published(store)
    shapes = first.place / "modules/shapes/mpich-5.0.2"
    shapes.chmod(0o644)
    shapes.write_text(shapes.read_text() + "set MPIR_CVAR_NEW_FILE {directory}/new.json\n")
    found = load_module({})
    assert found["MPIR_CVAR_NEW_FILE"].endswith("4x2/new.json")
    later = replace(entry(2).provenance, began_s=NOW_S + 9.0)
    store.add(replace(tuned(tmp_path, 2, choice=Choice("ring")), provenance=later))
    published(store, NOW + 1.0)
    left = load_module(found, verb="unload")
    assert not {NAME, "MPIR_CVAR_NEW_FILE", "COLLTUNE_RELEASE", "COLLTUNE_TUNED"} & left.keys()


ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
EASYCONFIG = EXAMPLES / "easybuild/colltune-0.2.0-gfbf-2025a.eb"
HOOKS = EXAMPLES / "easybuild/colltune_hooks.py"

# EasyBuild's own reading of an easyconfig, after its templates and constants.
READ = """
import json, sys
from easybuild.tools.options import set_up_configuration
set_up_configuration(args=sys.argv[2:], silent=True)
from easybuild.framework.easyconfig.easyconfig import EasyConfig
ec = EasyConfig(sys.argv[1], validate=False)
print(json.dumps({
    "name": ec.name,
    "dependencies": [one["name"] for one in ec.dependencies()],
    "extensions": [one[0] for one in ec["exts_list"]],
}))
"""
MPI = """
easyblock = 'Bundle'
name = '{name}'
version = '5.0.2'
homepage = 'https://www.mpich.org'
description = "An MPI."
toolchain = SYSTEM
"""
# Where EasyBuild's bundles have what colltune needs.
BUNDLES = {
    "numpy": "SciPy-bundle",
    "scipy": "SciPy-bundle",
    "jinja2": "Python-bundle-PyPI",
    "rich": "Python-bundle-PyPI",
    "threadpoolctl": "Python-bundle-PyPI",
    "pyyaml": "PyYAML",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """EasyBuild without its easyconfigs: 13 MB."""
    place = tmp_path_factory.mktemp("easybuild") / "venv"
    return environment_with(place, "easybuild-framework>=5", "easybuild-easyblocks>=5")


def _options(place: Path) -> list[str]:
    return [f"--prefix={place}", "--modules-tool=Lmod", "--allow-use-as-root-and-accept-consequences"]


def _environment(programs: Path, **more: str) -> Mapping[str, str]:
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LMOD_CMD": str(LMOD), **more}


def _module_of(programs: Path, place: Path, name: str, syntax: str, **more: str) -> Done:
    """Lets EasyBuild write the module of an MPI with our hooks."""
    (place / "mpi.eb").write_text(MPI.format(name=name))
    command = [
        *(programs / "eb", "mpi.eb", f"--hooks={HOOKS}", "--module-only", "--force", "--disable-rpath"),
        *(f"--module-syntax={syntax}", *_options(place / "prefix")),
    ]
    return run_to_end(command, env=_environment(programs, **more), cwd=place)


def _loaded(modules: Path, *names: str, **more: str) -> Mapping[str, str]:
    """The environment after ``module load`` of each of ``names``."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(modules), "MODULEPATH": str(modules), **more}
    for name in names:
        environment = after(LMOD, "load", name, environment)
    return environment


@needs_lmod
@pytest.mark.parametrize("syntax", ["Lua", "Tcl"])
def test_the_module_of_an_mpi_names_the_store(programs: Path, store: SiteStore, tmp_path: Path, syntax: str) -> None:
    release = published(store)
    ended_with(0, _module_of(programs, tmp_path, "MPICH", syntax, COLLTUNE_STORE=str(store.directory)))
    found = _loaded(tmp_path / "prefix/modules/all", "MPICH/5.0.2", "colltune-tuned/mpich-5.0.2")
    assert found["EBROOTMPICH"]
    assert found["COLLTUNE_STORE"] == str(store.directory)
    assert found["COLLTUNE_RELEASE"] == str(release.place.resolve())


@needs_lmod
def test_no_module_names_what_is_no_store(programs: Path, tmp_path: Path) -> None:
    done = _module_of(programs, tmp_path, "MPICH", "Lua", COLLTUNE_STORE=str(tmp_path))
    assert done.returncode != 0
    assert "is no store: colltune site init" in done.stdout + done.stderr


@needs_lmod
def test_other_modules_stay_as_they_are(programs: Path, tmp_path: Path) -> None:
    ended_with(0, _module_of(programs, tmp_path, "zlib", "Lua", COLLTUNE_STORE=""))
    (module,) = (tmp_path / "prefix/modules/all/zlib").iterdir()
    assert "COLLTUNE" not in module.read_text()


@needs_lmod
def test_easybuild_reads_the_easyconfig(programs: Path, tmp_path: Path) -> None:
    """It names what the project's metadata asks for: as a dependency, in one of these bundles, or as an extension."""
    command = [programs / "python", "-c", READ, EASYCONFIG, *_options(tmp_path)]
    done = run_to_end(command, env=_environment(programs), cwd=tmp_path, check=True)
    read = json.loads(done.stdout.splitlines()[-1])
    assert read["name"] == read["extensions"][-1] == "colltune"
    given = {*read["dependencies"], *read["extensions"]}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in metadata["dependencies"]:
        name = re.split("[>=]", requirement)[0]
        assert BUNDLES.get(name, name) in given, requirement


@needs_lmod
@pytest.mark.parametrize("name", ["MPICH", "zlib"])
def test_the_hook_of_eessi_names_the_store(store: SiteStore, tmp_path: Path, name: str) -> None:
    """Behind a hook of EESSI's, which still runs; for an MPI alone; and undone when the MPI is unloaded."""
    published(store)
    (tmp_path / f"modules/{name}").mkdir(parents=True)
    (tmp_path / f"modules/{name}/1.lua").write_text('setenv("LOADED", "yes")\n')
    ours = (EXAMPLES / "eessi/SitePackage.lua").read_text()
    assert ours.count('"/shared/colltune"') == 1
    (tmp_path / "ours.lua").write_text(ours.replace("/shared/colltune", str(store.directory)))
    (tmp_path / "SitePackage.lua").write_text(
        'require("strict")\nlocal hook = require("Hook")\n'
        'function eessi_load_hook(t) setenv("EESSI_HOOK", t.modFullName) end\n'
        f'hook.register("load", eessi_load_hook)\ndofile("{tmp_path}/ours.lua")\n'
    )
    loaded = _loaded(tmp_path / "modules", f"{name}/1", LMOD_PACKAGE_PATH=str(tmp_path))
    assert (loaded["LOADED"], loaded["EESSI_HOOK"]) == ("yes", f"{name}/1")
    assert loaded.get("COLLTUNE_STORE") == (str(store.directory) if name == "MPICH" else None)
    modules = str(store.outbox / "active/modules/lmod")
    assert (modules in loaded["MODULEPATH"].split(":")) == (name == "MPICH")
    undone = after(LMOD, "unload", f"{name}/1", loaded)
    assert "COLLTUNE_STORE" not in undone
    assert modules not in undone["MODULEPATH"].split(":")


def test_the_spack_environment_has_documented_keys_only() -> None:
    """Those of Spack's pages on environments, packages.yaml, env_vars.yaml and modules.yaml."""
    (environment,) = yaml.safe_load((EXAMPLES / "spack/spack.yaml").read_text()).values()
    assert set(environment) <= {"specs", "concretizer", "packages", "view", "env_vars", "modules", "repos", "include"}
    recipe = (ROOT / "packaging/spack/package.py").read_text()
    compile(recipe, "package.py", "exec")
    (package,) = re.findall(r"^class (\w+)\(PythonPackage\)", recipe, re.MULTILINE)
    assert re.sub("(?<!^)(?=[A-Z])", "-", package).lower() in environment["specs"]
    assert environment["packages"]["mpi"]["require"] in environment["specs"]
    (module_set,) = environment["modules"].values()
    assert set(module_set) == {"enable", *module_set["enable"]}
    (mpi,) = module_set["tcl"].items()
    assert mpi == (environment["packages"]["mpi"]["require"], {"environment": environment["env_vars"]})
    assert set(environment["env_vars"]) <= {"set", "unset", "prepend_path", "append_path", "remove_path"}
