"""Every reader of what others wrote, with valid files to begin from: one line each.

``reader(MODULE, MUTATION, read, seeds)``: ``read`` takes the bytes of a changed file. It may raise the errors of the
package and nothing else; ``also`` names those that its caller turns into one.
"""

import gzip
import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from application_history import leave_run
from mpich_trees import default_trees
from mutation import Mutation, compressed, of_array, of_arrays, of_bytes, of_journal, of_json, of_lines
from test_site_store import KEY, entry

from colltune.alltoallv.lookup_table import load_table, require_made_here
from colltune.alltoallv.matrices import load_matrix
from colltune.bench.backends.openmpi import find_obstacles
from colltune.catalog import load
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.errors import ColltuneError
from colltune.core.hostlist import compress_hostlist, expand_hostlist, parse_counts
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import Scenario, SizeBasis
from colltune.core.units import parse_duration, parse_size
from colltune.deploy.explored import load_candidates
from colltune.emit.intelmpi import FILE, IntelMpiEmitter
from colltune.emit.lint.check import format_check
from colltune.emit.lint.fix import fix_file
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.live_rules import live_choices, parse_live
from colltune.emit.mpich.defaults import cut_default_trees, holds_named_trees
from colltune.emit.mpich.outcome import describe_outcome, trees_of
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Call, format_tree
from colltune.emit.openmpi.han import parse_han
from colltune.emit.openmpi.lint_han import lint_han_files
from colltune.emit.openmpi.lint_rules import fix_rules, lint_rules_files
from colltune.emit.openmpi.reader import ReadError
from colltune.emit.openmpi.rules_file import RULES_FILE, OpenMpiEmitter
from colltune.machine.hardware_features import read_features
from colltune.machine.record import RecordedMachine
from colltune.measure.agent_process import parse_fields
from colltune.mpi.detect import describe_machine
from colltune.mpi.job import find_job, parse_host_file
from colltune.predict.model import load_model
from colltune.profile.parts import read_parts
from colltune.profile.profile_files import load_profile, save_profile
from colltune.prove.in_run.matched_calls import read_effect
from colltune.schedule.topology_files import (
    parse_plain,
    parse_scheme,
    parse_slurm_conf,
    parse_slurm_topology,
    parse_slurm_yaml,
)
from colltune.session.compare import _compare_outputs
from colltune.site.entry import BadEntryError, LaterEntryError, name_of, pack, unpack
from colltune.site.index import open_index
from colltune.site.knowledge import tuning_in
from colltune.site.release import MANIFEST as RELEASE
from colltune.site.release import activations, read_release
from colltune.site.store import SiteStore
from colltune.store.applications import PARTS, RUN, latest_run, read_run
from colltune.store.dataset import load_grids
from colltune.store.journal import Journal, read_journal
from colltune.store.lock import _read as read_lock
from colltune.store.tuning import MANIFEST, load_tuning
from colltune_study.research.weights import load_call_counts
from colltune_study.simulated.smpi import read_memory
from colltune_study.simulated.smpi_cluster import parse_cluster
from journal_laws import ENVIRONMENT, example_samples

ROOT = Path(__file__).parents[2]
GOLDEN, RECORDED, DATA = ROOT / "tests/golden", ROOT / "tests/recorded", ROOT / "benchmarks/data"


@dataclass(frozen=True)
class Reader:
    """``modules``: those of the package that read here. ``seeds``: makes the files to begin from."""

    name: str
    modules: tuple[str, ...]
    mutation: Mutation
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    also: tuple[type[Exception], ...] = ()


READERS: dict[str, Reader] = {}


def reader(
    modules: str,
    mutation: Mutation,
    seeds: Callable[[], Sequence[bytes]],
    also: tuple[type[Exception], ...] = (),
) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    def add(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
        READERS[read.__name__] = Reader(read.__name__, tuple(modules.split()), mutation, read, cache(seeds), also)
        return read

    return add


@contextmanager
def folder(**files: bytes) -> Any:
    """A folder of these files, whose names have ``__`` for a slash and ``_`` for a dot."""
    with tempfile.TemporaryDirectory(prefix="colltune-test-") as place:
        for name, data in files.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield Path(place)


def files(*paths: Path) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in paths]


def texts(*some: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in some]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


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
        read_journal(place / "j")
        Journal.open(place / "j", ENVIRONMENT).close()


TUNINGS = [RECORDED / "tunings" / name for name in ("ended", "measured", "predicted")]


