"""What other benchmarks and profilers wrote: tables for `compare` and `evaluate`, profiles for `tune`."""

import re
from pathlib import Path

import pytest

import colltune
from colltune.core.errors import InputError
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import Scenario
from colltune.machine.benchmark_output import parse_output
from colltune.machine.file_formats import Format, recognise
from colltune.session.compare import Verification
from colltune_study.recorded.dataset import load_grids, read_table

RECORDED = Path(__file__).parents[1] / "recorded"
OUTPUT = RECORDED / "benchmarks"


def compared(a: Path, b: Path, **shape: int) -> tuple[Verification, str]:
    said: list[str] = []
    return colltune.compare(a, b, note=said.append, **shape), "\n".join(said)


def test_of_osu_the_tables_of_collectives_are_read_and_the_others_passed_over() -> None:
    read = parse_output((OUTPUT / "osu.txt").read_bytes(), OUTPUT / "osu.txt", (2, 1))
    assert read.program == "OSU"
    assert {scenario.collective for scenario, _ in read.times_s} == {"allreduce"}
    assert len(read.times_s) == 19
    assert read.times_s[Scenario("allreduce", 2, 1, 1 << 20), ""] == [pytest.approx(558.56e-6)]


def test_imb_gives_the_slowest_rank_and_reprompi_the_median_of_each_run() -> None:
    imb = parse_output((OUTPUT / "imb_agent_on.txt").read_bytes(), OUTPUT / "imb_agent_on.txt")
    assert imb.times_s[Scenario("allreduce", 32, 44, 8), ""] == [pytest.approx(30.77e-6)]
    repro = parse_output((OUTPUT / "reprompi.txt").read_bytes(), OUTPUT / "reprompi.txt", (2, 2))
    assert repro.times_s[Scenario("allreduce", 2, 2, 1), ""] == [pytest.approx(3.05055e-6), pytest.approx(2.7941e-6)]


def test_a_run_with_other_ranks_than_the_shape_is_left_out() -> None:
    with pytest.raises(InputError, match="no times of a collective that blocks, with ranks for 2 x 1"):
        parse_output((OUTPUT / "reprompi.txt").read_bytes(), OUTPUT / "reprompi.txt", (2, 1))


def test_ranks_of_a_later_run_are_not_those_of_an_earlier_one() -> None:
    text = (OUTPUT / "reprompi.txt").read_text()
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
        parts += [
            f"{size:<10}{time_us:18.2f}" for size, time_us in zip(rows["msg_bytes"], rows["time_us"], strict=True)
        ]
    (tmp_path / "lumi.txt").write_text("\n".join(parts))
    (grid,) = load_grids([tmp_path / "lumi.txt"], fewest_scenarios=1)
    assert grid.pairs == len(table[~table["is_default"]].groupby(["nodes", "ppn", "msg_bytes", "algorithm"]))
    assert grid.collective == "allreduce"


def test_other_files_are_no_output() -> None:
    for path in (RECORDED / "pico_lumi_allreduce.csv.gz", Path(__file__)):
        assert recognise(path.read_bytes()).format is not Format.BENCHMARK
