"""One bad file stops nobody: what others wrote costs that file, with its reason, and no time or secret."""

import gzip
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_site_store import HERE, KEY, entry

from colltune.core.errors import InputError
from colltune.machine.files import parse_json, read_file
from colltune.session.site.state import status
from colltune.site import entry as limits
from colltune.site.entry import Identity, name_of, pack
from colltune.site.index import open_index
from colltune.site.release import publish
from colltune.site.store import INBOX, SiteStore
from colltune.store.records import Note, encode
from colltune.store.tuning import MANIFEST, load_tuning


def printed_status(store: SiteStore) -> bytes:
    command = [sys.executable, "-m", "colltune", "site", "status", "--store", store.directory]
    return subprocess.run(command, capture_output=True, check=True).stdout


def lines_of(data: bytes) -> list[bytes]:
    return gzip.decompress(data).splitlines(keepends=True)


def changed(old: bytes, new: bytes) -> bytes:
    """An entry in whose lines ``old`` is replaced, with the checksums of a careful forger."""
    lines = []
    for line in lines_of(pack(entry(2))):
        body = line[len(b'{"crc32":"00000000",') : -1].replace(old, new)
        lines.append(b'{"crc32":"%08x",%b\n' % (zlib.crc32(body), body))
    assert any(new in line for line in lines)
    return gzip.compress(b"".join(lines))


def longer(*lines: bytes) -> bytes:
    return gzip.compress(b"".join([*lines_of(pack(entry(2))), *lines]))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: changed(b'"repetitions":2', b'"repetitions":100000000'), "<= 1000000"),
        (lambda: longer(*[encode(Note("x"))] * (limits.MOST_RECORDS + 1)), "over 200000 records"),
        (lambda: changed(b'"nodes":4', b'"nodes":1000000000'), "1000000000 nodes"),
        (lambda: changed(b'"ppn":2', b'"ppn":1000000000'), "1000000000 ranks"),
        (lambda: changed(b'"began_s":1700000000.0', b'"began_s":NaN'), "malformed"),
        (lambda: changed(b'"began_s":1700000000.0', b'"began_s":1e999'), "out of range"),
        (lambda: changed(b'"ended_s":1701000000.0', b'"ended_s":1e300'), "`float` < 4102444800.0"),
        (lambda: changed(b'"ended_s":1701000000.0', b'"ended_s":' + b"9" * 5000), "out of range"),
        (lambda: changed(b'"user":"ada"', b'"user":"\\ud800"'), "no valid record"),
        (lambda: changed(b'"user":"ada"', b'"user":"' + b"a" * 1000 + b'"'), "length <= 255"),
        (lambda: changed(b'"facts":{"fabric"', b'"x":' + b"[" * 10**5 + b',"facts":{"fabric"'), "recursion"),
        *((lambda name=name: pack(entry(2, files={name: b""})), "names a file")
          for name in ("a\x00b", "a\x1b[2J", "../tuning.json", "/etc/passwd", "a//b", "", "mpich/..")),
        (lambda: longer(encode(Note("file", {"name": "x" * 300, "base64": ""}))), "names a file"),
        (lambda: longer(encode(Note("file", {"name": "x", "base64": "\x00"}))), "not an entry"),
        (lambda: longer(encode(Note("file"))), "not an entry"),
    ],
)  # fmt: skip
def test_an_entry_beyond_a_limit_is_set_aside(store: SiteStore, make: Callable[[], bytes], reason: str) -> None:
    good, bad = store.add(entry(1)), make()
    name = name_of(bad)
    store.place(KEY, name).write_bytes(bad)
    began_s = time.process_time()
    assert [one.name for one in open_index(store, KEY).entries] == [good]
    assert time.process_time() - began_s < 20.0
    assert reason in dict(store.quarantined())[f"{KEY}-{name}"]
    status(store)


def test_docs_state_the_limits_of_an_entry() -> None:
    page = (Path(__file__).parents[2] / "docs/design/site.md").read_text()
    for number in (limits.MOST_RECORDS, limits.MOST_TIMES, limits.MOST_NODES, limits.MOST_PPN):
        assert f"{number:,}" in page
    assert f"{limits.MOST_BYTES >> 20} MiB" in page


@pytest.mark.parametrize("library", ["nosuchmpi", "../../etc/passwd", "mpich\x00", "mpich 99"])
def test_an_mpi_without_a_catalogue_costs_its_entry_alone(store: SiteStore, library: str) -> None:
    store.add(replace(entry(3), environment=replace(HERE, mpi=library)))
    store.add(entry(1))
    assert len(status(store).machines) == 2