@reader(
    "store.tuning session.site.runs store.summary_json",
    of_json,
    files(*(one / MANIFEST for one in TUNINGS)),
)
def tuning(data: bytes) -> None:
    with folder() as place:
        shutil.copytree(TUNINGS[0], place / "t", ignore=shutil.ignore_patterns(MANIFEST))
        (place / "t" / MANIFEST).write_bytes(data)
        read = load_tuning(place / "t")
        read.variables_at(place)
        _ = (read.summary.speedup, read.left_out)


@reader("site.knowledge", of_json, files(*(one / MANIFEST for one in TUNINGS)))
def tuning_of_an_entry(data: bytes) -> None:
    with suppress(ColltuneError):  # which costs the entry: the files that it names are not there
        tuning_in({MANIFEST: data})


def _run(name: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        with folder() as place:
            return [(leave_run(place, ENVIRONMENT, Choice("chain"), 1.1, pairs=3) / name).read_bytes()]

    return seeds


def _read_run(**changed: bytes) -> None:
    with folder() as place:
        run = leave_run(place, ENVIRONMENT, Choice("chain"), 1.1, pairs=1)
        for name, data in changed.items():
            (run / name).write_bytes(data)
        latest_run(place)
        read_run(run)


@reader("store.applications", of_json, _run(RUN))
def application_run(data: bytes) -> None:
    _read_run(**{RUN: data})


@reader("store.applications", of_lines, _run(f"{PARTS}.1.0"))
def application_blocks(data: bytes) -> None:
    _read_run(**{f"{PARTS}.1.0": data})


PART = """colltune-profile 1
job ranks_seen=all ranks=4 nodes=2 elapsed_ns=2000000000 threads_multiple=0 clock_error_ns=150 lost_calls=0 \
lost_stamps=0
communicators size=4 remote_size=0 nodes=2 ppn=2 even=1 count=4
call size=4 remote_size=0 nodes=2 ppn=2 even=1 function=bcast form=blocking op=none bin=11 calls=4 bytes=4096 \
time_ns=99 size_sum=4096 size_least=1024 size_most=1024 waiting_ns=100 sampled_ns=400 sampled=4 samples=4
end
"""


@reader("profile.parts", of_lines, texts(PART))
def profile_parts(data: bytes) -> None:
    with folder(part=data) as place:
        read_parts([place / "part"])


def _profile() -> list[bytes]:
    with folder(part=PART.encode()) as place:
        save_profile(place / "p", read_parts([place / "part"]))
        return [(place / "p").read_bytes()]


@reader("profile.profile_files", of_json, _profile)
def profile(data: bytes) -> None:
    with folder(p=data) as place:
        read = load_profile(place / "p")
        for calls in read.calls:
            _ = (calls.calls, calls.own_time_s, calls.scenarios(), calls.blocks and calls.blocks.spread)


PRINTED = RECORDED / "benchmarks"


@reader("profile.other_profilers", of_lines, files(PRINTED / "ipm.xml", PRINTED / "mpip.txt"))
def other_profile(data: bytes) -> None:
    profile(data)


@reader("machine.benchmark_output machine.file_formats session.compare", of_lines,
        files(PRINTED / "osu.txt", PRINTED / "imb_agent_on.txt", PRINTED / "reprompi.txt"))  # fmt: skip
def benchmark_output(data: bytes) -> None:
    with folder(t=data) as place:
        _compare_outputs((str(place / "t"), str(place / "t")), (2, 2), (), (1, 1 << 20), lambda _note: None)


EFFECT = """colltune-count 1
job ranks=4 nodes=2 threads_multiple=0 lost=0
call function=bcast form=blocking size=4 remote_size=0 nodes=2 ppn=2 even=1 calls=8 met=8 least=8 most=64
end
"""


@reader("prove.in_run.matched_calls", of_lines, texts(EFFECT))
def effect(data: bytes) -> None:
    with folder(e=data) as place:
        read_effect([place / "e"])


@reader("research.weights research.evaluation", of_json,
        texts('{"calls": [{"collective": "bcast", "nodes": 16, "ppn": 32, "msg_bytes": 8, "calls": 9}]}'))  # fmt: skip
def call_counts(data: bytes) -> None:
    with folder(c=data) as place:
        load_call_counts(place / "c")


@reader("store.lock", of_json, texts('{"host": "n1", "system": "x", "pid": 1, "began": "7"}'))
def lock(data: bytes) -> None:
    with folder(lock=data) as place:
        read_lock(place / "lock")


# A site.


@reader("site.entry store.records", compressed(of_journal), lambda: [pack(entry(2, files={"mpich/x.json": b"{}"}))],
        (BadEntryError, LaterEntryError))  # fmt: skip
def site_entry(data: bytes) -> None:
    unpack(data, name_of(data))


@reader("site.index site.index_rows session.site.pending", compressed(of_journal), lambda: [pack(entry(2))])
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


@reader("site.store", of_json, texts('{"schema": 1}'))
def site_mark(data: bytes) -> None:
    with folder(**{"site.json": data}) as place:
        SiteStore.opened(place)


@reader("site.store", of_bytes, texts("it is a link"))
def site_reason(data: bytes) -> None:
    with folder() as place:
        store = SiteStore.made(place / "s")
        (store.quarantine / "x.jsonl.gz").touch()
        (store.quarantine / "x.reason").write_bytes(data)
        list(store.quarantined())


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


# Files that an MPI reads, and ours for the live selector and the all-to-all.


@cache
def _mpich() -> MpichEmitter:
    return MpichEmitter(load("mpich", "5.0.2"), default_trees())


@cache
def _openmpi() -> OpenMpiEmitter:
    return OpenMpiEmitter(load("openmpi", "5.0.11"))  # type: ignore[arg-type]


RULES = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, 4, 64, DEFAULT), Rule(None, 4, 4096, Choice("binomial")),
                Rule(None, 4, None, DEFAULT), Rule(None, None, None, DEFAULT)))  # fmt: skip
