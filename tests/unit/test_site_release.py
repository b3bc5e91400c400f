"""Releases: only what was proven on the machine, whole at each moment, switched in one step."""

import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from application_history import leave_run
from test_site_store import HERE, KEY, NOW_S, entry

from colltune.core.errors import InputError
from colltune.core.proven import Decision, Summary, Verdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Scenario, SizeBasis
from colltune.session.site.runs import copied_if_shared
from colltune.session.site.state import add_or_put_by, add_pending
from colltune.site.entry import Entry, Identity
from colltune.site.knowledge import STALE_S
from colltune.site.release import activate, active, publish, read_release, releases, rollback
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST, Provisional, Tuning, load_tuning, save_tuning
from commands import colltune

TREE = Choice("tree")
FILES = {"mpich/mpich-coll.json": b'{"collective=bcast": {}}'}
VARIABLES = {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "{directory}/mpich/mpich-coll.json"}
NOW = NOW_S + 1e6 + 60.0


def tuned(place: Path, nodes: int = 4, ppn: int = 2, choice: Choice = TREE, **changes: object) -> Entry:
    """The entry of a job that handed over a tuning. ``changes``: of the tuning."""
    here = replace(HERE, nodes=nodes, ppn=ppn, facts={**HERE.facts, "libmpi": str(place / "libmpi.so")})
    rules = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, 512, DEFAULT), Rule(None, None, None, choice)))
    proven = Decision(Scenario("bcast", nodes, ppn, 1024), choice, Verdict.KEPT, (2.0,) * 9, "faster")
    tuning = Tuning(here, {"bcast": rules}, FILES, VARIABLES, Summary(decisions=(proven,)))
    out = place / f"tuned-{nodes}x{ppn}"
    save_tuning(out, replace(tuning, **changes))  # type: ignore[arg-type]
    return replace(entry(nodes), environment=here, files={**FILES, MANIFEST: (out / MANIFEST).read_bytes()})


def lint(_tuning: Tuning) -> list[str]:
    return []


def store_of_two(place: Path) -> SiteStore:
    """A store in which a job of two nodes and one of four handed over a tuning."""
    made = SiteStore.made(place / "store")
    made.add(tuned(place, 2))
    made.add(tuned(place, 4))
    return made


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    return store_of_two(tmp_path)


