"""Programs under the releases of a site: what they get, what they report, and what that saved."""

import gzip
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from application_history import leave_run
from test_site_release import NOW, lint, tuned
from test_site_store import NOW_S, entry
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.interval import Interval
from colltune.core.sample import Choice
from colltune.session.application_gain import gain_of
from colltune.session.site.runs import add_run, copied_if_released, store_for_runs
from colltune.session.site.state import SavedBy, saved_by_release, status
from colltune.site.entry import BadEntryError, Saved, name_of, pack, unpack
from colltune.site.release import activate, active, publish, read_release
from colltune.site.store import SiteStore
from colltune.store.applications import application_runs
from colltune.store.records import decode, encode
from colltune.store.tuning import load_tuning, save_tuning

TREE, RING = Choice("tree"), Choice("ring")


@pytest.fixture
def store(tmp_path: Path) -> SiteStore:
    """With two releases, of which the first is active."""
    made = SiteStore.made(tmp_path / "store")
    made.add(tuned(tmp_path, 2))
    activate(made, publish(made, "root", "1", lint, NOW).name)
    later = replace(entry(2).provenance, began_s=NOW_S + 9.0)
    made.add(replace(tuned(tmp_path, 2, choice=RING), provenance=later))
    publish(made, "root", "1", lint, NOW + 1.0)
    return made


def later(store: SiteStore) -> str:
    (name,) = {one.name for one in (store.outbox / "releases").iterdir()} - {active(store)}
    return name


def reported(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratios: list[float], first: int = 0
) -> None:
    """A job for each of ``ratios``, in whose application calls by default took so many times as long."""
    for number, ratio in enumerate(ratios, first):
        monkeypatch.setenv("SLURM_JOB_ID", f"{number}")
        monkeypatch.setenv("COLLTUNE_RELEASE", str(store.outbox / "releases" / later(store)))
        release = read_release(store.outbox / "releases" / later(store))
        out = tmp_path / f"job{number}"
        shutil.copytree(release.place / release.tunings[0].directory, out)
        place = leave_run(out, load_tuning(out).environment, RING, ratio, when_s=1.75e9 + 60 * number)
        assert add_run(store, out, place, pytest.fail)