TREES = [GOLDEN / "mpich" / version / name for version in ("4.0", "5.0") for name in (GENERAL_FILE, CH4_FILE)]


@reader("emit.mpich.selection_file emit.mpich.tree emit.mpich.outcome", of_json, files(*TREES))
def mpich_tree(data: bytes) -> None:
    for collective in ("bcast", "allreduce"):
        with suppress(ColltuneError):
            _mpich().parse({GENERAL_FILE: data, CH4_FILE: data}, collective)
        trees = trees_of({GENERAL_FILE: data, CH4_FILE: data})
        describe_outcome(trees, Call.of(Scenario(collective, 2, 2, 1024)), load("mpich", "5.0.2"))


@reader("emit.lint.selection_file emit.lint.json_text session.lint", of_json, files(*TREES))
def mpich_lint(data: bytes) -> None:
    for check in lint_files({"f": data}, "5.0.2", load("mpich", "5.0.2")):
        format_check(check)


def _trees() -> list[bytes]:
    trees = default_trees()
    return [format_tree(tree) for tree in (trees.general, trees.ch4)]


@reader("emit.lint.fix", of_json, _trees)
def mpich_fix(data: bytes) -> None:
    fix_file(data, "5.0.2", load("mpich", "5.0.2"), default_trees())


@reader(
    "emit.mpich.defaults bench.backends.mpich mpi.detect mpi.reads mpi.same",
    of_json,
    _trees,
)
def mpich_library(data: bytes) -> None:
    others = b"\0".join(_trees())
    with folder(**{"libmpi.so": b"\x7fELF\0" + data + b"\0" + others + b"\0"}) as place:
        holds_named_trees(place / "libmpi.so")
        cut_default_trees(place / "libmpi.so")


@reader("emit.openmpi.rules_file emit.openmpi.reader emit.openmpi.lint_rules", of_lines,
        lambda: [_openmpi().emit([RULES])[RULES_FILE]], (ReadError,))  # fmt: skip
def openmpi_rules(data: bytes) -> None:
    for version in ("4.1.4", "5.0.11"):
        for check in lint_rules_files({"f": data}, version, load("openmpi", version)):
            format_check(check)
    fix_rules(data, "f", "5.0.11", load("openmpi", "5.0.11"))
    _openmpi().parse({RULES_FILE: data}, "bcast")


@reader("emit.intelmpi", of_lines, texts("export I_MPI_ADJUST_BCAST='1:0-4096;3:4097-2147483647'\n"))
def exports(data: bytes) -> None:
    IntelMpiEmitter(load("intelmpi", "2021.17")).parse({FILE: data}, "bcast")


@reader("emit.openmpi.han emit.openmpi.lint_han", of_lines,
        texts("1\nallreduce\n1\n2\n2\n1\n1\n0 han\n8\n2\n0 han\n1024 tuned\n"))  # fmt: skip