def manifest_naming(name: str) -> bytes:
    return json.dumps(
        {
            "schema": 1,
            "environment": {"mpi": "mpich", "mpi_version": "5.0.2", "mpi_build": "", "machine": "",
                            "nodes": 1, "ppn": 2, "thread_level": "single"},
            "rules": {}, "variables": {}, "files": {name: "0" * 64}, "summary": {},
        }
    ).encode()  # fmt: skip


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/tty", "../../../dev/zero", "a\x00b", "\ud800", "..", "x" * 5000])
def test_a_manifest_names_no_device_and_nothing_outside_of_its_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / MANIFEST).write_bytes(manifest_naming(name))
    with pytest.raises(InputError):
        load_tuning(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "link", "device", "directory", "huge"])
def test_only_a_plain_file_below_a_size_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "/etc/passwd")
    with pytest.raises(OSError, match=r"link|plain file|larger than"):
        read_file(path)
    if kind != "link":
        with pytest.raises(OSError, match=r"plain file|larger than"):
            read_file(path, link=True)


def test_a_file_that_grows_while_it_is_read_is_bounded() -> None:
    with pytest.raises(OSError, match="larger than"):
        read_file(Path("/proc/self/smaps"), 100)  # whose size is said to be 0


@pytest.mark.parametrize(
    "text",
    ["[" * 10**5, "[" * 100 + "]" * 100, "9" * 5000, '"\\ud800"', '{"a": "\\uDFFF"}', "\ud800", "[NaN]", "", "{"],
)
def test_json_without_bound_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        parse_json(text.encode("utf-8", "surrogatepass"))
    assert len(str(error.value)) < 200


def test_a_pipe_in_place_of_the_index_stops_nobody(store: SiteStore) -> None:
    store.add(entry(1))
    os.mkfifo(store.index_path(KEY))
    assert len(open_index(store, KEY).entries) == 1


def test_a_reason_is_no_way_to_read_a_private_file(store: SiteStore, tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE KEY")
    store.add(entry(1))
    for name in ("11" * 32, "22" * 32, "33" * 32):
        (store.quarantine / f"{KEY}-{name}.jsonl.gz").touch()
    (store.quarantine / f"{KEY}-{'11' * 32}.reason").symlink_to(secret)
    os.mkfifo(store.quarantine / f"{KEY}-{'22' * 32}.reason")
    (store.quarantine / f"{KEY}-{'33' * 32}.reason").write_bytes(b"\xff\xfe")
    assert {reason for _, reason in store.quarantined()} == {"its reason cannot be read"}
    assert b"PRIVATE KEY" not in printed_status(store)


def test_a_reason_and_the_text_of_an_entry_are_printed_without_their_escape_sequences(store: SiteStore) -> None:
    name = f"{KEY}-{'11' * 32}"
    (store.quarantine / f"{name}.jsonl.gz").touch()
    (store.quarantine / f"{name}.reason").write_text("\x1b]0;title\x07\x1b[2J\u202edone\r\n")
    store.add(replace(entry(1), environment=replace(HERE, machine="\x1b[31ma CPU\x9b2J")))
    printed = printed_status(store)
    assert all(text in printed for text in (rb"\x1b]0;title\x07", rb"\u202edone", rb"a CPU\x9b2J"))
    assert b"\x1b" not in printed


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\nb", b"\x1b[2J"])
def test_names_that_are_no_text_are_no_entries(store: SiteStore, name: bytes) -> None:
    good, text = store.add(entry(1)), os.fsdecode(name)
    inbox = store.directory / INBOX
    for path in (inbox / f"{KEY}-{text}", inbox / f"{text}-x", store.quarantine / text):
        Path(f"{path}.jsonl.gz").touch()
    assert store.names() == {KEY: {good}}
    assert [one.name for one in open_index(store, KEY).entries] == [good]
    printed_status(store)


def test_a_thousand_empty_files_cost_seconds(store: SiteStore) -> None:
    good = store.add(entry(1))
    for number in range(500):
        store.place(KEY, f"{number:064x}").touch()
        store.place(f"{number:016x}", f"{number:064x}").touch()
    began_s = time.process_time()
    assert [one.name for one in open_index(store, KEY).entries] == [good]
    status(store)
    assert time.process_time() - began_s < 10.0


def test_publish_goes_on_past_an_entry_whose_files_are_nonsense(store: SiteStore) -> None:
    for number, data in enumerate((b"{", b"[" * 10**5, b'{"rules": 7}', manifest_naming("/dev/zero"))):
        store.add(replace(entry(number), files={MANIFEST: data, "mpich/x.json": b""}))
    with pytest.raises(InputError, match="nothing to publish"):
        publish(store, "ada", "1", lambda _tuning: [])
    assert Identity.of(HERE).key in store.names()
