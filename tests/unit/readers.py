"""Every reader of what others wrote, with valid files to begin from: of our own files, and by an import of the rest."""

import gzip
import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path

import readers_of_libraries  # noqa: F401  # lists its own
from application_history import leave_run
from mutation import compressed, of_arrays, of_bytes, of_journal, of_json, of_lines
from reading import DATA, READERS, RECORDED, ROOT, TUNINGS, Reader, Seeds, file_reader, files, folder, reader, texts
from test_site_store import KEY, entry

from colltune.core.errors import ColltuneError
from colltune.core.sample import Choice
from colltune.emit.thresholds import thresholds_file
from colltune.predict.model import load_model
from colltune.profile.parts import read_parts
from colltune.profile.profile_files import load_profile, save_profile
from colltune.prove.in_run.matched_calls import read_effect
from colltune.session.compare import _compare_outputs
from colltune.session.export import thresholds_of_job
from colltune.site.entry import BadEntryError, LaterEntryError, name_of, pack, unpack
from colltune.site.index import open_index
from colltune.site.knowledge import tuning_in
from colltune.site.release import MANIFEST as RELEASE
from colltune.site.release import activations, read_release
from colltune.site.store import SiteStore
from colltune.store.applications import PARTS, RUN, application_runs, read_run
from colltune.store.journal import Journal, read_journal
from colltune.store.lock import _read as read_lock
from colltune.store.records import encode
from colltune.store.tuning import MANIFEST, load_tuning
from colltune_study.recorded.dataset import load_grids
from colltune_study.research.weights import load_call_counts
from colltune_study.simulated.smpi import read_memory
from journal_samples import ENVIRONMENT, example_samples

__all__ = ["READERS", "Reader"]

# Journals, tunings, runs, profiles.


def _journal() -> list[bytes]:
    with folder() as place:
        with Journal.create(place / "j", ENVIRONMENT) as journal:
            journal.append(example_samples(4))
            journal.note("launch", {"number": 1, "seconds": 2.5, "why": None})
        return [(place / "j").read_bytes()]


@reader("store.journal store.records", of_journal, _journal)
def journal(data: bytes) -> None:
    with folder(j=data) as place:
        for sample in read_journal(place / "j").samples:
            encode(sample)
        Journal.open(place / "j", ENVIRONMENT).close()


MANIFESTS = files(*(one / MANIFEST for one in TUNINGS))


@reader("store.tuning session.site.runs store.summary_json", of_json, MANIFESTS)
def tuning(data: bytes) -> None:
    with folder() as place:
        shutil.copytree(TUNINGS[0], place / "t", ignore=shutil.ignore_patterns(MANIFEST))
        (place / "t" / MANIFEST).write_bytes(data)
        read = load_tuning(place / "t")
        read.variables_at(place)
        _ = (read.summary.speedup, read.left_out)


@reader("site.knowledge", of_json, MANIFESTS)
def tuning_of_an_entry(data: bytes) -> None:
    with suppress(ColltuneError):  # which costs the entry: the files that it names are not there
        tuning_in({MANIFEST: data})


def _run(name: str) -> Seeds:
    def seeds() -> list[bytes]:
        with folder() as place:
            return [(leave_run(place, ENVIRONMENT, Choice("chain"), 1.1, pairs=3) / name).read_bytes()]

    return seeds


def _read_run(path: Path) -> None:
    """A run with this file in the place of its own."""
    run = leave_run(path.parent, ENVIRONMENT, Choice("chain"), 1.1, pairs=1)
    shutil.copy(path, run)
    application_runs(path.parent)
    read_run(run)


BLOCKS = f"{PARTS}.1.0"
file_reader("application_run", "store.applications", of_json, _run(RUN), _read_run, RUN)
file_reader("application_blocks", "store.applications", of_lines, _run(BLOCKS), _read_run, BLOCKS)

PART = """colltune-profile 1
job ranks_seen=all ranks=4 nodes=2 elapsed_ns=2000000000 threads_multiple=0 clock_error_ns=150 lost_calls=0 \
lost_stamps=0
communicators size=4 remote_size=0 nodes=2 ppn=2 even=1 count=4
call size=4 remote_size=0 nodes=2 ppn=2 even=1 function=bcast form=blocking op=none bin=11 calls=4 bytes=4096 \
time_ns=99 size_sum=4096 size_least=1024 size_most=1024
end
"""
file_reader("profile_parts", "profile.parts", of_lines, texts(PART), lambda path: read_parts([path]))


def _profile() -> list[bytes]:
    with folder(part=PART.encode()) as place:
        save_profile(place / "p", read_parts([place / "part"]))
        return [(place / "p").read_bytes()]


def _read_profile(path: Path) -> None:
    for calls in load_profile(path).calls:
        _ = (calls.calls, calls.scenarios(), calls.blocks and calls.blocks.spread)


PRINTED = RECORDED / "benchmarks"
file_reader("profile", "profile.profile_files", of_json, _profile, _read_profile)
file_reader("benchmark_output", "machine.benchmark_output machine.file_formats session.compare", of_lines,
            files(PRINTED / "osu.txt", PRINTED / "imb_agent_on.txt", PRINTED / "reprompi.txt"),
            lambda path: _compare_outputs((str(path),) * 2, (2, 2), (), (1, 1 << 20), lambda _note: None))  # fmt: skip