def openmpi_han(data: bytes) -> None:
    for check in lint_han_files({"f": data}, "5.0.11"):
        format_check(check)
    parse_han(data)


PLACE = Path("candidates/candidates")
LIVE = [one / "live/colltune-live.rules" for one in TUNINGS[:2]]


@reader("emit.live_rules emit.rule_text", of_lines, files(*LIVE))
def live_rules(data: bytes) -> None:
    with suppress(ColltuneError):
        live_choices(text_of(data))
    parse_live(text_of(data))


def explored(*choices: str) -> bytes:
    """What `run --auto` knows of a program."""
    application = {"command": ["mpiexec", "./app"], "name": "app", "digest": "12ab"}
    kind = {"collective": "bcast", "basis": "message", "nodes": 2, "ppn": 2, "size": [64, 127], "share": 0.1}
    kinds = [{**kind, "choices": choices}]
    return json.dumps({"schema": 2, "application": application, "mpi_build": "1f", "kinds": kinds}).encode()


@reader("deploy.explored", of_lines, files(*LIVE))
def candidates(data: bytes) -> None:
    with folder(**{"candidates/candidates.json": explored(), "candidates/colltune-live.rules": data}) as place:
        load_candidates(place)


@reader("deploy.explored", of_json, lambda: [explored(), explored(str(live_choices(text_of(LIVE[0].read_bytes()))[0]))])
def candidates_record(data: bytes) -> None:
    live = LIVE[0].read_bytes()
    with folder(**{"candidates/candidates.json": data, "candidates/colltune-live.rules": live}) as place:
        load_candidates(place)


TABLE = """colltune-rules 2
choice 0 - algorithm=parata,radix=4
rules alltoallv average 2
rule 2..2 4..4 96..191 0 4
rule 2..2 4..4 - -
"""


@reader("alltoallv.lookup_table emit.rule_text", of_lines, texts(TABLE))
def alltoallv_table(data: bytes) -> None:
    with folder(t=data) as place:
        load_table(place / "t")


_MADE = '# made: {"mpi": "mpich", "mpi_version": "5.0.2", "mpi_build": "1f", "machine": "m", "fabric": "", "seed": 1}\n'


@reader("alltoallv.lookup_table", of_lines, texts(TABLE.replace("\n", f"\n{_MADE}", 1)))
def alltoallv_origin(data: bytes) -> None:
    with folder(t=data) as place:
        require_made_here(place / "t", Environment("mpich", "5.0.2", "1f", "m", 1, 2, "single"))


def _npy() -> list[bytes]:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(16).reshape(4, 4))
    return [buffer.getvalue()]


@reader("alltoallv.matrices", of_array, _npy)
def matrix_npy(data: bytes) -> None:
    with folder(**{"m.npy": data}) as place:
        _ = load_matrix(place / "m.npy").ranks


@reader("alltoallv.matrices", of_lines, texts("0 1 2\n3 4 5\n6 7 8\n"))
def matrix_text(data: bytes) -> None:
    with folder(**{"m.txt": data}) as place:
        _ = load_matrix(place / "m.txt").ranks


# The job, its network and its machine.

TOPOLOGIES = RECORDED / "topologies"


@reader("schedule.topology_files", of_lines, files(TOPOLOGIES / "topology.yaml"))
def topology_yaml(data: bytes) -> None:
    parse_slurm_yaml(text_of(data), "f")


@reader("schedule.topology_files", of_lines, files(TOPOLOGIES / "topology.conf", TOPOLOGIES / "topology-block.conf"))
def topology_conf(data: bytes) -> None:
    parse_slurm_conf(text_of(data), "f")
    parse_slurm_topology(text_of(data), "f")


@reader("schedule.topology_files", of_lines, files(TOPOLOGIES / "plain.txt"))
def topology_plain(data: bytes) -> None:
    parse_plain(text_of(data), "f")


@reader("schedule.topology_files", of_lines, files(*sorted((ROOT / "src/colltune/schedule/schemes").glob("*.toml"))))
def topology_scheme(data: bytes) -> None:
    parse_scheme(text_of(data), "f").path("x1000c0s0b0n0")


@reader("core.hostlist", of_lines, texts("n[08-10],login", "a[1-3]b[01-02]", "2(x3),1"))
def hostlist(data: bytes) -> None:
    with suppress(ColltuneError):
        parse_counts(text_of(data))
    compress_hostlist(expand_hostlist(text_of(data)))