def test_what_applications_saved_is_told_by_release_in_node_hours(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported(store, tmp_path, monkeypatch, [1.2, 1.3])
    runs = [run for number in (0, 1) for run in application_runs(tmp_path / f"job{number}")]
    gains = [gain_of(job, run.record.choices) for run in runs for job in run.jobs]
    assert [job.nodes for run in runs for job in run.jobs] == [2, 2]
    expected_h = sum(2 * one.saved_s.estimate for one in gains) / 3600.0
    ((one,),) = [machine.saved for machine in status(store).machines]
    assert (one.release, one.runs, one.too_short) == (later(store), 2, 0)
    assert one.saved_h.estimate == pytest.approx(expected_h)
    assert one.measured_h == pytest.approx(sum(2 * one.elapsed_s for one in gains) / 3600.0)
    assert 0.0 < one.saved_h.low < one.saved_h.estimate < one.saved_h.high


def test_a_run_that_was_too_short_to_tell_counts_nothing() -> None:
    told, silent = Saved(7200.0, 360.0, 36.0, 720.0), Saved(3600.0, 3600.0, None, None)
    assert saved_by_release([("a", told), ("b", silent), ("a", told), ("a", silent)]) == [
        SavedBy("a", 2, 1, 4.0, Interval(*(pytest.approx(hours) for hours in (0.2, 0.02, 0.4)))),
        SavedBy("b", 0, 1, 0.0, Interval(0.0, 0.0, 0.0)),
    ]


@pytest.mark.parametrize("values", ["[1, 2, 3]", "[1e999, 1, 1, 1]", "[null, 1, 1, 1]", '["1", 1, 1, 1]', "{}"])
def test_an_entry_that_claims_an_impossible_saving_is_refused(tmp_path: Path, values: str) -> None:
    made = replace(tuned(tmp_path, 2), saved=Saved(1.0, 2.0, None, 3.0))
    data = pack(made)
    assert unpack(data, name_of(data)).saved == made.saved
    lines = [decode(line) for line in gzip.decompress(data).splitlines()]
    notes = [replace(one, facts={**one.facts, "saved": values}) if "saved" in getattr(one, "facts", {}) else one
             for one in lines]  # fmt: skip
    bad = gzip.compress(b"".join(map(encode, notes)))
    with pytest.raises(BadEntryError, match=r"saved|time"):
        unpack(bad, name_of(bad))


def own(tmp_path: Path, store: SiteStore) -> Path:
    """A directory of a user's own, with a tuning of which no release knows."""
    place = tmp_path / "own"
    made = tuned(tmp_path, 2, choice=Choice("chain"))
    save_tuning(place, replace(load_tuning(tmp_path / "tuned-2x2"), environment=made.environment))
    return place


def test_a_run_under_a_users_own_tuning_is_told_apart_from_those_under_a_release(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = own(tmp_path, store)
    run = leave_run(place, load_tuning(place).environment, Choice("chain"), 1.2)
    monkeypatch.setenv("COLLTUNE_RELEASE", str(store.outbox / "releases" / later(store)))  # and ran another tuning
    assert add_run(store, place, run, pytest.fail)
    reported(store, tmp_path, monkeypatch, [1.2])
    ((mine, of_release),) = [machine.saved for machine in status(store).machines]
    assert (mine.release, mine.runs, of_release.release) == ("", 1, later(store))
    shown = CliRunner().invoke(app, ["site", "status", "--store", str(store.directory)]).output
    assert f"  users' own tunings: {mine.saved_h.estimate:.3g} node-hours saved" in shown
    assert f"  {later(store)}: {of_release.saved_h.estimate:.3g} node-hours saved" in shown


def test_a_store_that_takes_nothing_keeps_the_run_beside_its_tuning_until_it_does(
    store: SiteStore, tmp_path: Path
) -> None:
    place = own(tmp_path, store)
    run = leave_run(place, load_tuning(place).environment, Choice("chain"), 1.2)
    inbox = store.directory / "inbox"
    inbox.rename(tmp_path / "away")
    notes: list[str] = []
    assert not add_run(store, place, run, notes.append)
    assert len(list((place / "pending").iterdir())) == 1
    assert "adds it later" in notes[0]
    (tmp_path / "away").rename(inbox)
    second = leave_run(place, load_tuning(place).environment, Choice("chain"), 1.2, when_s=1.76e9)
    assert add_run(store, place, second, pytest.fail)
    assert not list((place / "pending").iterdir())
    ((saved,),) = [machine.saved for machine in status(store).machines]
    assert saved.runs == 2


def test_no_application_fails_for_the_sites_store(store: SiteStore, tmp_path: Path) -> None:
    notes: list[str] = []
    assert store_for_runs(None, {}, notes.append) is None
    assert notes == []
    assert store_for_runs(None, {"COLLTUNE_STORE": str(tmp_path / "gone")}, notes.append) is None
    assert "is no store of a site" in notes[0]
    with pytest.raises(InputError, match="no store of a site"):  # which was named for this very run
        store_for_runs(tmp_path / "gone", {}, notes.append)
    assert store_for_runs(None, {"COLLTUNE_STORE": str(store.directory)}, pytest.fail) == store


def test_what_runs_under_a_tuning_of_a_release_leaves_the_release_as_it_is(store: SiteStore, tmp_path: Path) -> None:
    release = read_release(store.outbox / "releases" / active(store))
    place = release.place / release.tunings[0].directory
    notes: list[str] = []
    made = copied_if_released(place, notes.append, tmp_path / "copies")
    assert made == tmp_path / "copies" / release.name / "2x2"
    assert load_tuning(made) == load_tuning(place)
    leave_run(made, load_tuning(made).environment, TREE, 1.2)
    assert copied_if_released(place, notes.append, tmp_path / "copies") == made
    assert str(made) in notes[0]
    assert copied_if_released(made, pytest.fail) == made
    assert read_release(release.place) == release
