"""Readers of files of an MPI, of a job and of its machine, and of ours for the live selector and the all-to-all.

Importing it lists them in READERS.
"""

import io
import json
import re
import struct
import zlib
from contextlib import suppress
from functools import cache

import intel_tables
import numpy as np
from mpich_trees import default_trees
from mutation import of_array, of_bytes, of_json, of_lines
from reading import GOLDEN, RECORDED, ROOT, TUNINGS, file_reader, files, folder, reader, text_of, text_reader, texts

from colltune.alltoallv.lookup_table import load_table
from colltune.alltoallv.matrices import load_matrix
from colltune.bench.backends.openmpi import find_obstacles
from colltune.catalog import load
from colltune.catalog.read import catalogue_of
from colltune.core.errors import ColltuneError, InputError
from colltune.core.hostlist import compress_hostlist, expand_hostlist, parse_counts
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis, parse_choice
from colltune.core.units import parse_duration, parse_size
from colltune.deploy.explored import load_candidates
from colltune.emit.intelmpi import FILE, IntelMpiEmitter
from colltune.emit.lint.check import format_check
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.live_rules import live_choices, parse_live
from colltune.emit.mpich.defaults import cut_default_trees
from colltune.emit.mpich.outcome import describe_outcome, trees_of
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE
from colltune.emit.mpich.tree import Call, format_tree
from colltune.emit.openmpi.han import parse_han
from colltune.emit.openmpi.lint_han import lint_han_files
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.emit.openmpi.reader import ReadError
from colltune.emit.openmpi.rules_file import RULES_FILE, OpenMpiEmitter
from colltune.machine.described_file import parse_description
from colltune.machine.described_mpi import parse_variables
from colltune.machine.hardware_features import read_features
from colltune.machine.prebuilt import read_symbols
from colltune.machine.record import RecordedMachine
from colltune.measure.agent_process import parse_fields
from colltune.mpi.detect import describe_machine
from colltune.mpi.job import find_job, parse_host_file
from colltune.mpi.mpich_settings import overriding
from colltune.mpi.programs import is_brought_for
from colltune.schedule.topology_files import (
    parse_compute_units,
    parse_plain,
    parse_scheme,
    parse_slurm_addresses,
    parse_slurm_conf,
    parse_slurm_topology,
    parse_slurm_yaml,
)
from colltune_study.simulated.smpi_cluster import parse_cluster


@cache
def _openmpi() -> OpenMpiEmitter:
    return OpenMpiEmitter(load("openmpi", "5.0.11"))  # type: ignore[arg-type]


RULES = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, 4, 64, DEFAULT), Rule(None, 4, 4096, Choice("binomial")),
                Rule(None, 4, None, DEFAULT), Rule(None, None, None, DEFAULT)))  # fmt: skip
TREES = [GOLDEN / "mpich" / version / name for version in ("4.0", "5.0") for name in (GENERAL_FILE, CH4_FILE)]


@reader("emit.mpich.selection_file emit.mpich.tree emit.mpich.outcome", of_json, files(*TREES))
def mpich_tree(data: bytes) -> None:
    for collective in ("bcast", "allreduce"):
        trees = trees_of({GENERAL_FILE: data, CH4_FILE: data})
        describe_outcome(trees, Call.of(Scenario(collective, 2, 2, 1024)), load("mpich", "5.0.2"))


@reader("emit.lint.selection_file emit.lint.json_text session.lint", of_json, files(*TREES))
def mpich_lint(data: bytes) -> None:
    for check in lint_files({"f": data}, "5.0.2", load("mpich", "5.0.2")):
        format_check(check)


def _trees() -> list[bytes]:
    trees = default_trees()
    return [format_tree(tree) for tree in (trees.general, trees.ch4)]


@reader("emit.mpich.defaults bench.backends.mpich mpi.detect mpi.reads mpi.same", of_json, _trees)
def mpich_library(data: bytes) -> None:
    others = b"\0".join(_trees())
    with folder(**{"libmpi.so": b"\x7fELF\0" + data + b"\0" + others + b"\0"}) as place:
        cut_default_trees(place / "libmpi.so")