EFFECT = """colltune-count 1
job ranks=4 nodes=2 threads_multiple=0 lost=0
call function=bcast form=blocking size=4 remote_size=0 nodes=2 ppn=2 even=1 calls=8 met=8 least=8 most=64
end
"""
file_reader("effect", "prove.in_run.matched_calls", of_lines, texts(EFFECT), lambda path: read_effect([path]))
file_reader("call_counts", "research.weights research.evaluation", of_json,
            texts('{"calls": [{"collective": "bcast", "nodes": 16, "ppn": 32, "msg_bytes": 8, "calls": 9}]}'),
            load_call_counts)  # fmt: skip
file_reader("lock", "store.lock", of_json, texts('{"host": "n1", "system": "x", "pid": 1, "began": "7"}'), read_lock)


# A site.


@reader("site.entry store.records", compressed(of_journal), lambda: [pack(entry(2, files={"mpich/x.json": b"{}"}))],
        (BadEntryError, LaterEntryError))  # fmt: skip
def site_entry(data: bytes) -> None:
    unpack(data, name_of(data))


@reader("site.index site.index_rows session.site.state", compressed(of_journal), lambda: [pack(entry(2))])
def site_inbox(data: bytes) -> None:
    with folder() as place:
        store = SiteStore.made(place / "s")
        store.place(KEY, name_of(data)).write_bytes(data)
        index = open_index(store, KEY)
        _ = (index.entries, list(store.quarantined()), index.coverage())


def _index() -> list[bytes]:
    with folder() as place:
        store = SiteStore.made(place / "s")
        for number in range(9):
            store.add(entry(number))
        open_index(store, KEY)
        return [store.index_path(KEY).read_bytes()]


@reader("site.index", of_bytes, _index)
def site_index(data: bytes) -> None:
    with folder() as place:
        store = SiteStore.made(place / "s")
        store.index_path(KEY).write_bytes(data)
        _ = open_index(store, KEY).entries


file_reader("site_mark", "site.store", of_json, texts('{"schema": 1}'),
            lambda path: SiteStore.opened(path.parent), "site.json")  # fmt: skip


@reader("site.store", of_bytes, texts("it is a link"))
def site_reason(data: bytes) -> None:
    with folder() as place:
        store = SiteStore.made(place / "s")
        (store.quarantine / "x.jsonl.gz").touch()
        (store.quarantine / "x.reason").write_bytes(data)
        list(store.quarantined())


@reader("emit.thresholds session.export", of_lines, texts("# of 8 processes\nexport MPICH_REDUCE_SHORT_MSG=12\n"))
def thresholds(data: bytes) -> None:
    with folder(**{thresholds_file(8): data, thresholds_file(): data}) as place:
        for ranks in ("8", "9"):
            thresholds_of_job(place, ["mpiexec", "-n", ranks, "app"], {})


@reader("site.release", of_json, texts('[{"release": "a"}, {"release": "b"}]'))
def site_activations(data: bytes) -> None:
    with folder() as place:
        store = SiteStore.made(place / "s")
        (store.outbox / "activations.json").write_bytes(data)
        activations(store)


PUBLISHED = {
    "schema": 1, "made_s": 1.7e9, "by": "ada", "colltune": "1", "refused": ["2 x 2: stale"],
    "tunings": [{"directory": "tunings/x/2x2", "identity": {"machine": "m", "mpi": "mpich", "mpi_version": "5.0.2",
                 "mpi_build": "ab", "thread_level": "single", "fabric": ""}, "nodes": 2, "ppn": 2, "entry": "e",
                 "confirmed_s": 1.7e9, "collectives": ["bcast"], "proven": 3, "variables": {}, "libmpi": "",
                 "files": {"a.json": hashlib.sha256(b"{}").hexdigest()}}],
}  # fmt: skip


@reader("site.release", of_json, texts(json.dumps(PUBLISHED)))
def site_release(data: bytes) -> None:
    name = f"r-{hashlib.sha256(data).hexdigest()[:8]}"
    with folder(**{f"{name}/{RELEASE}": data, f"{name}/tunings/x/2x2/a.json": b"{}"}) as place:
        read_release(place / name)


# Tables and models.


def _table() -> list[bytes]:
    """The first rows of a recorded one."""
    lines = gzip.decompress((RECORDED / "pico_lumi_allreduce.csv.gz").read_bytes()).splitlines()
    return [b"\n".join(lines[:400]) + b"\n"]


def _read_table(path: Path) -> None:
    load_grids([path], 1)


file_reader("table_csv", "recorded.dataset recorded.table_checks", of_lines, _table, _read_table, "t.csv")
file_reader("table_csv_gz", "recorded.dataset", compressed(of_lines), lambda: [gzip.compress(*_table())], _read_table,
            "t.csv.gz")  # fmt: skip
file_reader("table_parquet", "recorded.dataset", of_bytes, files(DATA / "simulated_dragonfly_1024.parquet"),
            _read_table, "t.parquet")  # fmt: skip
file_reader("simulated_memory", "simulated.smpi", of_lines,
            texts('{"time x 2 2": [1e-5, true]}\n{"why": "it failed"}\n'), read_memory)  # fmt: skip
file_reader("clusters_model", "predict.model predict.trees", of_arrays,
            files(ROOT / "src/colltune/predict/model.npz"), load_model, "m.npz")  # fmt: skip
