"""Who said what in a store: by the owner of an entry's file, and never by what is written in it."""

import os
import shutil
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_site_release import NOW, lint, tuned
from test_site_store import HERE, KEY, NOW_S, entry

from colltune.core.errors import InputError
from colltune.core.sample import Choice
from colltune.session.site.publish import described, publish_here
from colltune.site.entry import Entry
from colltune.site.index import open_index
from colltune.site.release import activate, publish, releases
from colltune.site.store import SiteStore
from colltune.store.tuning import MANIFEST
from commands import colltune
from lint_trees import complete_file

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can write as other users")
EVE, BOB = 54321, 54322
FILE, VARIABLE = "mpich/mpich-coll.json", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
RECORDED = Path(__file__).parents[1] / "recorded" / "stores"


@pytest.fixture(autouse=True)
def of_the_site(store: SiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use ``store``, outside of a job, while its tunings are new."""
    monkeypatch.setenv("COLLTUNE_STORE", str(store.directory))
    monkeypatch.setattr("time.time", lambda: NOW)
    for variable in [one for one in os.environ if one.startswith(("SLURM_", "PBS_", "JOB_", "LSB_", "FLUX_"))]:
        monkeypatch.delenv(variable)


def added_by(store: SiteStore, uid: int, what: Entry) -> str:
    """As if ``uid`` had added it."""
    name = store.add(replace(what, uid=uid))
    os.chown(store.place(KEY, name), uid, -1)
    return name


def confirming(name: str, began_s: float = NOW_S + 9) -> Entry:
    said = replace(entry(5).provenance, began_s=began_s, ended_s=began_s + 1.0)
    return Entry(replace(HERE, nodes=2, ppn=2), said, confirms=name)


def test_entries_of_another_owner_than_they_say_and_of_the_future_are_quarantined(store: SiteStore) -> None:
    name = added_by(store, EVE, entry(1))
    os.chown(store.place(KEY, name), BOB, -1)
    store.add(replace(entry(2), uid=BOB))  # forged: it lies there as a file of ours
    store.add(replace(entry(3), provenance=replace(entry(3).provenance, ended_s=time.time() + 3e8)))
    open_index(store, KEY)
    assert {reason for _, reason in store.quarantined()} == {
        f"user {EVE} wrote it, and its file belongs to user {BOB}",
        f"user {BOB} wrote it, and its file belongs to user {os.geteuid()}",
        "it says that its job ended in the future",
    }


def test_the_cache_of_a_reader_is_their_own(store: SiteStore) -> None:
    for number in range(9):
        store.add(entry(number))
    open_index(store, KEY)
    assert stat.S_IMODE(store.index_path(KEY).stat().st_mode) == 0o600
    assert not store.index_path(KEY).is_relative_to(store.directory)
    assert sorted(one.name for one in store.directory.iterdir()) == ["inbox", "outbox", "quarantine", "site.json"]


def test_one_user_alone_is_not_enough_for_a_release(store: SiteStore, tmp_path: Path) -> None:
    name = added_by(store, EVE, tuned(tmp_path, 2))
    added_by(store, EVE, confirming(name))  # says it twice, under the names of many users and jobs
    with pytest.raises(InputError, match=f"user {EVE} alone says it"):
        publish(store, "root", "1", lint, NOW)
    (one,) = publish(store, "root", "1", lint, NOW, trusted=[EVE]).tunings
    assert one.writers == (EVE,)
    added_by(store, BOB, confirming(name, NOW_S + 10))
    release = publish(store, "root", "1", lint, NOW + 1)
    assert release.tunings[0].writers == (EVE, BOB)
    lines = described(release)
    assert f"said by {EVE}, {BOB}" in lines[0]
    assert lines[1:] == ["  bcast: tree", f"  sets {VARIABLE}={{directory}}/{FILE}"]


def test_publish_shows_what_it_hands_out_and_takes_the_word_of_a_trusted_user(store: SiteStore, tmp_path: Path) -> None:
    made = tuned(tmp_path, 2, choice=Choice("binomial"), files={FILE: complete_file()})
    added_by(store, EVE, replace(made, files={FILE: complete_file(), MANIFEST: made.files[MANIFEST]}))
    colltune("site", "publish", code=2)
    assert releases(store) == []
    done = colltune("site", "publish", "--trust", str(EVE), code=0)
    assert f"said by {EVE}" in done.stdout
    assert "  bcast: binomial\n" in done.stdout
    assert f"  sets {VARIABLE}={{directory}}/{FILE}\n" in done.stdout


def test_no_file_is_published_that_does_not_pass_lint(store: SiteStore, tmp_path: Path) -> None:
    """What else is a fault of a file: test_received.py."""
    for nodes, files in ((2, {FILE: complete_file(), "bin/sh": b"#!/bin/sh"}), (4, {FILE: complete_file()})):
        made = tuned(tmp_path, nodes, choice=Choice("binomial"), files=files)
        store.add(replace(made, files={**files, MANIFEST: made.files[MANIFEST]}))
    release = publish_here(store)
    assert [one.nodes for one in release.tunings] == [4]
    assert any("is no file that mpich" in reason for reason in release.refused), release.refused


def test_a_newer_tuning_of_one_user_does_not_hide_the_one_before(store: SiteStore, tmp_path: Path) -> None:
    believed = store.add(tuned(tmp_path, 2))  # the publisher's own
    later = tuned(tmp_path, 2)
    added_by(store, EVE, replace(later, provenance=replace(later.provenance, began_s=NOW_S + 99)))
    (one,) = publish(store, "root", "1", lint, NOW).tunings
    assert one.entry == believed


@pytest.mark.parametrize("what", ["user", "entry"])
def test_what_is_revoked_is_believed_by_nobody(what: str, store: SiteStore, tmp_path: Path) -> None:
    store.add(tuned(tmp_path, 4))
    name = added_by(store, EVE, tuned(tmp_path, 2))
    for number in range(9):
        added_by(store, EVE, entry(10 + number))
    assert len(publish(store, "root", "1", lint, NOW, trusted=[EVE]).tunings) == 2
    assert len(open_index(store, KEY).entries) == 11
    colltune("site", "revoke", str(EVE) if what == "user" else name[:12], code=0)
    index = open_index(store, KEY)
    assert len(index.entries) == (1 if what == "user" else 10)
    assert name not in {one.name for one in index.entries}
    assert [one.nodes for one in publish(store, "root", "1", lint, NOW + 1, trusted=[EVE]).tunings] == [4]
    assert store.place(KEY, name).exists()  # and can be believed again
    colltune("site", "revoke", "nobody-of-this-name", code=2)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen")
def test_a_signed_release_is_verified_as_its_module_says_and_no_other(
    store: SiteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("colltune.session.site.publish.faults_in", lint)
    for name in ("admin", "eve"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "signers").write_text(f"admin@site {(tmp_path / 'admin.pub').read_text()}")

    def published(key: str, when_s: float) -> Path:
        monkeypatch.setattr("time.time", lambda: when_s)
        store.add(tuned(tmp_path, 2))
        done = colltune("site", "publish", "--sign", str(tmp_path / key), code=0)
        return store.outbox / "releases" / done.stdout.split("published ")[1].split(".")[0]

    def is_verified(place: Path) -> bool:
        """By the lines of the module's help."""
        module = next((place / "modules/lmod").rglob("*.lua")).read_text()
        lines = [line for line in module.splitlines() if line.startswith(("sha256sum --check", "ssh-keygen"))]
        script = " && ".join(lines).removesuffix("]])").replace("NAME", "admin@site")
        script = script.replace("SIGNERS", str(tmp_path / "signers"))
        return subprocess.run(["sh", "-c", script], cwd=place, capture_output=True, check=False).returncode == 0

    good = published("admin", NOW)
    assert is_verified(good)
    assert not is_verified(published("eve", NOW + 1))
    module = next((good / "modules/lmod").rglob("*.lua"))
    module.chmod(0o644)
    module.write_text(module.read_text() + "\nos.execute('id')\n")
    assert not is_verified(good)


@pytest.mark.parametrize("version", sorted(path.name for path in RECORDED.iterdir()))
def test_a_store_of_an_earlier_colltune_is_read(version: str, tmp_path: Path) -> None:
    """Its entries say no user number: they are of the owner of their files."""
    store = SiteStore.opened(shutil.copytree(RECORDED / version, tmp_path / "earlier"))
    (tmp_path / "earlier" / "quarantine").mkdir(exist_ok=True)
    entries = open_index(store, KEY).entries
    assert (len(entries), {one.uid for one in entries}) == (2, {os.geteuid()})
    (name,) = releases(store)
    assert activate(store, name).tunings[0].writers == ()
    (one,) = publish(store, "root", "1", lint, NOW).tunings
    assert one.writers == (os.geteuid(),)