def _elf() -> list[bytes]:
    """A library with two symbols, one of which others are to have."""
    texts = b"\0libmpi.so.12\0MPI_Init\0ompi_x\0"
    parts = [
        struct.pack("<QQQQ", 14, 1, 0, 0),
        struct.pack("<IBBHQQ", 14, 18, 0, 3, 64, 8) + struct.pack("<IBBHQQ", 23, 18, 0, 0, 0, 0),
        texts,
    ]
    sections, at = struct.pack("<IIQQQQIIQQ", *[0] * 10), 64
    for kind, part in zip((6, 11, 3), parts, strict=True):
        sections += struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, at, len(part), 3, 0, 1, 0)
        at += len(part)
    head = struct.pack("<6s10xHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 3, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 4, 3)
    return [head + b"".join(parts) + sections]


@reader("machine.prebuilt mpi.programs", of_bytes, _elf, (ValueError,))
def library_symbols(data: bytes) -> None:
    """And whether programs that are brought are for it, which is no error."""
    with folder(**{"libmpi.so.12": data}) as place:
        is_brought_for(place / "libmpi.so.12")
    read_symbols(data)


@reader("emit.openmpi.rules_file emit.openmpi.reader emit.openmpi.lint_rules", of_lines,
        lambda: [_openmpi().emit([RULES])[RULES_FILE]], (ReadError,))  # fmt: skip
def openmpi_rules(data: bytes) -> None:
    for version in ("4.1.4", "5.0.11"):
        for check in lint_rules_files({"f": data}, version, load("openmpi", version)):
            format_check(check)
    _openmpi().parse({RULES_FILE: data}, "bcast")


def _intel() -> IntelMpiEmitter:
    catalogue = load("intelmpi", "2021.17")
    return IntelMpiEmitter(catalogue, intel_tables.presets(catalogue))


@reader("emit.intelmpi bench.backends.intelmpi", of_bytes, lambda: [zlib.decompress(_intel().emit([RULES])[FILE])])
def intel_table(data: bytes) -> None:
    """What the compressed content may be; and as a file itself."""
    with suppress(InputError):
        _intel().parse({FILE: data}, "bcast")
    _intel().parse({FILE: zlib.compress(data)}, "bcast")


def _descriptions() -> list[bytes]:
    page = (ROOT / "docs" / "how-to" / "describe-an-mpi.md").read_text()
    return [text.encode() for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]


@reader("machine.described_file machine.described_mpi", of_lines, _descriptions)
def mpi_description(data: bytes) -> None:
    description, faults = parse_description(data)
    assert (description is None) == bool(faults)
    if description is not None:
        with suppress(InputError):
            catalogue_of(description)


@reader("emit.described emit.contract bench.backends.described", of_lines,
        texts("MADEUP_BCAST=flat=0..64/2..2,flat=99..2147483647/3..3\nMADEUP_TAKES_VARIABLES=yes\n"))  # fmt: skip
def described_variables(data: bytes) -> None:
    description, _ = parse_description(_descriptions()[0])
    description.refusal(parse_variables(data))


@reader("emit.openmpi.han emit.openmpi.lint_han", of_lines,
        texts("1\nallreduce\n1\n2\n2\n1\n1\n0 han\n8\n2\n0 han\n1024 tuned\n"))  # fmt: skip
def openmpi_han(data: bytes) -> None:
    for check in lint_han_files({"f": data}, "5.0.11"):
        format_check(check)
    parse_han(data)


LIVE = [one / "live/colltune-live.rules" for one in TUNINGS[:2]]


@reader("emit.live_rules emit.live_rules", of_lines, files(*LIVE))
def live_rules(data: bytes) -> None:
    with suppress(ColltuneError):
        live_choices(text_of(data))
    parse_live(text_of(data))


def _explored(*choices: str) -> bytes:
    """What `run --auto` knows of a program."""
    application = {"command": ["mpiexec", "./app"], "name": "app", "digest": "12ab"}
    call = {"collective": "bcast", "basis": "message", "nodes": 2, "ppn": 2, "size": [64, 127], "communicators": 1}
    known = {"share": 0.1, "calls": 400.0, "time_s": 0.5, "predicted": "default"}
    kinds = [{**call, **known, "choices": choices}]
    return json.dumps({"schema": 3, "application": application, "mpi_build": "1f", "kinds": kinds}).encode()


def _explored_live() -> list[bytes]:
    return [_explored(), _explored(str(live_choices(text_of(LIVE[0].read_bytes()))[0]))]


def _load_candidates(record: bytes, live: bytes) -> None:
    with folder(**{"candidates/candidates.json": record, "candidates/colltune-live.rules": live}) as place:
        load_candidates(place)


@reader("deploy.explored", of_lines, files(*LIVE))
def candidates(data: bytes) -> None:
    _load_candidates(_explored(), data)


@reader("deploy.explored", of_json, _explored_live)
def candidates_record(data: bytes) -> None:
    _load_candidates(data, LIVE[0].read_bytes())


TABLE = """colltune-rules 2
choice 0 - algorithm=parata,radix=4
rules alltoallv average 2
rule 2..2 4..4 96..191 0 4
rule 2..2 4..4 - -
"""
_MADE = '# made: {"mpi": "mpich", "mpi_version": "5.0.2", "mpi_build": "1f", "machine": "m", "fabric": "", "seed": 1}\n'
_HERE = Environment("mpich", "5.0.2", "1f", "m", 1, 2, "single")
file_reader("alltoallv_table", "alltoallv.lookup_table emit.live_rules", of_lines, texts(TABLE), load_table)
file_reader("alltoallv_origin", "alltoallv.lookup_table", of_lines, texts(TABLE.replace("\n", f"\n{_MADE}", 1)),
            lambda path: load_table(path, _HERE))  # fmt: skip


def _npy() -> list[bytes]:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(16).reshape(4, 4))
    return [buffer.getvalue()]


