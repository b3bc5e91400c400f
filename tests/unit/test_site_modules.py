"""Modules of a release in Lmod and in Tcl: the tuning of the job's shape, of the active release."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from test_site_release import FILES, NOW, lint, store_of_two, tuned
from test_site_store import HERE, NOW_S, entry

from colltune.core.sample import Choice
from colltune.site.release import Release, activate, publish
from colltune.site.store import SiteStore
from commands import run_to_end

NAME = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
_LMOD = "/usr/share/lmod/lmod/libexec/lmod"
needs_lmod = pytest.mark.skipif(not Path(_LMOD).exists(), reason="no Lmod (apt: lmod)")
# Debian installs one of both; beside Lmod the other may be unpacked under /opt.
_TCL = next(
    (str(one) for root in ("/usr", "/opt/environment-modules/usr") for one in Path(root).glob("lib/*/modulecmd.tcl")),
    shutil.which("modulecmd") or "",
)
needs_tcl = pytest.mark.skipif(
    not _TCL or shutil.which("tclsh") is None, reason="no Tcl modules (apt: environment-modules, tcl)"
)


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    return store_of_two(tmp_path)


def published(store: SiteStore, when_s: float = NOW) -> Release:
    """It is active, too."""
    return activate(store, publish(store, "root", "1", lint, when_s).name)


KINDS = [
    pytest.param("lmod", "lmod", marks=needs_lmod),
    pytest.param("lmod", "tcl", marks=needs_lmod),
    pytest.param("tcl", "tcl", marks=needs_tcl),
]
JOBS = [
    ("", "", "4x2"),
    ("2", "2", "2x2"),
    ("3", "2", "4x2"),
    ("2", "2(x2)", "2x2"),
    ("1", "1", "2x2"),
    ("64", "2", ""),
]


@pytest.mark.parametrize(("command", "kind"), KINDS)
@pytest.mark.parametrize(("nodes", "tasks", "chosen"), JOBS)
def test_the_module_loads_the_tuning_of_the_jobs_shape(
    store: SiteStore, command: str, kind: str, nodes: str, tasks: str, chosen: str
) -> None:
    release = published(store)
    job = {"SLURM_JOB_NUM_NODES": nodes, "SLURM_TASKS_PER_NODE": tasks} if nodes else {}
    found = load_module(store, command, kind, job)
    if not chosen:
        assert NAME not in found
        return
    path = Path(found[NAME])
    assert path.read_bytes() == FILES["mpich/mpich-coll.json"]
    assert path.is_relative_to(release.place.resolve())  # its own release, and not what is active later
    assert path.parts[-3] == chosen
    assert found["COLLTUNE_RELEASE"] == str(release.place.resolve())
    assert found["COLLTUNE_TUNED"] == str(release.place.resolve() / release.tunings[chosen == "4x2"].directory)


@pytest.mark.parametrize(("command", "kind"), KINDS)
def test_the_module_refuses_another_build_of_the_library(
    store: SiteStore, tmp_path: Path, command: str, kind: str
) -> None:
    published(store)
    (tmp_path / "libmpi.so").write_bytes(b"upgraded")
    assert NAME not in load_module(store, command, kind, {})


@pytest.mark.parametrize(("command", "kind"), KINDS)
def test_a_value_of_the_users_own_comes_back(store: SiteStore, command: str, kind: str) -> None:
    published(store)
    found = load_module(store, command, kind, {NAME: "/home/me/own.json"})
    assert found[NAME].endswith("4x2/mpich/mpich-coll.json")
    left = load_module(store, command, kind, found, verb="unload")
    assert left[NAME] == "/home/me/own.json"
    assert not {"COLLTUNE_RELEASE", "COLLTUNE_TUNED"} & left.keys()


@pytest.mark.parametrize(("command", "kind"), KINDS)
def test_the_help_says_how_to_see_who_signed_it(store: SiteStore, command: str, kind: str) -> None:
    release = published(store)
    (module,) = [one for one in (release.place / "modules" / kind).rglob("*") if one.is_file()]
    assert str(release.place.resolve()) in module.read_text()
    assert "ssh-keygen -Y verify" in module.read_text()


def load_module(store: SiteStore, by: str, kind: str, job: dict[str, str], verb: str = "load") -> dict[str, str]:
    """The environment after ``module load``, or another ``verb``."""
    command = [_TCL if by == "tcl" else _LMOD, "bash", verb, "colltune-tuned/mpich-5.0.2"]
    around = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **job}
    around["MODULEPATH"] = str(store.outbox / "active/modules" / kind)
    lines = run_to_end(command, env=around).stdout
    clean = {"PATH": os.environ["PATH"], "MODULEPATH": ""}
    done = run_to_end(["bash", "-c", f"{lines}\nenv -0"], check=True, env=clean)
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)


def test_module_files_say_nothing_that_a_shell_of_modules_would_run(store: SiteStore, tmp_path: Path) -> None:
    wild = replace(tuned(tmp_path, 2), environment=replace(HERE, nodes=2, mpi_version='../9"]] [exec touch owned] $x'))
    store.add(wild)
    release = publish(store, "root", "1", lint, NOW)
    for path in [*release.place.glob("modules/*/*/*"), *release.place.glob("modules/shapes/*")]:
        text = path.read_text()
        assert "[exec touch" not in text
        assert '9"]' not in text
        assert "/.." not in text
    assert json.loads((release.place / "manifest.json").read_text())["by"] == "root"


@pytest.mark.parametrize(("command", "kind"), KINDS)
def test_what_was_loaded_is_unloaded_whatever_is_active_by_then(
    store: SiteStore, tmp_path: Path, command: str, kind: str
) -> None:
    """The release that the job has loaded sets a variable of which the later one does not know."""
    first = published(store)
    shapes = first.place / "modules/shapes/mpich-5.0.2"
    shapes.chmod(0o644)
    shapes.write_text(shapes.read_text() + "set MPIR_CVAR_NEW_FILE {directory}/new.json\n")
    found = load_module(store, command, kind, {})
    assert found["MPIR_CVAR_NEW_FILE"].endswith("4x2/new.json")
    later = replace(entry(2).provenance, began_s=NOW_S + 9.0)
    store.add(replace(tuned(tmp_path, 2, choice=Choice("ring")), provenance=later))
    published(store, NOW + 1.0)
    left = load_module(store, command, kind, found, verb="unload")
    assert not {NAME, "MPIR_CVAR_NEW_FILE", "COLLTUNE_RELEASE", "COLLTUNE_TUNED"} & left.keys()