JOBS = RECORDED / "jobs"


@reader("mpi.job", of_lines, files(*JOBS.glob("*.hosts"), *JOBS.glob("*.nodes")))
def host_file(data: bytes) -> None:
    parse_host_file(text_of(data), "f", 4)
    with folder(hosts=data) as place:
        find_job({}, host_file=place / "hosts")


_PARAMETERS = "# the site's\ncoll_tuned_bcast_algorithm = 3 # chain\ncoll = ^tuned\ncoll_ucc_enable=1\n"


@reader("bench.backends.openmpi", of_lines, texts(_PARAMETERS))
def openmpi_parameters(data: bytes) -> None:
    with folder(**{".openmpi/mca-params.conf": data}) as place:
        find_obstacles({"HOME": str(place)})


@reader("mpi.job", of_lines, files(*JOBS.glob("*.env")))
def job_environment(data: bytes) -> None:
    held = dict(line.partition("=")[::2] for line in text_of(data).split("\n"))
    find_job({name: value.replace("@HERE@", str(JOBS)) for name, value in held.items()})


@reader("mpi.job", of_lines, files(*JOBS.glob("*.resources")))
def job_flux(data: bytes) -> None:
    find_job({}, flux_resources=text_of(data))


@reader("machine.record machine.parse machine.hardware_features mpi.detect", of_bytes,
        files(RECORDED / "machines/virtual-2-cores.tar.gz"))  # fmt: skip
def machine_archive(data: bytes) -> None:
    with folder(**{"m.tar.gz": data}) as place:
        read_features(RecordedMachine.load(place / "m.tar.gz"))


@cache
def _machine_files() -> dict[str, str]:
    return dict(RecordedMachine.load(RECORDED / "machines/virtual-2-cores.tar.gz").files)


@reader("machine.parse mpi.detect", of_json, lambda: [json.dumps(_machine_files()).encode()])
def machine_files(data: bytes) -> None:
    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        return
    texts_alone = {str(k): str(v) for k, v in held.items()} if isinstance(held, dict) else {}
    read_features(RecordedMachine(texts_alone))
    describe_machine(texts_alone.get("proc/cpuinfo", ""))


@reader("core.choice core.units simulated.smpi_cluster", of_lines,
        texts("recexch(k=4,b=x)", "64KiB", "1h30m", "dragonfly:8x2,taper=0.5"))  # fmt: skip
def words(data: bytes) -> None:
    for parse in (parse_choice, parse_size, parse_duration, parse_cluster):
        with suppress(ColltuneError):
            parse(text_of(data))


# Tables and models.


@reader("store.dataset store.table_checks", of_lines, lambda: [_table(RECORDED / "pico_lumi_allreduce.csv.gz")])
def table_csv(data: bytes) -> None:
    with folder(**{"t.csv": data}) as place:
        load_grids([place / "t.csv"], 1)


@reader("store.dataset", compressed(of_lines), lambda: [gzip.compress(_table(RECORDED / "pico_lumi_allreduce.csv.gz"))])
def table_csv_gz(data: bytes) -> None:
    with folder(**{"t.csv.gz": data}) as place:
        load_grids([place / "t.csv.gz"], 1)


@reader("store.dataset", of_bytes, files(DATA / "simulated_dragonfly_1024.parquet"))
def table_parquet(data: bytes) -> None:
    with folder(**{"t.parquet": data}) as place:
        load_grids([place / "t.parquet"], 1)


def _table(path: Path) -> bytes:
    return b"\n".join(gzip.decompress(path.read_bytes()).splitlines()[:400]) + b"\n"


@reader(
    "simulated.smpi",
    of_lines,
    texts('{"time x 2 2": [1e-5, true]}\n{"why": "it failed"}\n'),
)
def simulated_memory(data: bytes) -> None:
    with folder(**{"m.jsonl": data}) as place:
        read_memory(place / "m.jsonl")


MODELS = ROOT / "src/colltune/predict"


@reader("predict.model predict.trees", of_arrays, files(MODELS / "model.npz"))
def clusters_model(data: bytes) -> None:
    with folder(**{"m.npz": data}) as place:
        load_model(place / "m.npz")


@reader(
    "measure.agent_process",
    of_lines,
    texts("result id=1 choice=0 status=ok cost_us=7.5 osu_us=1.2500 b2b_us=1.5000 times_ns=1000,2000,3000\n"),
)
def agent_line(data: bytes) -> None:
    parse_fields(text_of(data))