file_reader("matrix_npy", "alltoallv.matrices", of_array, _npy, lambda path: load_matrix(path).ranks, "m.npy")
file_reader("matrix_text", "alltoallv.matrices", of_lines, texts("0 1 2\n3 4 5\n6 7 8\n"),
            lambda path: load_matrix(path).ranks, "m.txt")  # fmt: skip

# The job, its network and its machine.

TOPOLOGIES, JOBS = RECORDED / "topologies", RECORDED / "jobs"
text_reader("topology_yaml", "schedule.topology_files", of_lines, files(TOPOLOGIES / "topology.yaml"),
            lambda text: parse_slurm_yaml(text, "f"))  # fmt: skip
text_reader("topology_conf", "schedule.topology_files", of_lines,
            files(TOPOLOGIES / "topology.conf", TOPOLOGIES / "topology-block.conf"),
            lambda text: parse_slurm_conf(text, "f"), lambda text: parse_slurm_topology(text, "f"))  # fmt: skip
text_reader("topology_shown", "schedule.topology_files", of_lines,
            texts("NAME TYPE HOSTS\nencl1 enclosure n1\nrack1 rack n1 n2\n", "top.s[0-1].n1\ntop.s2.n2\n"),
            parse_compute_units, parse_slurm_addresses)  # fmt: skip
text_reader("topology_plain", "schedule.topology_files", of_lines, files(TOPOLOGIES / "plain.txt"),
            lambda text: parse_plain(text, "f"))  # fmt: skip
text_reader("topology_scheme", "schedule.topology_files", of_lines,
            files(*sorted((ROOT / "src/colltune/schedule/schemes").glob("*.toml"))),
            lambda text: parse_scheme(text, "f").path("x1000c0s0b0n0"))  # fmt: skip


@reader("core.hostlist", of_lines, texts("n[08-10],login", "a[1-3]b[01-02]", "2(x3),1"))
def hostlist(data: bytes) -> None:
    with suppress(ColltuneError):
        parse_counts(text_of(data))
    hosts = expand_hostlist(text_of(data))
    assert all(host and not set(host) & set("[], ") for host in hosts)
    assert expand_hostlist(compress_hostlist(hosts)) == hosts


_SITE = "# ours\nMPICH_BCAST_INTRA_ALGORITHM:force=ring\nMPIR_CVAR_BCAST_COMPOSITION=1\n"
file_reader("mpich_conf", "mpi.mpich_settings", of_lines, texts(_SITE),
            lambda path: overriding({}, ["bcast"], path), "mpich.conf")  # fmt: skip


@reader("mpi.job", of_lines, files(*JOBS.glob("*.hosts"), *JOBS.glob("*.nodes")))
def host_file(data: bytes) -> None:
    assert all(node.slots >= 1 and node.name for node in parse_host_file(text_of(data), "f", 4))
    with folder(hosts=data) as place:
        find_job({}, host_file=place / "hosts")


_PARAMETERS = "# the site's\ncoll_tuned_bcast_algorithm = 3 # chain\ncoll = ^tuned\ncoll_ucc_enable=1\n"
file_reader("openmpi_parameters", "bench.backends.openmpi", of_lines, texts(_PARAMETERS),
            lambda path: find_obstacles({"HOME": str(path.parents[1])}), ".openmpi/mca-params.conf")  # fmt: skip


@reader("mpi.job", of_lines, files(*JOBS.glob("*.env")))
def job_environment(data: bytes) -> None:
    held = dict(line.partition("=")[::2] for line in text_of(data).split("\n"))
    find_job({name: value.replace("@HERE@", str(JOBS)) for name, value in held.items()})


text_reader("job_flux", "mpi.job", of_lines, files(*JOBS.glob("*.resources")),
            lambda text: find_job({}, flux_resources=text))  # fmt: skip
MACHINE = RECORDED / "machines/virtual-2-cores.tar.gz"
file_reader("machine_archive", "machine.record machine.parse machine.hardware_features mpi.detect", of_bytes,
            files(MACHINE), lambda path: read_features(RecordedMachine.load(path)), "m.tar.gz")  # fmt: skip


@reader("machine.parse mpi.detect", of_json, lambda: [json.dumps(dict(RecordedMachine.load(MACHINE).files)).encode()])
def machine_files(data: bytes) -> None:
    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        return
    texts_alone = {str(k): str(v) for k, v in held.items()} if isinstance(held, dict) else {}
    read_features(RecordedMachine(texts_alone))
    describe_machine(texts_alone.get("proc/cpuinfo", ""))


@reader("core.sample core.units simulated.smpi_cluster", of_lines,
        texts("recexch(k=4,b=x)", "64KiB", "1h30m", "dragonfly:8x2,taper=0.5"))  # fmt: skip
def words(data: bytes) -> None:
    for parse in (parse_choice, parse_size, parse_duration, parse_cluster):
        with suppress(ColltuneError):
            parse(text_of(data))


text_reader("agent_line", "measure.agent_process", of_lines,
            texts("result id=1 choice=0 status=ok cost_us=7.5 osu_us=1.2500 b2b_us=1.5000 times_ns=1000,2000,3000\n"),
            parse_fields)  # fmt: skip