def test_a_release_has_a_tuning_for_every_shape_with_its_origin(store: SiteStore) -> None:
    release = publish(store, "root", "1", lint, NOW)
    assert [(one.nodes, one.ppn) for one in release.tunings] == [(2, 2), (4, 2)]
    assert {one.identity for one in release.tunings} == {Identity.of(HERE)}
    assert {one.entry for one in release.tunings} <= store.names()[KEY]
    assert read_release(release.place) == release
    assert active(store) == ""
    assert publish(store, "root", "1", lint, NOW + 1).name != release.name


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"summary": Summary(gated=False)}, "not proven"),
        ({"summary": Summary(interrupted=True)}, "provisional"),
        ({"provisional": Provisional({"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE)}, {}, {})}, "provisional"),
        ({"environment": replace(HERE, mpi="simulated"), "variables": {}}, "simulated"),
        ({"environment": replace(HERE, mpi_build="cd" * 32)}, "its files are of mpich 5.0.2"),
        ({"summary": Summary(reproducible=("allreduce",))}, "chosen for equal bits"),
        ({"variables": {"LD_PRELOAD": "/home/eve/a.so"}}, "variables would set 'LD_PRELOAD'"),
        ({"variables": {next(iter(VARIABLES)): "{directory}/../eve.json"}}, "to '{directory}/../eve.json'"),
    ],
)
def test_what_is_not_proven_is_left_out_with_the_reason(tmp_path: Path, changes: dict[str, object], why: str) -> None:
    store = SiteStore.made(tmp_path / "store")
    store.add(tuned(tmp_path, 2, **changes))
    with pytest.raises(InputError, match=re.escape(why)):
        publish(store, "root", "1", lint, NOW)
    assert releases(store) == []
    store.add(tuned(tmp_path, 8))
    (said,) = publish(store, "root", "1", lint, NOW).refused
    assert said.startswith("2 x 2: ")
    assert why in said


def test_what_is_stale_or_does_not_pass_lint_is_left_out(store: SiteStore) -> None:
    with pytest.raises(InputError, match="stale"):
        publish(store, "root", "1", lint, NOW + STALE_S)
    with pytest.raises(InputError, match="key 'x' is unknown"):
        publish(store, "root", "1", lambda _tuning: ["key 'x' is unknown"], NOW)


def test_a_confirmation_keeps_a_tuning_from_becoming_stale(store: SiteStore, tmp_path: Path) -> None:
    (of_four,) = [one for one in publish(store, "root", "1", lint, NOW).tunings if one.nodes == 4]
    later = replace(entry(5).provenance, began_s=NOW + STALE_S, ended_s=NOW + STALE_S + 1.0)
    store.add(Entry(replace(HERE, nodes=4, ppn=2), later, confirms=of_four.entry))
    release = publish(store, "root", "1", lint, NOW + STALE_S + 60.0)
    assert [one.nodes for one in release.tunings] == [4]


def test_a_release_that_was_changed_is_not_activated(store: SiteStore) -> None:
    release = publish(store, "root", "1", lint, NOW)
    path = release.place / release.tunings[0].directory / "mpich/mpich-coll.json"
    path.chmod(0o644)
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match="was changed after it was published"):
        activate(store, release.name)
    manifest = release.place / "manifest.json"
    manifest.chmod(0o644)
    manifest.write_text(manifest.read_text().replace('"nodes": 2', '"nodes": 3'))
    with pytest.raises(InputError, match="was changed after it was written"):
        activate(store, release.name)
    assert active(store) == ""


def test_a_rollback_goes_back_step_by_step_and_keeps_what_was_loaded(store: SiteStore) -> None:
    names = [publish(store, "root", "1", lint, NOW + day).name for day in range(3)]
    for name in names:
        activate(store, name)
    loaded = (store.outbox / "active").resolve()
    assert rollback(store).name == names[1] == active(store)
    assert (loaded / "manifest.json").exists()
    assert rollback(store).name == names[0]
    with pytest.raises(InputError, match="no release was active before"):
        rollback(store)
    assert active(store) == names[0]


def test_readers_see_a_whole_release_at_each_moment(store: SiteStore) -> None:
    names = [publish(store, "root", "1", lint, NOW + day).name for day in range(2)]
    activate(store, names[0])
    done, seen, wrong = threading.Event(), set[str](), list[str]()

    def read() -> None:
        while not done.is_set():
            try:
                seen.add(read_release((store.outbox / "active").resolve(strict=True)).name)
            except (InputError, OSError) as error:
                wrong.append(str(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for one in readers:
        one.start()
    for step in range(60):
        activate(store, names[step % 2])
        if step % 20 == 0:
            publish(store, "root", "1", lint, NOW + 10 + step)
    done.set()
    for one in readers:
        one.join()
    assert not wrong
    assert seen == set(names)


def test_a_strict_umask_hides_no_release_from_the_users(store: SiteStore) -> None:
    before = os.umask(0o077)
    try:
        release = publish(store, "root", "1", lint, NOW)
        activate(store, release.name)
    finally:
        os.umask(before)
    for place in (store.outbox, store.outbox / "releases", release.place, release.place / "modules/lmod"):
        assert place.stat().st_mode & 0o005 == 0o005


def test_the_commands_of_an_administrator(store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLTUNE_STORE", str(store.directory))
    monkeypatch.setattr("colltune.session.site.publish.faults_in", lint)
    monkeypatch.setattr("time.time", lambda: NOW)

    def said(*arguments: str, code: int = 0) -> str:
        return colltune("site", *arguments, code=code).stdout

    shown = said("status")
    assert "mpich 5.0.2 (abababab), single, a CPU, 2 cores, ethernet: 2 entries of 1 users" in shown
    assert "2 x 2: 1 jobs; measured bcast 5 of" in shown
    assert "releases: none; active: none" in shown
    first = said("publish").split("published ")[1].split(".")[0]
    assert first in said("activate", first)
    later = replace(entry(4).provenance, began_s=NOW_S + 9)
    store.add(replace(tuned(tmp_path, 4, choice=Choice("ring")), provenance=later))
    monkeypatch.setattr("time.time", lambda: NOW + 1)
    second = said("publish").split("published ")[1].split(".")[0]
    said("activate", second)
    assert f"active: {second}" in said("status")
    assert f"{first} is active again" in said("rollback")


def test_what_runs_under_a_tuning_of_a_release_leaves_the_release_as_it_is(store: SiteStore, tmp_path: Path) -> None:
    release = publish(store, "root", "1", lint, NOW)
    place = release.place / release.tunings[0].directory
    notes: list[str] = []
    made = copied_if_shared(place, notes.append, tmp_path / "copies")
    assert made == tmp_path / "copies" / release.name / "2x2"
    assert load_tuning(made) == load_tuning(place)
    leave_run(made, load_tuning(made).environment, TREE, 1.2)
    assert copied_if_shared(place, notes.append, tmp_path / "copies") == made
    assert str(made) in notes[0]
    assert copied_if_shared(made, pytest.fail) == made
    assert read_release(release.place) == release


def test_a_store_that_takes_nothing_keeps_an_entry_beside_its_tuning_until_it_does(tmp_path: Path) -> None:
    store, out, notes = SiteStore.made(tmp_path / "store"), tmp_path / "own", list[str]()
    (store.directory / "inbox").rename(tmp_path / "away")
    assert not add_or_put_by(store, tuned(tmp_path, 2), out, notes.append)
    assert len(list((out / "pending").iterdir())) == 1
    assert "adds it later" in notes[0]
    (tmp_path / "away").rename(store.directory / "inbox")
    assert add_pending(store, out, pytest.fail) == 1
    assert not list((out / "pending").iterdir())
    assert [len(names) for names in store.names().values()] == [1]
