"""What other tools wrote, in any disguise: each file gets its own reader, or one line that says what it is."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import colltune
from colltune.alltoallv.matrices import load_matrix
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import Scenario
from colltune.machine.benchmark_output import parse_output
from colltune.machine.file_formats import PROFILES, Format, recognise
from colltune.profile.profile_files import load_profile
from colltune.session.compare import Verification
from colltune.session.lint import lint_selection
from colltune.session.sides import parse_side
from colltune.site.store import SiteStore
from colltune.store.tuning import load_tuning
from colltune_study.recorded.dataset import load_grids, read_table

RECORDED = Path(__file__).parents[1] / "recorded"
IMB = """#---------------------------
# Benchmarking Allreduce
# #processes = 8
#---------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            8         1000         5.00        20.00        12.00
         1024         1000         9.00        21.00        15.00
"""
OSU = """# OSU MPI Allreduce Latency Test v7.5
# Datatype: MPI_INT.
# Size       Avg Latency(us)
8                      20.00
1024                   21.00
"""
TIMES_US = {8: 20.0, 1024: 21.0}
HOST = "nid001"


def labelled(label: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{label}{line}\n" for line in text.splitlines())


DISGUISES: dict[str, Callable[[str], str]] = {
    "indented by blanks": labelled("    "),
    "srun -l": labelled("0: "),
    "srun -l of 2000 ranks": labelled("0000: "),
    "mpiexec -prepend-rank": labelled("[0] "),
    "mpirun --tag-output of 4.1": labelled("[1,0]<stdout>:"),
    "mpirun --tag-output of 5.0": labelled("[1,0]<stdout>: "),
    "mpirun --output tag-detailed": labelled(f"[1,0][{HOST}:7593]<stdout>: "),
    "mpirun --output tag,timestamp": labelled("[Wed Nov 25 22:22:08 2026][1,0]<stdout>: "),
    "mpirun --timestamp-output of 4.1": labelled("Wed Nov 25 22:22:13 2026[1,0]<stdout>:"),
    "a name for the job": labelled("[prterun-node-123@1,0]<stdout>: "),
    "aprun and PALS": labelled(f"{HOST} 0: "),
    "a service for logs": labelled("2026-11-25T22:06:03.1234567Z "),
    "ts": labelled("2026-11-25 22:06:03 "),
    "hydra at ends of lines": lambda text: text.replace("\n", "[0] \n[0] "),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR": lambda text: text.replace("\n", "\r"),
    "colours": lambda text: "".join(f"\x1b[1;32m{line}\x1b[0m\n" for line in text.splitlines()),
    "a title of a terminal": lambda text: "\x1b]0;job\x07" + text,
    "blanks behind": lambda text: text.replace("\n", "   \n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "output before": lambda text: "Loading modules\nslurmstepd: cgroup\n8 nodes ready\n" + text,
    "output behind": lambda text: text + "real 0m3.2s\n  1  -1.25\n  2  0.00\n5 7.5\ndone\n",
    "output between": lambda text: text.replace("1024", "[warn] slow link\n3 2.0\n1024"),
    "an error of the launcher": lambda text: text + "srun: error: nid001: task 0: Exited with exit code 1\n",
    "no end of line": lambda text: text.removesuffix("\n"),
    "indented by a tab": labelled("\t"),
    "labels, indented": labelled("   [1,0]<stdout>:   "),
}  # fmt: skip


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("printed", [IMB, OSU], ids=["IMB", "OSU"])
def test_a_log_is_read_as_the_program_printed_it(name: str, printed: str) -> None:
    data = DISGUISES[name](printed).encode()
    assert recognise(data).format is Format.BENCHMARK
    found = parse_output(data, Path("log"), (4, 2)).times_s
    assert {s.size_bytes: times[0] * 1e6 for (s, _), times in found.items()} == pytest.approx(TIMES_US)


@given(st.permutations(["srun -l", "CRLF", "colours", "indented by a tab", "a byte order mark"]), st.integers(0, 5))
def test_disguises_may_be_worn_together(order: list[str], count: int) -> None:
    text = OSU
    for name in order[:count]:
        if name != "colours" or "\r" not in text:
            text = DISGUISES[name](text)
    assert recognise(text.encode()).format is Format.BENCHMARK


def test_encodings_of_windows_and_gzipped_logs_and_tables_are_read(tmp_path: Path) -> None:
    packed = gzip.compress(OSU.encode())
    for data in (OSU.encode("utf-16"), OSU.encode("utf-8-sig"), b"\xff\xfe" + OSU.encode("utf-16-le"), packed):
        assert len(parse_output(data, Path("log"), (4, 2)).times_s) == 2
    with pytest.raises(InputError, match="cut short"):
        parse_output(packed[:-20], Path("log"), (4, 2))
    table = tmp_path / "table"  # without an ending that says so
    table.write_bytes((RECORDED / "pico_lumi_allreduce.csv.gz").read_bytes())
    assert len(read_table(table))


def test_several_runs_are_several_times() -> None:
    text = labelled("0: ")(OSU + OSU.replace("20.00", "22.00"))
    found = parse_output(text.encode(), Path("log"), (4, 2)).times_s
    assert found[Scenario("allreduce", 4, 2, 8), ""] == pytest.approx([20e-6, 22e-6])


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_last_row_that_was_cut_off_is_no_time(cut: int) -> None:
    """1024 B in 2 us were never measured."""
    found = parse_output(OSU[: -1 - cut].encode(), Path("log"), (4, 2)).times_s
    assert [s.size_bytes for s, _ in found] == [8]


def test_other_ranks_than_asked_for_are_named() -> None:
    with pytest.raises(InputError, match=r"no times of a collective that blocks, with ranks for 4 x 36.*have 8 ranks"):
        parse_output(IMB.encode(), Path("log"), (4, 36))
    with pytest.raises(InputError, match="It holds: OSU MPI Bandwidth Test"):
        parse_output(b"# OSU MPI Bandwidth Test v7.5\n8 20.0\n", Path("log"), (4, 2))


@pytest.mark.parametrize(
    ("data", "what", "next_step"),
    [
        (b"0: ##IPM2v0.xx####\n0: # command : ./app\n", "of IPM or mpiP", "colltune profile"),
        (b'<?xml version="1.0"?>\n<ipm_job_profile>\n', "of IPM or mpiP", "colltune profile"),
        (b"mpiP: \nmpiP: mpiP V3.5.0\n", "of IPM or mpiP", "colltune profile"),
        (b"@ mpiP\n@ Command : ./app\n", "of IPM or mpiP", "colltune profile"),
        (b"# OSU MPI-CUDA Allreduce Latency Test v7.5\n# Size  Avg\n8 2.5\n", "of GPU buffers", "host memory"),
        (b"[0] # OSU MPI-ROCM Broadcast Latency Test v7.5\n[0] 8 2.5\n", "of GPU buffers", "host memory"),
        (b"# nThread 1 nGpus 8 minBytes 8\n#\n 8 2 float sum -1 14.0\n", "output of nccl-tests", "host memory"),
        (b"\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0", "a program or other binary file", "colltune profile"),
        (b"\x89HDF\r\n\x1a\n", "a file of HDF5", ""),
        (b"SQLite format 3\0", "a database", ""),
        (b"PK\3\4....", "an archive", ""),
        (b"\xfd7zXZ\0", "compressed by xz", ""),
        (b"\x1f\x8b\x08\0\0", "gzipped, but it is cut short", ""),
        (b"#!/bin/bash\nsrun ./app\n", "a script", ""),
        (b"<!DOCTYPE html><html></html>", "XML or HTML", ""),
        (b"coll_tuned_use_dynamic_rules = 1\n", "settings", ""),
        (b"", "empty", ""),
        (b"# nothing\n", "comments alone", ""),
        (b"node01:8\nnode02:8\n", "a list of hosts", ""),
        (b"collective;nodes;ppn\nbcast;1;2\n", "a table with semicolons in place of commas", ""),
        (b"colltune-rules 2\nchoice 0 - -\n", "rules of colltune's preloaded library", ""),
        (b'{"schema": 1, "environment": {}, "rules": {}}', "the manifest of a tuning directory", ""),
        (b'{"rows": [1, 2]}', "JSON of none of the formats", ""),
        (b"1\n7\n1\n2\n1\n0 6 0 0\n", "rules of Open MPI's coll/tuned", ""),
        (b"UCC_TL_UCP_TUNE=bcast:@knomial\n", "a ucc.conf", ""),
        (b"MPI is fine\n", "of no format that colltune knows: it begins with 'MPI is fine'", ""),
        (b"\xff\xfe\xfd\xfcfoo bar", "of no format", ""),
    ],
)  # fmt: skip
def test_what_is_no_profile_is_named(data: bytes, what: str, next_step: str, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(data)
    assert recognise(data).format not in PROFILES
    with pytest.raises(InputError, match=rf"given is .*{re.escape(what)}.*, and no profile") as raised:
        load_profile(tmp_path / "given")
    assert re.search(next_step, str(raised.value))


def test_every_reader_and_command_says_the_same_of_a_file_in_the_place_of_something_else(tmp_path: Path) -> None:
    given = tmp_path / "given"
    for data in (b"node01:8\nnode02:8\n", b"##IPMv2.0.6####\n", b'{"kind": "colltune-profile"}', b"\x7fELF\0\1"):
        given.write_bytes(data)
        what = f"given is {recognise(data).what}"
        for read, use in ((load_tuning, "tuning"), (load_matrix, "matrix of counts"),
                          (SiteStore.opened, "store of a site")):  # fmt: skip
            with pytest.raises(InputError, match=re.escape(f"{what}, and no {use}. ")):
                read(given)
        for words in ("lint GIVEN --mpi-version 5.0.11", "compare GIVEN nothing --nodes 4", "study evaluate GIVEN"):
            result = CliRunner().invoke(app, words.replace("GIVEN", str(given)).split())
            assert what in str(result.exception), words
    with pytest.raises(InputError, match=re.escape(f"{tmp_path} is a directory, and no store of a site. Make one by")):
        SiteStore.opened(tmp_path)
    given.write_text("0 8\n8 x\n")  # which is nearly one
    with pytest.raises(InputError, match="is no matrix of counts: line 2 has more than whole numbers: '8 x'"):
        load_matrix(given)


def test_a_part_of_a_profile_is_read_by_itself(tmp_path: Path) -> None:
    text = ("colltune-profile 1\njob ranks_seen=one ranks=2 nodes=1 elapsed_ns=1000000 threads_multiple=0"
            " clock_error_ns=0 lost_calls=0 lost_stamps=0\nend\n")  # fmt: skip
    (tmp_path / "app.json.0").write_text(text)
    assert load_profile(tmp_path / "app.json.0").reporting == 1


HAN = "1\nallreduce\n1\n2\n1\n1 2\n0 han\n1024 tuned\n"
RULES = {
    HAN: Format.HAN_RULES,
    "# comment\n" + HAN: Format.HAN_RULES,
    HAN.replace("\n", "\r\n"): Format.HAN_RULES,
    HAN.replace("allreduce", "2"): Format.HAN_RULES,
    HAN.replace("\n", " "): Format.HAN_RULES,
    HAN.replace("tuned", "tunde").replace("han", "hna"): Format.HAN_RULES,
    "1\nbarrier\n0\n": Format.HAN_RULES,
    "1\n7\n1\n2\n1\n0 6 0 0\n": Format.TUNED_RULES,
    "1 bcast\n7 1 2 1 0 6 0 0\n": Format.TUNED_RULES,
    "# see coll_tuned\n\n rule-file-version-2\n1\n": Format.TUNED_RULES,
    "1 # han 0 han\n7 1 2 1 0 6 0 0\n": Format.TUNED_RULES,
    '{"collective=bcast": {}}': Format.MPICH_TREES,
}


@pytest.mark.parametrize(
    ("data", "what"),
    [(b' {\n "name=main": {}}', "a file of named trees, which no release of MPICH reads.*, and no selection file"),
     (b'{"rule_file_version": 3, "module": "tuned", "collectives": {}}', "JSON rules of Open MPI 6.*no selection file"),
     (b"; comment\n[team_size=4]\nUCC_TL_UCP_TUNE=bcast:@knomial\n", "a ucc.conf.*, and no selection file"),
     (gzip.compress(HAN.encode()), "gzipped, and no library reads that. Uncompress it: gunzip")],
)  # fmt: skip
def test_what_none_of_the_two_libraries_reads_is_named_and_not_linted(data: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(data)
    with pytest.raises(InputError, match=f"is {what}"):
        lint_selection([tmp_path / "given"], {}, mpi_version="5.0.11")


@pytest.mark.parametrize("text", RULES)
def test_selection_files_are_told_apart(text: str, tmp_path: Path) -> None:
    (tmp_path / "given").write_text(text)
    assert recognise(text.encode()).format is RULES[text]
    linted = lint_selection([tmp_path / "given"], {}, mpi_version="5.0.2" if "coll" in text else "5.0.11")
    assert list(linted.formats.values()) == [RULES[text]]
    parse_side(str(tmp_path / "given"))


OUTPUT = RECORDED / "benchmarks"


def compared(a: Path, b: Path, **shape: int) -> tuple[Verification, str]:
    said: list[str] = []
    return colltune.compare(a, b, note=said.append, **shape), "\n".join(said)


def test_of_osu_the_tables_of_collectives_of_imb_the_slowest_rank_and_of_reprompi_the_median_is_read() -> None:
    read = parse_output((OUTPUT / "osu.txt").read_bytes(), OUTPUT / "osu.txt", (2, 1))
    assert read.program == "OSU"
    assert {scenario.collective for scenario, _ in read.times_s} == {"allreduce"}
    assert len(read.times_s) == 19
    assert read.times_s[Scenario("allreduce", 2, 1, 1 << 20), ""] == [pytest.approx(558.56e-6)]
    imb = parse_output((OUTPUT / "imb_agent_on.txt").read_bytes(), OUTPUT / "imb_agent_on.txt")
    assert imb.times_s[Scenario("allreduce", 32, 44, 8), ""] == [pytest.approx(30.77e-6)]
    text = (OUTPUT / "reprompi.txt").read_text()
    repro = parse_output(text.encode(), OUTPUT / "reprompi.txt", (2, 2))
    assert repro.times_s[Scenario("allreduce", 2, 2, 1), ""] == [pytest.approx(3.05055e-6), pytest.approx(2.7941e-6)]
    # Ranks of a later run are not those of an earlier one.
    first, second = text.split("# Execution time: 0s\n")[:2]
    later = f"{first}{second.replace('nprocs=4', 'nprocs=8')}".encode()
    assert {len(one) for one in parse_output(later, OUTPUT / "reprompi.txt", (2, 2)).times_s.values()} == {1}


def test_one_run_of_each_proves_nothing_and_says_what_would() -> None:
    found, said = compared(OUTPUT / "imb_agent_on.txt", OUTPUT / "imb_agent_off.txt")
    assert [round(one.speedup.estimate, 2) for one in found.comparisons] == [1.46, 1.41]
    assert (found.nowhere_slower, sum(found.counts.values()), len(found.open)) == (None, 0, 2)
    assert "Not known: whether the machine was the same and idle" in said


def times(times_us: list[float], size: int = 1024) -> str:
    one = "# OSU MPI Broadcast Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n{:<10}{:18.2f}\n"
    return "# nodes=4 ppn=2\n" + "".join(one.format(size, time_us) for time_us in times_us)


def test_runs_one_after_the_other_in_a_file_are_launches(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(times([10.0 + n / 10 for n in range(8)]))
    (tmp_path / "b").write_text(times([12.0 + n / 10 for n in range(8)]))
    found, _ = compared(tmp_path / "a", tmp_path / "b")
    assert [one.verdict for one in found.comparisons] == [SpeedVerdict.SLOWER]
    assert (found.launches, found.nowhere_slower) == (8, False)
    assert compared(tmp_path / "b", tmp_path / "a")[0].nowhere_slower is True


@pytest.mark.parametrize(
    ("a", "b", "what"),
    [
        (times([1.0]), '{"collective=bcast": {}}', "is output of a benchmark. Give two"),
        (times([1.0]), "MPI is fine\n", "it begins with 'MPI is fine', and no side of a comparison"),
        (times([1.0]), (OUTPUT / "imb_agent_on.txt").read_text(), "OSU and IMB do not measure the same"),
        (times([1.0]), times([1.0], size=2048), "no call of these sizes is in both files"),
        (times([1.0]), times([0.0]), "line 5: 1024 B in 0.00 is no measurement"),
        (times([1.0]), times([1.0]).replace("1.00", "nan"), "line 5: 1024 B in nan is no measurement"),
        (times([1.0]), times([1.0]).replace("# nodes=4 ppn=2\n", ""), "does not say on which nodes"),
        (times([1.0]), times([1.0]) + times([1.0]).replace("ppn=2", "ppn=2 algorithm=ring"), "several algorithms"),
    ],
)
def test_what_cannot_be_compared_is_one_line(a: str, b: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(a)
    (tmp_path / "b").write_text(b)
    with pytest.raises(InputError, match=re.escape(what)):
        compared(tmp_path / "a", tmp_path / "b")


def test_a_recorded_table_is_the_same_as_output_with_algorithms(tmp_path: Path) -> None:
    table = read_table(RECORDED / "pico_lumi_allreduce.csv.gz")
    table = table[table["run_id"] == table["run_id"].iloc[0]]
    parts = []
    for (nodes, ppn, name, is_default), rows in table.groupby(["nodes", "ppn", "algorithm", "is_default"]):
        parts.append(f"# nodes={nodes} ppn={ppn}" + ("" if is_default else f" algorithm={name}"))
        parts.append("# OSU MPI Allreduce Latency Test v7.5\n# Size       Avg Latency(us)")
        parts += [f"{row.msg_bytes:<10}{row.time_us:18.2f}" for row in rows.itertuples()]
    (tmp_path / "lumi.txt").write_text("\n".join(parts))
    (grid,) = load_grids([tmp_path / "lumi.txt"], fewest_scenarios=1)
    assert len(grid.recorded) == len(table[~table["is_default"]].groupby(["nodes", "ppn", "msg_bytes", "algorithm"]))
    assert grid.collective == "allreduce"


def test_other_files_are_no_output() -> None:
    for path in (RECORDED / "pico_lumi_allreduce.csv.gz", Path(__file__).with_name("readers.py")):
        assert recognise(path.read_bytes()).format is not Format.BENCHMARK
