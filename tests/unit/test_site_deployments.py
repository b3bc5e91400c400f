"""What examples/ has for EasyBuild, EESSI and Spack: MPI modules that name the store and find the tuned modules."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from colltune.site.store import SiteStore
from commands import Done, ended_with, run_to_end
from pip_environment import environment_with

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
EASYCONFIG = EXAMPLES / "easybuild/colltune-0.2.0-gfbf-2025a.eb"
HOOKS = EXAMPLES / "easybuild/colltune_hooks.py"
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
needs_lmod = pytest.mark.skipif(not LMOD.exists(), reason="no Lmod (apt: lmod)")

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


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    """One whose active release has a module."""
    made = SiteStore.made(tmp_path / "store")
    modules = made.outbox / "active/modules"
    for path, text in (
        ("lmod/colltune-tuned/mpich-5.0.2.lua", 'setenv("COLLTUNE_RELEASE", "this")\n'),
        ("tcl/colltune-tuned/mpich-5.0.2", "#%Module1.0\nsetenv COLLTUNE_RELEASE this\n"),
    ):
        (modules / path).parent.mkdir(parents=True)
        (modules / path).write_text(text)
    return made


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


def _loaded(modules: Path, *names: str, undone: bool = False, **more: str) -> Mapping[str, str]:
    """The environment after ``module load`` of each of ``names``; with ``undone``, after the first is unloaded."""
    asked = [f"load {name}" for name in names] + ([f"unload {names[0]}"] if undone else [])
    lines = [f'eval "$({LMOD} bash {one})" || exit 1' for one in asked]
    environment = {"PATH": os.environ["PATH"], "HOME": str(modules), "MODULEPATH": str(modules), **more}
    done = run_to_end(["bash", "-c", "\n".join([*lines, "env -0"])], env=environment, check=True)
    return dict(word.split("=", 1) for word in done.stdout.split("\0") if "=" in word)


@needs_lmod
@pytest.mark.parametrize("syntax", ["Lua", "Tcl"])
def test_the_module_of_an_mpi_names_the_store(programs: Path, store: SiteStore, tmp_path: Path, syntax: str) -> None:
    ended_with(0, _module_of(programs, tmp_path, "MPICH", syntax, COLLTUNE_STORE=str(store.directory)))
    found = _loaded(tmp_path / "prefix/modules/all", "MPICH/5.0.2", "colltune-tuned/mpich-5.0.2")
    assert found["EBROOTMPICH"]
    assert found["COLLTUNE_STORE"] == str(store.directory)
    assert found["COLLTUNE_RELEASE"] == "this"


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
    undone = _loaded(tmp_path / "modules", f"{name}/1", undone=True, LMOD_PACKAGE_PATH=str(tmp_path))
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
